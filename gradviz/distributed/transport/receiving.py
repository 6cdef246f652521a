"""Handling of requests and answers that come, whichever way they came."""

import abc
import contextlib
import contextvars
from collections.abc import Callable, Sequence
from typing import Any

from gradviz.backends.base import Array
from gradviz.distributed.messaging.future import Future, failed
from gradviz.distributed.transport.base import (
    HEARTBEAT_SECONDS,
    Handler,
    OnPeerDown,
    Parcel,
    Transport,
)
from gradviz.engine.graph.sync import Empty, Mailbox, Sync


class ReceivingTransport(Transport):
    """A transport that brings messages itself, and calls the handler with each."""

    def __init__(
        self,
        rank: int,
        world_size: int,
        sync: Sync,
        heartbeat_seconds: float | None = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(rank, world_size, sync, heartbeat_seconds)
        #: Guarded by `_mutex`, like what follows.
        self._handler: Handler | None = None
        #: Handlers of frames that came before `start`.
        self._early: list[Callable[[], None]] | None = []
        #: Number of threads in the handler, and the time when the last one left it.
        self._num_handling = 0
        self._quiet: Mailbox[None] = sync.mailbox()

    @abc.abstractmethod
    def vanish(self, reason: str, *, timeout: float = 0.0) -> None:
        """Be gone for everybody.

        Args:
            reason: Reason that the others are told.
            timeout: Number of seconds that it may take to say so.
        """

    def start(self, handler: Handler, on_peer_down: OnPeerDown) -> None:
        """Take requests from now on, and first those that have been waiting."""
        with self._mutex:
            self._handler, self._on_peer_down = handler, on_peer_down
            early, self._early = self._early or [], None
        for take in early:
            take()

    def close(self, *, graceful: bool = True, timeout: float = 5.0) -> None:
        """Leave; the others are notified, after pending messages."""
        with self._mutex:
            self._handler = None
            is_busy = self._num_handling > 0
        if graceful and is_busy:
            with contextlib.suppress(Empty):
                self._quiet.get(timeout=timeout)
        self.vanish("it has been shut down", timeout=timeout if graceful else 0.0)

    def take(
        self,
        src: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        reply: Callable[[Future[Parcel]], object],
    ) -> None:
        """Answer a request, when there is a handler.

        Args:
            src: Rank of the worker that asks.
            meta: The request, but for its arrays.
            arrays: Arrays beside it.
            reply: Called with the future of the answer, when that is there.
        """

        def handle() -> None:
            contextvars.Context().run(self._handle, src, meta, arrays, reply)

        with self._mutex:
            if self._early is not None:
                self._early.append(handle)
                return
        handle()

    def _handle(
        self,
        src: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        reply: Callable[[Future[Parcel]], object],
    ) -> None:
        with self._mutex:
            handler = self._handler
            if handler is None:
                return  # this worker closes: whoever waits is told that
            self._num_handling += 1
        try:
            try:
                answer = self.answer(handler, src, meta, arrays)
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                answer = failed(self.sync, error)
            answer.add_done_callback(lambda: reply(answer))
        finally:
            with self._mutex:
                self._num_handling -= 1
                is_quiet = self._handler is None and not self._num_handling
            if is_quiet:
                self._quiet.put(None)
