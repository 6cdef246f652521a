"""Notices that no pass makes progress, and says where everything stands."""

from collections.abc import Callable

from gradviz.engine.inspection import progress
from gradviz.engine.passes import Passes
from gradviz.engine.sync import Empty, Mailbox, Sync


class Watchdog:
    """A thread that looks at the passes under way now and then.

    It cannot tell a deadlock from a node that takes long, so it only reports: once for
    each standstill, when for `seconds` no gradient has reached any node.

    Args:
        sync: The seam.
        passes: What to look at.
        seconds: How long a standstill must last, and how often to look.
        report: Called on the watchdog's thread with no lock held.
    """

    def __init__(
        self,
        sync: Sync,
        passes: Passes,
        seconds: float,
        report: Callable[[float], None],
    ) -> None:
        self._passes = passes
        self._seconds = seconds
        self._report = report
        self._stop: Mailbox[None] = sync.mailbox()
        sync.spawn(self._watch, "gv_watchdog")

    def stop(self) -> None:
        """End the thread; does not wait for it."""
        self._stop.put(None)

    def _watch(self) -> None:
        before: object = None
        reported: object = None
        while True:
            try:
                self._stop.get(timeout=self._seconds)
            except Empty:
                now = progress(self._passes.under_way())
                if now and now == before and now != reported:
                    reported = now
                    self._report(self._seconds)
                before = now
            else:
                return
