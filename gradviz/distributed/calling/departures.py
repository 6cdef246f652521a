"""Workers that are done wait for those that are not: their answers may be needed."""

from collections.abc import Callable

from gradviz.distributed.messaging.future import Future
from gradviz.engine.graph.sync import Sync


class Departures:
    """Workers that want to leave; the first live worker keeps the list for all.

    Args:
        sync: The seam.
        alive: Says of each worker whether it is not known to be down.
    """

    def __init__(self, sync: Sync, alive: Callable[[], dict[int, bool]]) -> None:
        self._sync = sync
        self._alive = alive
        #: Guards what follows.
        self._mutex = sync.lock()
        self._leaving: dict[int, Future[None]] = {}

    def take_leave(self, worker: int) -> Future[None]:
        """Done when all workers want to leave, or are down."""
        answer: Future[None] = Future(self._sync)
        with self._mutex:
            self._leaving[worker] = answer
        self._let_go()
        return answer

    def peer_is_down(self) -> None:
        """Wait for one worker less."""
        with self._mutex:
            is_empty = not self._leaving
        if not is_empty:
            self._let_go()

    def _let_go(self) -> None:
        alive = {rank for rank, is_alive in self._alive().items() if is_alive}
        with self._mutex:
            if not alive <= self._leaving.keys():
                return
            leaving, self._leaving = self._leaving, {}
        # The first one last: it closes when it is told, and could not tell the others.
        for rank in sorted(leaving, reverse=True):
            leaving[rank].set_result(None)
