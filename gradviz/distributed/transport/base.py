"""What every transport does, and what it promises.

Note [The contract of a transport]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
1. Every future that `Transport.request` returns gets an answer: what the handler made,
   its error as a `RemoteError`, `PeerDownError` or `RpcTimeoutError`.
2. No thread is held while a handler's future has no answer.
3. No order is promised, but each request is delivered at most once.
4. Arrays that are received may be read-only: who wants to change one copies it. Arrays
   that are sent must not be changed until the future has its answer.
5. What goes over is JSON and raw buffers with their dtype and shape. Nothing is
   unpickled.
6. A peer that is down stays down. Who gives no sign of life is down.

Note [Heartbeats]
~~~~~~~~~~~~~~~~~
A process that is stopped, or a machine that is unplugged, closes no connection, so
nothing below this module says that it is gone. So workers ask each other for a sign of
life. Any answer is one, to whatever request; and to a ping, which no handler sees, a
worker answers even if all its threads are busy. A ping that is lost does no harm while
others come back.
"""

import abc
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from gradviz.backends.base import Array
from gradviz.distributed.failures import (
    GivenUpError,
    PeerDownError,
    RemoteError,
    RpcTimeoutError,
    remote_error,
)
from gradviz.distributed.future import Future, completed
from gradviz.distributed.thread_names import thread_name
from gradviz.distributed.timers import Timers
from gradviz.engine.sync import Sync

#: What goes over: JSON, and arrays beside it.
Parcel: TypeAlias = tuple[dict[str, Any], Sequence[Array]]

#: Called with the sender, its JSON and its arrays; must not wait.
Handler: TypeAlias = Callable[[int, dict[str, Any], Sequence[Array]], Future[Parcel]]

#: Called with a peer that is down, and why.
OnPeerDown: TypeAlias = Callable[[int, str], object]


#: How often workers ask each other for a sign of life.
HEARTBEAT_SECONDS: Final = 1.0

#: After how many of them without any a worker is down.
_MISSED_HEARTBEATS: Final = 3

_PING: Final = {"type": "Ping"}


