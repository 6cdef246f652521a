"""A transport between processes: requests and answers become frames, and numbers."""

import abc
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.distributed.messaging.failures import remote_error
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.transport.base import Parcel, as_remote, error_words
from gradviz.distributed.transport.frames import (
    AnyFrame,
    Ask,
    Encoded,
    Failure,
    FrameError,
    Reply,
    encode,
    sendable,
)
from gradviz.distributed.transport.receiving import ReceivingTransport
from gradviz.engine.graph.sync import Sync


class FramedTransport(ReceivingTransport):
    """A transport that brings frames to others, and is brought theirs."""

    def __init__(
        self, rank: int, world_size: int, sync: Sync, heartbeat_seconds: float
    ) -> None:
        super().__init__(rank, world_size, sync, heartbeat_seconds)
        self._requests = itertools.count()
        #: Guarded by `_mutex`.
        self._asked: dict[int, Future[Parcel]] = {}

    @abc.abstractmethod
    def send(
        self, peer: int, encoded: Encoded, is_wanted: Callable[[], bool] = lambda: True
    ) -> None:
        """Queue a frame, to be sent unless it is unwanted when its turn comes."""

    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Send a request, unless it is to this worker itself."""
        if dst == self.rank:
            self.take(dst, meta, _copies(arrays), partial(self._answer_own, future))
            return
        request = next(self._requests)
        try:
            encoded = encode(Ask(request, meta), arrays)
        except FrameError as error:
            future.set_error(error)
            return
        with self._mutex:
            self._asked[request] = future
        future.add_done_callback(lambda: self._asked_of(request))
        self.send(dst, encoded, lambda: not future.done())

    def receive(self, peer: int, frame: AnyFrame, arrays: Sequence[Array]) -> None:
        """Deal with a frame that has come.

        Raises:
            FrameError: It is none that comes there.
        """
        match frame:
            case Ask(request=request, meta=meta):
                self.take(peer, meta, arrays, partial(self._answer, peer, request))
            case Reply(request=request, meta=meta):
                if (future := self._asked_of(request)) is not None:
                    future.set_result((meta, arrays))
            case Failure(request=request, kind=kind, text=text, traceback=lines):
                if (future := self._asked_of(request)) is not None:
                    future.set_error(remote_error(peer, kind, text, lines))
            case _:
                raise FrameError(f"a {type(frame).__name__} came where none is due")

    def _asked_of(self, request: int) -> Future[Parcel] | None:
        """Remove and return the future of a request; None if nobody waits for it."""
        with self._mutex:
            return self._asked.pop(request, None)

    def _answer(self, peer: int, request: int, answer: Future[Parcel]) -> None:
        """Send a handler's result, or its error."""
        error: BaseException | None = answer.error
        if error is None:
            try:
                meta, arrays = answer.value()
                self.send(peer, encode(Reply(request, meta), arrays))
            except Exception as failure:  # noqa: BLE001 - whoever waits is told
                error = failure
        if error is not None:
            words = map(sendable, error_words(error))
            self.send(peer, encode(Failure(request, *words)))

    def _answer_own(self, future: Future[Parcel], answer: Future[Parcel]) -> None:
        if answer.error is not None:
            future.set_error(as_remote(self.rank, answer.error))
        else:
            meta, arrays = answer.value()
            future.set_result((meta, _copies(arrays)))


def _copies(arrays: Sequence[Array]) -> list[Array]:
    return [np.array(one, order="C") for one in arrays]
