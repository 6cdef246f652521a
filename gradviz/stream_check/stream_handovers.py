"""Start of hearing hand-overs between threads: once they order anything.

Note [Hand-overs before the first stream]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
To hear hand-overs, locks and queues of the whole process are replaced by ones that cost
twice as much or more. They serve only the check of streams, so a recording hears none
until the program makes a stream besides the default ones.

Before that each device does all its work in order, whichever thread launches it, and a
copy between devices waits on both sides. No wait of a thread adds anything to that
order. The waits of a thread until then may still matter to the work of the new stream.
All that any thread knows at that moment counts as known to all of them, as a check does
with everything before it (`StreamClocks`). So a check may miss a race of a thread that
did not know of the default stream's work, but it invents none.

Three things have to hold so that none is invented afterwards, either:

* A thread that was there before is not heard to enter its calls: it may wait in the
  `get` that was there before, and be woken by a `put` that is heard. It counts as
  knowing everything at any time. A thread that joins it learns everything, too: its
  end is not heard (`EVERYTHING`).
* A lock that was there before is never heard. If the program has one, or a condition
  that some thread is inside of, its threads count as one (`silent_locks`). It is
  searched for in the variables of all threads.
* All is replaced before the recording says that it hears everything.

Host memory that a device copies from or to is used by threads themselves, also where
there is only the default stream. A recording then counts all threads as one, and misses
accesses that come too early; a check (`check_streams`) hears hand-overs from its start.
PyTorch's streams are not seen, so its recordings hear nothing.
"""

import sys
import threading
from collections.abc import Callable

from gradviz.trace.reporting.made_streams import on_first_stream


class StreamHandovers:
    """Has hand-overs reported for one recording, once the program has a stream.

    Args:
        heard: Called when it begins, by the thread that made the stream.
    """

    def __init__(self, heard: Callable[[], None]) -> None:
        self._heard = heard
        self._lock = threading.Lock()  # guards both below; nothing is called with it
        self._is_over = False
        self._is_heard = False

    def start(self) -> None:
        """Begin now if there is a stream, else with the first one."""
        on_first_stream(self._begin)

    def stop(self) -> None:
        """End it; does nothing the second time."""
        with self._lock:
            was_heard, self._is_heard = self._is_heard, False
            self._is_over = True
        if was_heard:
            from gradviz.stream_check import thread_handovers  # noqa: PLC0415

            thread_handovers.unlisten()

    def _begin(self) -> None:
        # Loaded where a program makes streams, which one of PyTorch never does.
        from gradviz.stream_check import thread_handovers  # noqa: PLC0415
        from gradviz.stream_check.silent_locks import has_silent_lock  # noqa: PLC0415
        from gradviz.thread_frames import thread_frames  # noqa: PLC0415

        if has_silent_lock(sys._getframe(1), *thread_frames().values()):
            return
        thread_handovers.listen()
        with self._lock:
            is_over = self._is_over  # it may have been stopped meanwhile
            self._is_heard = not is_over
        if is_over:
            thread_handovers.unlisten()
        else:
            self._heard()
