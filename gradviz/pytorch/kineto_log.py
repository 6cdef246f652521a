"""The log of Kineto, PyTorch's profiler, on stderr: the program's lines, none of ours.

Kineto writes lines when a profiler is prepared, begins and ends. One number per process
says how much it writes. Kineto sets it when it is first used, from a variable of the
environment if that is set. PyTorch has no function for it, but libtorch exports it.
"""

import contextlib
import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

VARIABLE: Final = "KINETO_LOG_LEVEL"
_SYMBOL: Final = "_ZN9libkineto6Logger14severityLevel_E"

#: Above the level of every line.
_SILENT: Final = 99


class KinetoLog:
    """Silences Kineto while gradviz uses it. One thread at a time.

    Args:
        level: The level below which Kineto writes nothing. None where libtorch does not
            export it; Kineto then stays silent for good if gradviz is the first to use
            it.
    """

    def __init__(self, level: ctypes.c_int | None) -> None:
        self._level = level
        self._is_used = False
        #: True if Kineto was first used by gradviz, and not by the program since.
        self._is_ours = False

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Have Kineto write nothing in this block."""
        level, is_first = self._level, not self._is_used
        self._is_used = True
        if level is None:
            with _environment(str(_SILENT)) if is_first else contextlib.nullcontext():
                yield
            return
        before = level.value
        try:
            level.value = _SILENT
            with _environment(None) if is_first else contextlib.nullcontext():
                yield
        finally:
            if level.value == _SILENT:
                level.value = before
            else:  # its first use in this process, which has set its own
                self._is_ours = True

    def leave_to_program(self) -> None:
        """Set the level that Kineto would set now if gradviz had not used it before."""
        wanted = os.environ.get(VARIABLE)
        if self._is_ours and self._level is not None and wanted is not None:
            number = re.match(r"\s*[+-]?\d+", wanted, re.ASCII)  # as C's atoi reads it
            self._level.value = int(number[0]) if number else 0
        self._is_ours = False


def level_of(torch: ModuleType) -> ctypes.c_int | None:
    """Return Kineto's own variable, None where it cannot be found."""
    try:
        # In a library, symbols of the libraries that it is linked with are found too.
        return ctypes.c_int.in_dll(ctypes.CDLL(torch._C.__file__), _SYMBOL)
    except (AttributeError, OSError, TypeError, ValueError):
        return None


@contextmanager
def _environment(level: str | None) -> Iterator[None]:
    """Have the environment say this level, or none, for a while."""
    before = os.environ.pop(VARIABLE, None)
    if level is not None:
        os.environ[VARIABLE] = level
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
