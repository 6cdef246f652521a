"""Tracebacks without gradviz's own frames between the user's.

Note [Short tracebacks]
~~~~~~~~~~~~~~~~~~~~~~~
Between a call of backward and the line of a hook or Function that raised are eight or
more frames of gradviz, which are of no use to a user. PyTorch's are in C++ and hidden.
So a pass's error leaves gradviz with only the frames of other code, the function that
the user called, and the line that raised, whoever owns it. The error is the same
object, with its cause, context and notes; the tracebacks of those are left alone.

All frames remain in anomaly mode, which serves debugging, and if the environment
variable GRADVIZ_FULL_TRACEBACKS is set, which serves development of gradviz.

An op that refuses its arguments shows all its frames: they come after the user's line,
not between two of them, and leaving them out would need a `try` in every op.
"""

import contextlib
import os
from types import TracebackType
from typing import Final

from gradviz.engine.graph import anomaly

#: Environment variable that keeps all frames if set to anything but 0.
FULL_TRACEBACKS: Final = "GRADVIZ_FULL_TRACEBACKS"

_OURS: Final = f"{__name__.partition('.')[0]}."


def shorten(error: BaseException, *, keeps_first: bool = True) -> None:
    """Remove gradviz's frames from a traceback; see Note [Short tracebacks].

    It makes new traceback objects, since other code may hold the existing ones.

    Args:
        error: The error in a function called from outside; ``raise`` follows.
        keeps_first: True if the first frame is that function's.
    """
    if anomaly.SWITCHED_ON or os.environ.get(FULL_TRACEBACKS, "0") not in (
        "",
        "0",
    ):
        return
    with contextlib.suppress(MemoryError):  # the user's error matters more
        error.__traceback__ = _shortened(error.__traceback__, keeps_first)


def _shortened(entry: TracebackType | None, keeps_first: bool) -> TracebackType | None:
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    if not entries:
        return None
    # Everything after the last removed frame stays. In nested backwards these are the
    # frames that the inner ones made; each outer one processes them again.
    first = 1 if keeps_first else 0
    end = len(entries) - 1
    while end > first and not _is_ours(entries[end - 1]):
        end -= 1
    kept = entries[end]
    for index in range(end - 1, -1, -1):
        one = entries[index]
        if index < first or not _is_ours(one):
            # -1 stands for bytecode without a line.
            line: int | None = one.tb_lineno
            line = -1 if line is None else line
            kept = TracebackType(kept, one.tb_frame, one.tb_lasti, line)
    return kept


def _is_ours(entry: TracebackType) -> bool:
    module = entry.tb_frame.f_globals.get("__name__")  # programs may set it
    return isinstance(module, str) and (module + ".").startswith(_OURS)