class Transport(abc.ABC):
    """One worker's way to the others; see Note [The contract of a transport].

    Args:
        rank: This worker.
        world_size: How many there are.
        sync: The seam.
        heartbeat_seconds: See Note [Heartbeats]; None for a transport on which nobody
            can be silent.

    Attributes:
        rank: As given, like the others.
        timers: For deadlines.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        sync: Sync,
        heartbeat_seconds: float | None = HEARTBEAT_SECONDS,
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self.sync = sync
        self.heartbeat_seconds = heartbeat_seconds
        self.timers = Timers(sync, thread_name(rank, "timers"))
        #: Guards what follows.
        self._mutex = sync.lock()
        self._down: dict[int, str] = {}
        self._pending: dict[Future[Parcel], int] = {}
        #: When a peer has last answered.
        self._heard_ns: dict[int, int] = {}
        self._on_peer_down: OnPeerDown | None = None

    @abc.abstractmethod
    def start(self, handler: Handler, on_peer_down: OnPeerDown) -> None:
        """Take requests from now on."""

    @abc.abstractmethod
    def close(self, *, graceful: bool = True, timeout: float = 5.0) -> None:
        """Take no more requests, and let nobody wait for an answer; idempotent."""

    @abc.abstractmethod
    def deliver(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array],
        future: Future[Parcel],
    ) -> None:
        """Bring a request to a worker that is not known to be down."""

    def request(
        self,
        dst: int,
        meta: dict[str, Any],
        arrays: Sequence[Array] = (),
        timeout: float | None = None,
    ) -> Future[Parcel]:
        """Ask a worker, which may be this one.

        Args:
            dst: Its rank.
            meta: What JSON knows.
            arrays: See Note [The contract of a transport].
            timeout: How many seconds the answer may take; None is for ever.

        Raises:
            ValueError: There is no such worker.
        """
        if not 0 <= dst < self.world_size:
            raise ValueError(
                f"no worker has rank {dst}: there are {self.world_size}, from 0"
            )
        future: Future[Parcel] = Future(self.sync)
        with self._mutex:
            reason = self._down.get(dst)
            if reason is None:
                self._pending[future] = dst
        if reason is not None:
            future.set_error(_down(dst, reason))
            return future
        future.add_done_callback(lambda: self._forget(future, dst))
        if timeout is not None:
            self._expire(future, dst, timeout)
        self.deliver(dst, meta, arrays, future)
        return future

    def alive(self) -> dict[int, bool]:
        """For each worker, whether it is not known to be down."""
        with self._mutex:
            return {rank: rank not in self._down for rank in range(self.world_size)}

    def num_pending(self) -> int:
        """How many requests have no answer yet."""
        with self._mutex:
            return len(self._pending)

    def why_down(self, peer: int) -> str | None:
        """Why a worker is down; None if it is not known to be."""
        with self._mutex:
            return self._down.get(peer)

    def lose(self, peer: int, reason: str) -> None:
        """Give up a peer, and say so to whom `start` was given."""
        if self.peer_is_down(peer, reason) and self._on_peer_down is not None:
            self._on_peer_down(peer, reason)

    def peer_is_down(self, peer: int, reason: str) -> bool:
        """Give up a peer: whoever waits for it is told. The first reason counts.

        Returns:
            Whether it was not known before.
        """
        with self._mutex:
            if peer in self._down:
                return False
            self._down[peer] = reason
            waiting = [one for one, dst in self._pending.items() if dst == peer]
        for future in waiting:
            future.set_error(_down(peer, reason))
        return True

    def give_up(self, reason: str) -> None:
        """Give up all peers, at the end."""
        for peer in range(self.world_size):
            self.peer_is_down(peer, reason)
        self.timers.close()

    def heard(self, peer: int) -> None:
        """Take note of a sign of life that is no answer: part of something large."""
        now_ns = self.sync.now_ns()
        with self._mutex:
            self._heard_ns[peer] = now_ns

    # --- heartbeats -----------------------------------------------------------------

    def begin_heartbeats(self) -> None:
        """From now on, lose peers that give no sign of life; see Note [Heartbeats]."""
        if self.heartbeat_seconds is not None:
            self._beat(self.heartbeat_seconds)

    def answer(
        self, handler: Handler, src: int, meta: dict[str, Any], arrays: Sequence[Array]
    ) -> Future[Parcel]:
        """What a request is answered with: what the handler says, if it is no ping.

        Raises:
            GivenUpError: So was its sender: what is late does not bring it back.
        """
        if (reason := self.why_down(src)) is not None:
            raise GivenUpError(f"node {src} is down: {reason}")
        if meta == _PING:
            return completed(self.sync, ({"now_ns": self.sync.now_ns()}, ()))
        return handler(src, meta, arrays)

    def _beat(self, seconds: float) -> None:
        for peer, is_alive in self.alive().items():
            if is_alive and peer != self.rank:
                self._ping(peer, _MISSED_HEARTBEATS * seconds)
        self.timers.after(seconds, lambda: self._beat(seconds))

    def _ping(self, peer: int, patience: float) -> None:
        asked_ns = self.sync.now_ns()
        answer = self.request(peer, _PING, (), patience)

        def check() -> None:
            with self._mutex:
                is_silent = self._heard_ns.get(peer, -1) < asked_ns
            if is_silent and isinstance(answer.error, RpcTimeoutError):
                self.lose(peer, f"it gave no sign of life for {patience:g} s")

        answer.add_done_callback(check)

    def _forget(self, future: Future[Parcel], dst: int) -> None:
        now_ns = self.sync.now_ns()
        with self._mutex:
            self._pending.pop(future, None)
            if future.error is None or isinstance(future.error, RemoteError):
                self._heard_ns[dst] = now_ns
        error = future.error
        if isinstance(error, RemoteError) and error.kind == GivenUpError.__name__:
            self.lose(dst, "it takes this node for down")

    def _expire(self, future: Future[Parcel], dst: int, timeout: float) -> None:
        error = RpcTimeoutError(f"node {dst} did not answer within {timeout:g} s")
        timer = self.timers.after(timeout, lambda: future.set_error(error))
        future.add_done_callback(timer.cancel)


def error_words(error: BaseException) -> tuple[str, str, str]:
    """The kind of an error, what it says, and where it was raised, to be sent."""
    if isinstance(error, RemoteError):
        return error.kind, str(error), error.remote_traceback
    lines = traceback.format_exception(error)
    return type(error).__name__, str(error), "".join(lines)


def as_remote(node: int, error: BaseException) -> RemoteError:
    """An error of a handler of `node`, as the one who asked is told."""
    return remote_error(node, *error_words(error))


def _down(peer: int, reason: str) -> PeerDownError:
    return PeerDownError(f"node {peer} is down: {reason}")
