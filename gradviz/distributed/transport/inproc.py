"""Workers that are threads of one process: for trying things out, and for tests.

A request is a call of the other worker's handler, on the thread that asks.
"""

from collections.abc import Sequence
from typing import Any

from gradviz.backends.base import Array
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.transport.base import Parcel, as_remote
from gradviz.distributed.transport.receiving import ReceivingTransport
from gradviz.engine.graph.sync import THREADS, Sync


class Network:
    """State shared by the workers of one process.

    Args:
        world_size: Number of workers.
        sync: The seam.

    Attributes:
        transports: One for each worker.
    """

    def __init__(self, world_size: int, sync: Sync = THREADS) -> None:
        self.transports = [
            InprocTransport(rank, world_size, sync, self) for rank in range(world_size)
        ]

    def kill(self, rank: int, reason: str = "it was killed") -> None:
        """Let a worker be gone from one moment to the other."""
        self.transports[rank].vanish(reason)


class InprocTransport(ReceivingTransport):
    """One worker's way to the others of its process.

    Args:
        rank: This worker.
        world_size: Number of workers.
        sync: The seam.
        network: All of them.
    """

    def __init__(
        self, rank: int, world_size: int, sync: Sync, network: Network
    ) -> None:
        super().__init__(rank, world_size, sync, heartbeat_seconds=None)
        self._network = network

    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Call the handler of the other worker."""

        def reply(answer: Future[Parcel]) -> None:
            if answer.error is not None:
                future.set_error(as_remote(dst, answer.error))
            else:
                reply_meta, reply_arrays = answer.value()
                future.set_result((reply_meta, [_read_only(a) for a in reply_arrays]))

        views = [_read_only(one) for one in arrays]
        self._network.transports[dst].take(self.rank, meta, views, reply)

    def vanish(self, reason: str, *, timeout: float = 0.0) -> None:
        """Be down for everybody."""
        del timeout
        with self._mutex:
            self._handler = None
        for peer in self._network.transports:
            if peer is not self:
                peer.lose(self.rank, reason)
        self.give_up("this worker has been shut down")


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
