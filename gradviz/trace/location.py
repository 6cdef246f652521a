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

    def of_caller(self, skipped: int = 0) -> int:
        """The index of ``path:line``, or of an empty text. Any thread.

        Called for every node that is made, some six frames below the user's: so the
        loop is written out.

        Args:
            skipped: So many of the callers need not be looked at, which saves making
                objects of their frames.
        """
        is_users = self._is_users
        frame: FrameType | None = sys._getframe(1 + skipped)
        while frame is not None:
            code = frame.f_code
            answer = is_users.get(code.co_filename)
            if answer or (answer is None and self._belongs_to_user(frame)):
                known = self._known.get((id(code), frame.f_lasti))
                return self._index(frame) if known is None else known[0]
            frame = frame.f_back
        return self._strings.intern("")

    def _index(self, frame: FrameType) -> int:
        code = frame.f_code
        index = self._strings.intern(f"{code.co_filename}:{frame.f_lineno}")
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[id(code), frame.f_lasti] = (index, code)
        return index

    def _belongs_to_user(self, frame: FrameType) -> bool:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        answer = package not in _NOT_THE_USERS
        self._is_users[frame.f_code.co_filename] = answer
        return answer
