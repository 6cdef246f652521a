"""What a traceback shows of gradviz: where the user called it, and no more.

Note [Short tracebacks]
~~~~~~~~~~~~~~~~~~~~~~~
Between a call of backward and the line of a hook or Function that raised are eight or
more frames of gradviz, which tell a user nothing. PyTorch's are in C++ and unseen. So
the error of a pass leaves gradviz with the frames of others, the function that was
called, and the line that raised, whosever it is. The error is the same object, with its
cause, context and notes; what these have for tracebacks is left alone.

All frames are there in anomaly mode, which is for finding out, and if the environment
variable GRADVIZ_FULL_TRACEBACKS is set, which is for those who work on gradviz.

An op that refuses its arguments shows all its frames: they come after the user's line,
not between two of them, and to leave them out would need a `try` in every op.
"""

import contextlib
import os
from types import TracebackType
from typing import Final

from gradviz.engine import anomaly

#: Environment variable that, set to other than 0, has nothing left out.
FULL_TRACEBACKS: Final = "GRADVIZ_FULL_TRACEBACKS"

_OURS: Final = f"{__name__.partition('.')[0]}."


def shorten(error: BaseException, *, keeps_first: bool = True) -> None:
    """Leave out of an error's traceback what Note [Short tracebacks] says.

    Tracebacks are made anew, as others may hold the ones that there are.

    Args:
        error: In a function that was called from outside: ``raise`` follows.
        keeps_first: Whether the first frame is that function's.
    """
    if anomaly.SWITCHED_ON or os.environ.get(FULL_TRACEBACKS, "0") not in (
        "",
        "0",
    ):
        return
    with contextlib.suppress(MemoryError):  # it is the user's error that counts
        error.__traceback__ = _shortened(error.__traceback__, keeps_first)


def _shortened(entry: TracebackType | None, keeps_first: bool) -> TracebackType | None:
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if not entries:
        return None
    # What comes after the last that is left out stays: where backwards are nested, all
    # that was made by those inside, which each of those outside goes through again.
    first = 1 if keeps_first else 0
    end = len(entries) - 1
    while end > first and not _is_ours(entries[end - 1]):
        end -= 1
    kept = entries[end]
    for index in range(end - 1, -1, -1):
        one = entries[index]
        if index < first or not _is_ours(one):
            # Where no line belongs to the bytecode that was struck, -1 says so.
            line: int | None = one.tb_lineno
            line = -1 if line is None else line
            kept = TracebackType(kept, one.tb_frame, one.tb_lasti, line)
    return kept


def _is_ours(entry: TracebackType) -> bool:
    module = entry.tb_frame.f_globals.get("__name__")  # whatever a program says
    return isinstance(module, str) and (module + ".").startswith(_OURS)
