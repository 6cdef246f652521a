"""Which line of the user's program made a node, or launched a kernel."""

from collections.abc import Callable, Hashable
from sys import _getframe  # in one step: each node asks
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

    def of_caller(self) -> Text:
        """What stands for ``path:line``, or for an empty text. Any thread."""
        frame = _users_frame(_getframe(), self._is_users)
        if frame is None:
            return self._intern("")
        known = self._known.get((id(frame.f_code), frame.f_lasti))
        return self._of(frame) if known is None else known[0]

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


class NoLocations(Locations[Text]):
    """Looks for nothing: every caller is nowhere."""

    def of_caller(self) -> Text:
        """What stands for an empty text."""
        return self._intern("")


class Stacks(Locations[Text]):
    """Finds all frames of the stack that belong to the user's program."""

    def __init__(self, intern: Callable[[str], Text]) -> None:
        super().__init__(intern)
        self._stacks: dict[tuple[int, ...], tuple[Text, list[CodeType]]] = {}

    def of_caller(self) -> Text:
        """What stands for ``path:line < path:line``, the innermost first."""
        places: list[int] = []
        frames: list[FrameType] = []
        frame = _users_frame(_getframe(), self._is_users)
        while frame is not None:
            places += (id(frame.f_code), frame.f_lasti)
            frames.append(frame)
            frame = _users_frame(frame.f_back, self._is_users)
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


def _users_frame(
    frame: FrameType | None, is_users: dict[str, bool]
) -> FrameType | None:
    """The innermost of a stack that belongs to the user's program, None if none does.

    Called for every node that is made, some six frames below the user's: so the loop is
    written out. It skips nobody, for what is compiled has no frame.

    Args:
        frame: The innermost of all.
        is_users: Of files that were looked at, whether they are the user's.
    """
    while frame is not None:
        name = frame.f_code.co_filename
        answer = is_users.get(name)
        if answer is None:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            answer = is_users[name] = package not in _NOT_THE_USERS
        if answer:
            return frame
        frame = frame.f_back
    return None
