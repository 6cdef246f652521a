"""Values that a worker keeps for others, which have references to them."""

from collections import OrderedDict
from typing import Any, Final

from gradviz.distributed.messaging.future import Future
from gradviz.engine.graph.sync import Sync

#: Number of ids that a worker remembers of values it no longer keeps.
MAX_GONE: Final = 10_000


class Kept:
    """The values of one worker that others refer to, by id.

    Note [References]
    ~~~~~~~~~~~~~~~~~
    Each reference, on any worker, is a *fork* with an id of its own. A value is kept as
    long as one of its forks is. A worker that passes a reference on notifies the owner
    of the new fork, and keeps its own until the owner has answered, so that there is
    always at least one. The notices of a fork and of its end may arrive in either
    order, and each of them twice: ends are remembered, and an ended fork is not held
    again.

    Args:
        sync: The seam.
    """

    def __init__(self, sync: Sync) -> None:
        self._sync = sync
        #: Guards what follows.
        self._mutex = sync.lock()
        self._values: dict[int, Future[Any]] = {}
        self._forks: dict[int, set[int]] = {}
        self._ended: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._gone: OrderedDict[int, None] = OrderedDict()

    def future(self, rref: int) -> Future[Any]:
        """The value of that id, which may be yet to come.

        Raises:
            LookupError: It is gone.
        """
        with self._mutex:
            if rref in self._gone:
                raise LookupError(f"nothing is kept as rref {rref} any more")
            if rref not in self._values:
                self._values[rref] = Future(self._sync)
            return self._values[rref]

    def hold(self, rref: int, fork: int) -> bool:
        """Keep a value for one more reference; returns whether that has not ended."""
        with self._mutex:
            if (rref, fork) in self._ended:
                return False
            self._forks.setdefault(rref, set()).add(fork)
            return True

    def drop(self, rref: int, fork: int) -> None:
        """Keep a value for one reference less."""
        with self._mutex:
            self._ended[rref, fork] = None
            while len(self._ended) > MAX_GONE:
                self._ended.popitem(last=False)
            forks = self._forks.get(rref, set())
            if fork not in forks:
                return
            forks.remove(fork)
            if forks:
                return
            del self._forks[rref]
            value = self._values.pop(rref, None)
            self._gone[rref] = None
            while len(self._gone) > MAX_GONE:
                self._gone.popitem(last=False)
        del value  # anybody's code may run: not under the lock

    def __len__(self) -> int:
        with self._mutex:
            return len(self._values)
