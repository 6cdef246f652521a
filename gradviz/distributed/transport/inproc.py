"""Workers that are threads of one process: for trying things out, and for tests.

A request is a call of the other worker's handler, on the thread that asks.
"""

import contextlib
import contextvars
from collections.abc import Callable, Sequence
from typing import Any

from gradviz.backends.base import Array
from gradviz.distributed.future import Future
from gradviz.distributed.transport.base import (
    Handler,
    OnPeerDown,
    Parcel,
    Transport,
    as_remote,
)
from gradviz.engine.sync import THREADS, Empty, Mailbox, Sync


class Network:
    """What the workers of one process share.

    Args:
        world_size: How many there are.
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


class InprocTransport(Transport):
    """One worker's way to the others of its process.

    Args:
        rank: This worker.
        world_size: How many there are.
        sync: The seam.
        network: All of them.
    """

    def __init__(
        self, rank: int, world_size: int, sync: Sync, network: Network
    ) -> None:
        super().__init__(rank, world_size, sync, heartbeat_seconds=None)
        self._network = network
        self._handler: Handler | None = None
        #: What came before `start`. Guarded by `_mutex`, like the handlers, and how
        #: many threads are in one.
        self._early: list[Callable[[], None]] | None = []
        self._num_handling = 0
        self._quiet: Mailbox[None] = sync.mailbox()

    def start(self, handler: Handler, on_peer_down: OnPeerDown) -> None:
        """Take requests, and first those that have been waiting."""
        with self._mutex:
            self._handler, self._on_peer_down = handler, on_peer_down
            early, self._early = self._early or [], None
        for take in early:
            take()

    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Call the handler of the other worker."""
        self._network.transports[dst].receive(self.rank, meta, arrays, future)

    def receive(
        self,
        src: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Call this worker's handler, when there is one."""

        def take() -> None:
            contextvars.Context().run(self._handle, src, meta, arrays, future)

        with self._mutex:
            if self._early is not None:
                self._early.append(take)
                return
        take()

    def close(self, *, graceful: bool = True, timeout: float = 5.0) -> None:
        """Leave; the others are told, after what they are just being told."""
        with self._mutex:
            self._handler = None
            is_busy = self._num_handling > 0
        if graceful and is_busy:
            with contextlib.suppress(Empty):
                self._quiet.get(timeout=timeout)
        self.vanish("it has been shut down")

    def vanish(self, reason: str) -> None:
        """Be down for everybody."""
        with self._mutex:
            self._handler = None
        for peer in self._network.transports:
            if peer is not self:
                peer.lose(self.rank, reason)
        self.give_up("this worker has been shut down")

    def _handle(
        self,
        src: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        with self._mutex:
            handler = self._handler
            if handler is None:
                return  # it is gone: whoever waits is told by `lose`
            self._num_handling += 1
        try:
            self._answer(handler, src, meta, arrays, future)
        finally:
            with self._mutex:
                self._num_handling -= 1
                is_quiet = self._handler is None and not self._num_handling
            if is_quiet:
                self._quiet.put(None)

    def _answer(
        self,
        handler: Handler,
        src: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        try:
            copies = [_read_only(one) for one in arrays]
            answer = self.answer(handler, src, meta, copies)
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            future.set_error(as_remote(self.rank, error))
            return

        def reply() -> None:
            if answer.error is not None:
                future.set_error(as_remote(self.rank, answer.error))
            else:
                reply_meta, reply_arrays = answer.value()
                future.set_result((reply_meta, [_read_only(a) for a in reply_arrays]))

        answer.add_done_callback(reply)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view
