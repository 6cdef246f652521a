"""The executor of tests and proofs: no threads, and as late as possible."""

import random
import sys
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Final

import numpy as np

from gradviz.backends.simulated.devices.latency import Latency
from gradviz.backends.simulated.devices.work import LOCK, StreamQueue, Work

#: Frequency with which a stream that has just worked changes its place among the
#: others.
_CHANGES: Final = 1 / 8


class Stepped:
    """Does nothing until a thread waits, and then a seed's choice.

    Who waits carries out work himself, one piece after the other: always that of the
    stream with the highest priority whose next piece need not wait. Priorities are
    random and change at random, so a stream may be far ahead of another or starve for
    long: any order is possible that streams and events allow, and those in which two
    streams are far apart are as likely as those where they take turns.

    The same launches and the same waits have the same order every time: each stream has
    random numbers of its own, by the seed and by how many streams had work before it.
    Poison for free memory, which may come whenever garbage is collected, draws none.

    Args:
        seed: Number that decides the order.
        latency: Asked before each kernel how long it takes, in modeled time.

    Note [Priorities find more than coins]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A missing wait shows if one stream is ahead of the other by as many pieces as the
    program has there. Fair coins make that exponentially unlikely; random priorities
    that change seldom make it likely (Burckhardt et al., ASPLOS 2010).
    """

    def __init__(
        self, seed: int, latency: Callable[[], Latency | None] = lambda: None
    ) -> None:
        self._seed = seed
        self._latency = latency
        # Guarded by `LOCK`, as are all lanes; who carries out work holds it, too.
        self._lanes: list[SteppedLane] = []
        self._num_begun = 0

    def open(self, stream: StreamQueue) -> "SteppedLane":
        """A lane with a priority of its own."""
        lane = SteppedLane(self, stream)
        with LOCK:
            self._lanes.append(lane)
        return lane

    def wait(self, work: Work) -> None:
        """Carry out work, of any stream, until it is done.

        Raises:
            RuntimeError: It waits, by way of others, for itself.
        """
        with LOCK:
            while not work.is_done:
                if not self._step():
                    raise RuntimeError(
                        f"work {work.name!r} of stream {work.queue.text} can never be "
                        f"done: every stream waits for another"
                    )

    def poll(self, work: Work) -> bool:
        """Return whether the work is done; if not, carry out one piece of work."""
        with LOCK:
            if not work.is_done:
                self._step()
        return work.is_done

    def close(self, lane: "SteppedLane") -> None:
        """Carry out the work of a lane, or drop it if the device is lost; forget it."""
        with LOCK:
            while lane.is_lost and lane.is_ready():
                lane.pending[0].carry_out()
            if lane.pending:
                self.wait(lane.pending[-1])
            if lane in self._lanes:
                self._lanes.remove(lane)

    def submit(self, lane: "SteppedLane", work: Work) -> None:
        """Add work at the end of a lane."""
        with LOCK:
            if lane.random is None and not work.is_poison:
                lane.random = random.Random(f"{self._seed} {self._num_begun}")
                lane.priority = lane.random.random()
                self._num_begun += 1
            lane.pending.append(work)

    def _step(self) -> bool:
        """Carry out one piece of work; False if there is none that may go."""
        ready = [lane for lane in self._lanes if lane.is_ready()]
        if not ready:
            return False
        lane = max(ready, key=lambda lane: lane.priority)
        work = lane.pending[0]
        with np.errstate(all="ignore"):
            work.carry_out(self._latency())
        if lane.random and not work.is_poison and lane.random.random() < _CHANGES:
            lane.priority = lane.random.random()
        return True


class SteppedLane:
    """The work that a stream has. Guarded by `LOCK`.

    Attributes:
        pending: Oldest first; those done may still be there.
        priority: Of all streams that may go on, the one with the highest does.
        random: Generator of priorities; None before the first work of a program's.
    """

    def __init__(self, executor: Stepped, stream: StreamQueue) -> None:
        self._executor = executor
        self._stream = stream
        self.pending: deque[Work] = deque()
        self.priority = 0.0
        self.random: random.Random | None = None

    def submit(self, work: Work) -> None:
        """Add work at the end."""
        self._executor.submit(self, work)

    def close(self) -> None:
        """Carry out the remaining work."""
        self._executor.close(self)

    @property
    def is_lost(self) -> bool:
        """Return whether the device is lost, so that nothing waits any more."""
        return bool(self._stream.device.lost)

    def is_ready(self) -> bool:
        """Return whether its next piece of work may be carried out.

        Finished work is removed here, and not where it is carried out, which may be
        interrupted.
        """
        while self.pending:
            head = self.pending[0]
            if head.frame is not None:
                if _is_below_us(head.frame):  # a finalizer waits in a kernel
                    return False
                head.finish()  # Ctrl-C came in its last lines
            if not head.is_done:
                break
            self.pending.popleft()
        if not self.pending:
            return False
        before = self.pending[0].before
        return before is None or before.is_done or self.is_lost


def _is_below_us(wanted: FrameType) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not wanted:
        frame = frame.f_back
    return frame is not None
