"""Passes of PyTorch under way: those that are counted, and those that began earlier."""

import sys
import threading
from types import CodeType, FrameType

from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.thread_frames import outwards, thread_frames


class CountedPasses:
    """All passes that PyTorch runs, also unheard ones. Has no lock of its own.

    Attributes:
        seen: Passes under way that the profiler sees.
        unseen: Passes under way that it was not to see.
        ended: Passes that are over, since it was started.
        lost: Passes that are over, and whose events are lost.
    """

    def __init__(self) -> None:
        self.seen: set[WatchedPass] = set()
        self.unseen: set[WatchedPass] = set()
        self.ended: list[WatchedPass] = []
        self.lost: list[WatchedPass] = []

    def begin(self, one: WatchedPass, why_unseen: str) -> None:
        """Count one in."""
        one.unseen = _because(why_unseen) if why_unseen else ""
        (self.unseen if why_unseen else self.seen).add(one)

    def end(self, one: WatchedPass, *, is_on: bool) -> None:
        """Count one out, also if it was not counted, or is for a second time.

        Args:
            one: The pass.
            is_on: True if the profiler runs.
        """
        if one in self.seen and one not in self.ended:
            self.ended.append(one)
        elif one in self.unseen and is_on:
            self.ended.append(one.unheard())  # its functions may have been seen
        self.unseen.discard(one)
        self.seen.discard(one)

    def take_ended(self) -> list[WatchedPass]:
        """Those that have ended."""
        ended, self.ended = self.ended, []
        return ended

    def take_lost(self) -> list[WatchedPass]:
        """Those that are lost."""
        lost, self.lost = self.lost, []
        return lost

    def lose(self, passes: list[WatchedPass], why: str) -> None:
        """Mark the events of passes that have ended as lost."""
        for one in passes:
            one.unseen = _because(why)
        self.lost += passes

    def hide(self, why: str) -> None:
        """Mark the events of all passes as lost, and stop seeing those under way."""
        self.lose(self.take_ended(), why)
        for one in self.seen:
            one.unseen = _because(why)
        self.unseen |= self.seen
        self.seen.clear()

    def are_around(self) -> bool:
        """Return whether any that are seen are around this thread's work."""
        return any(map(_is_here, self.seen))

    def are_only_around(self) -> bool:
        """Return whether all that are seen are."""
        around: set[WatchedPass] = set()
        for seen in self.seen:
            one: WatchedPass | None = seen if _is_here(seen) else None
            while one is not None:
                around.add(one)
                one = one.parent
        return self.seen <= around


class UncountedPasses:
    """Passes that began before PyTorch's function was replaced: is any under way?

    Attributes:
        may_exist: True if threads have to be searched for them.

    Args:
        original: PyTorch's function.
        own: The one that calls PyTorch's for passes that are counted.
    """

    def __init__(self, original: CodeType, own: CodeType) -> None:
        self.may_exist = False
        self._original = original
        self._own = own

    def exist(self) -> bool:
        """Return whether one is under way, on whatever thread."""
        if self.may_exist:
            self.may_exist = any(
                _calls(frame, self._original, self._own)
                for frame in (sys._getframe(1), *thread_frames().values())
            )
        return self.may_exist


def _is_here(one: WatchedPass) -> bool:
    return one.thread == threading.get_native_id()


def _because(why: str) -> str:
    """Return the message on a pass whose nodes are not seen."""
    return f"{why}, so none of its nodes could be seen"


def _calls(frame: FrameType | None, function: CodeType, own: CodeType) -> bool:
    """Return whether a thread is inside of `function`, and not by way of `own`."""
    inner = None
    for outer in outwards(frame):
        if inner is function and outer.f_code is not own:
            return True
        inner = outer.f_code
    return inner is function
