"""Processor time: for how much of a node's time its thread was running.

Note [Reading the clock of a thread]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
How much of a processor a thread has had, only the operating system can say: 0.2 to 0.9
µs a question, where an event is recorded in 0.2. So it is not asked at both ends of
every node.

* A node that takes less than `SHORT_NS` counts as running all of its time. Whoever is
  preempted, or waits for the interpreter's lock, mostly loses much more.
* At the end of a longer one the clock is read, and at the begin of any node where the
  last reading is as old as `SHORT_NS`. What has passed between two readings less what
  the thread was given is the time in which it did not run; a node gets what was lost
  since the last reading before it began.

So no two readings are closer than that, and what is told of a node is wrong by no more:
what was lost just before it may count as its own. A nested backward belongs to the node
from which it was called, as it does in wall time; where another thread runs it, the one
that called does not.
"""

import sys
from typing import Final

from gradviz.trace.clock import Clock

#: Nodes that take less count as running all of it; nothing is known better than this.
SHORT_NS: Final = 100_000

#: What an event says whose thread's processor time nobody knows.
UNKNOWN_NS: Final = -1


class ThreadTime:
    """For how much of their time the nodes of a thread were running. Its thread alone.

    Attributes:
        began: When the node that runs was started.
        due: If a node starts after this, the clock is to be read.
        short: Nodes that take less count as running all of their time.

    Args:
        clock: How long the calling thread has been running, in nanoseconds; None where
            nobody knows.
    """

    __slots__ = (
        "_clock",
        "_last_ns",
        "_lost_ns",
        "_outer",
        "_ran_ns",
        "began",
        "due",
        "short",
    )

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        self.began = 0
        self.due = sys.maxsize if clock is None else -1
        self.short = UNKNOWN_NS if clock is None else SHORT_NS
        #: When the clock was last read, what it said, and what was lost by then.
        self._last_ns = self._ran_ns = self._lost_ns = 0
        #: Nodes in which backwards go on or did, the last one last: when each was
        #: started, and what had been lost by then.
        self._outer: list[tuple[int, int]] = [(0, 0)]

    def start(self, now: int) -> None:
        """A node starts."""
        if now > self.due:
            self.read(now)
        self.began = now

    def end(self, now: int) -> int:
        """How long the node was running that ends; `UNKNOWN_NS` if nobody knows."""
        took = now - self.began
        if took < self.short:
            return took
        if self._clock is None or not self.began:
            return UNKNOWN_NS
        lost_before = self._lost_before()
        self.read(now)
        return max(took - (self._lost_ns - lost_before), 0)

    def enter(self) -> None:
        """The node that runs calls a backward, which runs nodes of its own."""
        self._outer.append((self.began, self._lost_before()))

    def leave(self) -> None:
        """That backward is over, and the node goes on."""
        if len(self._outer) > 1:
            self._outer[0] = self._outer.pop()
            self.began = self._outer[0][0]

    def read(self, now: int) -> None:
        """Find out how long the thread has not been running since the last time."""
        if self._clock is None:
            return
        ran_ns = self._clock()
        if self._last_ns:
            lost = (now - self._last_ns) - (ran_ns - self._ran_ns)
            self._lost_ns += max(lost, 0)
        self._last_ns, self._ran_ns, self.due = now, ran_ns, now + SHORT_NS

    def _lost_before(self) -> int:
        """What had been lost when the node that runs was started."""
        began, lost = self._outer[0]
        return lost if began == self.began else self._lost_ns
