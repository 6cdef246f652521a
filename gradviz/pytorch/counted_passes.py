"""The passes that are under way, and those that the profiler has seen to their end."""

import threading

from gradviz.pytorch.watched_pass import WatchedPass


class CountedPasses:
    """All that PyTorch runs, also those that nobody listens to. Has no lock of its own.

    Attributes:
        seen: Those under way that the profiler sees.
        unseen: Those under way that it was not to see.
        ended: Those that are over, since it was started.
        lost: Those that are over, and of which what was seen is lost.
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
            is_on: Whether the profiler runs.
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
        """What was seen of passes that have ended is lost."""
        for one in passes:
            one.unseen = _because(why)
        self.lost += passes

    def hide(self, why: str) -> None:
        """What was seen of all is lost, and those under way are not seen any more."""
        self.lose(self.take_ended(), why)
        for one in self.seen:
            one.unseen = _because(why)
        self.unseen |= self.seen
        self.seen.clear()

    def are_around(self) -> bool:
        """Whether any that are seen go on around what this thread does."""
        return any(map(_is_here, self.seen))

    def are_only_around(self) -> bool:
        """Whether all that are seen do."""
        around: set[WatchedPass] = set()
        for seen in self.seen:
            one: WatchedPass | None = seen if _is_here(seen) else None
            while one is not None:
                around.add(one)
                one = one.parent
        return self.seen <= around


def _is_here(one: WatchedPass) -> bool:
    return one.thread == threading.get_native_id()


def _because(why: str) -> str:
    """What is said of a pass whose nodes are not seen."""
    return f"{why}, so none of its nodes could be seen"
