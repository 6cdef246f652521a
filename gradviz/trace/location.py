"""Which line of the user's program made a node, or launched a kernel."""

import sys
from collections.abc import Callable, Hashable
from types import CodeType, FrameType
from typing import Final, Generic, TypeVar

#: What stands for a text.
Text = TypeVar("Text", bound=Hashable)

#: Modules whose frames are never the user's: gradviz itself, libraries that call back
#: into it, and the first frames of a thread.
_NOT_THE_USERS: Final = frozenset({"gradviz", "numpy", "threading", "torch"})

_MAX_KNOWN: Final = 100_000


class Locations(Generic[Text]):
    """Finds the innermost frame of the stack that belongs to the user's program.

    A frame computes its line number by walking a table from the start of its code,
    which takes microseconds in a long module, so lines are remembered by instruction.
    The code object is remembered with it: while it lives nothing else has its id.

    Args:
        intern: What stands for a text, such as `Strings.intern`.
    """

    def __init__(self, intern: Callable[[str], Text]) -> None:
        self._intern = intern
        self._known: dict[tuple[int, int], tuple[Text, CodeType]] = {}
        self._is_users: dict[str, bool] = {}

    def of_caller(self, skipped: int = 0) -> Text:
        """What stands for ``path:line``, or for an empty text. Any thread.

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
                return self._of(frame) if known is None else known[0]
            frame = frame.f_back
        return self._intern("")

    def known(self) -> set[Text]:
        """What stands for the texts that are remembered."""
        return {text for text, _ in list(self._known.values())}

    def _of(self, frame: FrameType) -> Text:
        code = frame.f_code
        text = self._intern(f"{code.co_filename}:{frame.f_lineno}")
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[id(code), frame.f_lasti] = (text, code)
        return text

    def _belongs_to_user(self, frame: FrameType) -> bool:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        answer = package not in _NOT_THE_USERS
        self._is_users[frame.f_code.co_filename] = answer
        return answer


class NoLocations(Locations[Text]):
    """Looks for nothing: every caller is nowhere."""

    def of_caller(self, skipped: int = 0) -> Text:
        """What stands for an empty text."""
        del skipped
        return self._intern("")


class Stacks(Locations[Text]):
    """Finds all frames of the stack that belong to the user's program."""

    def __init__(self, intern: Callable[[str], Text]) -> None:
        super().__init__(intern)
        self._stacks: dict[tuple[int, ...], tuple[Text, list[CodeType]]] = {}

    def of_caller(self, skipped: int = 0) -> Text:
        """What stands for ``path:line < path:line``, the innermost first."""
        is_users = self._is_users
        places: list[int] = []
        frames: list[FrameType] = []
        frame: FrameType | None = sys._getframe(1 + skipped)
        while frame is not None:
            answer = is_users.get(frame.f_code.co_filename)
            if answer or (answer is None and self._belongs_to_user(frame)):
                places += (id(frame.f_code), frame.f_lasti)
                frames.append(frame)
            frame = frame.f_back
        known = self._stacks.get(tuple(places))
        return self._of_all(places, frames) if known is None else known[0]

    def known(self) -> set[Text]:
        """What stands for the stacks that are remembered."""
        return {text for text, _ in list(self._stacks.values())}

    def _of_all(self, places: list[int], frames: list[FrameType]) -> Text:
        lines = (f"{one.f_code.co_filename}:{one.f_lineno}" for one in frames)
        text = self._intern(" < ".join(lines))
        if len(self._stacks) >= _MAX_KNOWN:
            self._stacks.clear()
        self._stacks[tuple(places)] = (text, [one.f_code for one in frames])
        return text
