"""Processor time: for how much of a node's time its thread was running.

Note [Reading the clock of a thread]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Only the operating system knows the CPU time of a thread, and a query takes 0.2 to 0.9
µs, while recording an event takes 0.2. So it is not queried at both ends of every node.

* A node that takes less than `SHORT_NS` counts as running all of its time. A thread
  that is preempted, or waits for the interpreter's lock, mostly loses much more.
* At the end of a longer one the clock is read, and at the start of any node if the
  last reading is as old as `SHORT_NS`. The time between two readings minus the
  thread's CPU time is the time in which it did not run; a node is charged with the
  loss between the last reading before its start and its end.

So no two readings are closer than that, and the error of a node is no larger: a loss
just before it may count as its own. A nested backward belongs to the node from which it
was called, as it does in wall time, unless another thread runs it.
"""

import sys
from typing import Final

from gradviz.trace.format.clock import SHORT_NS, Clock

#: Value for the processor time of a thread where it is not known.
UNKNOWN_NS: Final = -1


class ThreadTime:
    """Running time of the nodes of a thread. Only that thread uses it.

    Attributes:
        began: Start of the running node.
        due: If a node starts after this, the clock is to be read.
        short: Nodes that take less count as running all of their time.

    Args:
        clock: Returns the calling thread's running time in nanoseconds; None where it
            is unknown.
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
        """Return the running time of the node that ends; `UNKNOWN_NS` if unknown."""
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
        """End a nested backward; the node goes on."""
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
        """Return the lost time at the start of the running node."""
        began, lost = self._outer[0]
        return lost if began == self.began else self._lost_ns
