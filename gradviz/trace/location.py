"""Which line of the user's program made a node."""

import sys
from types import CodeType, FrameType
from typing import Final

from gradviz.trace.strings import Strings

#: Modules whose frames are never the user's: gradviz itself, NumPy's wrappers that
#: call back into it, and the first frames of a thread.
_NOT_THE_USERS: Final = frozenset({"gradviz", "numpy", "threading"})

_MAX_KNOWN: Final = 100_000


class Locations:
    """Finds the innermost frame of the stack that belongs to the user's program.

    A frame computes its line number by walking a table from the start of its code,
    which takes microseconds in a long module, so lines are remembered by instruction.
    The code object is remembered with it: while it lives nothing else has its id.
    """

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._known: dict[tuple[int, int], tuple[int, CodeType]] = {}
        self._is_users: dict[str, bool] = {}

    def of_caller(self) -> int:
        """The index of ``path:line``, or of an empty text. Any thread."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not self._belongs_to_user(frame):
            frame = frame.f_back
        if frame is None:
            return self._strings.intern("")
        code = frame.f_code
        known = self._known.get((id(code), frame.f_lasti))
        if known is not None:
            return known[0]
        index = self._strings.intern(f"{code.co_filename}:{frame.f_lineno}")
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[id(code), frame.f_lasti] = (index, code)
        return index

    def _belongs_to_user(self, frame: FrameType) -> bool:
        path = frame.f_code.co_filename
        answer = self._is_users.get(path)
        if answer is None:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            answer = self._is_users[path] = package not in _NOT_THE_USERS
        return answer
