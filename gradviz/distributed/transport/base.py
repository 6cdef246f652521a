"""The base of every transport, and its promises.

Note [The contract of a transport]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
1. Every future that `Transport.request` returns gets an answer: the handler's result,
its error as a `RemoteError`, `PeerDownError` or `RpcTimeoutError`. 2. No thread is
blocked while a handler's future has no answer. 3. No order is promised, but each
request is delivered at most once. 4. Received arrays may be read-only: a handler that
changes one copies it. Arrays of a    request must not be changed until the future has
its answer; those of an answer    never: they may leave at any time, without notice. 5.
Messages are JSON and raw buffers with their dtype and shape. Nothing is unpickled. 6. A
peer that is down stays down. A peer without a sign of life is down.

Note [Heartbeats]
~~~~~~~~~~~~~~~~~
A process that is stopped, or a machine that is unplugged, closes no connection, so
nothing below this module notices that it is gone. So workers ask each other for a sign
of life. Any answer to any request is one; and a worker answers a ping, which no handler
sees, even if all its threads are busy. A lost ping does no harm while others come back.

A worker cannot answer while one C call holds the interpreter's lock. It is not dead
then, and its system knows: the process exists, and is not stopped. So where this can be
checked (`Transport.seems_to_run`), silence alone counts only much later. And a worker
that could not run itself, and finds that the time of its pings is over, judges nobody:
the answers are there, but unread.
"""

import abc
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from gradviz.backends.base import Array
from gradviz.distributed.messaging.failures import (
    GivenUpError,
    PeerDownError,
    RemoteError,
    RpcTimeoutError,
    remote_error,
)
from gradviz.distributed.messaging.future import Future, completed
from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.distributed.messaging.timers import Timers
from gradviz.engine.graph.sync import Sync

#: Content of a message: JSON, and arrays beside it.
Parcel: TypeAlias = tuple[dict[str, Any], Sequence[Array]]

#: Called with the sender, its JSON and its arrays; must not wait.
Handler: TypeAlias = Callable[[int, dict[str, Any], Sequence[Array]], Future[Parcel]]

#: Called with a peer that is down, and why.
OnPeerDown: TypeAlias = Callable[[int, str], object]


#: Seconds between two requests of a worker for a sign of life.
HEARTBEAT_SECONDS: Final = 1.0

#: After how many of them without any a worker is down.
_MISSED_HEARTBEATS: Final = 3

#: Time that a worker may be silent whose process runs.
RUNNING_PATIENCE_SECONDS: Final = 300.0

_PING: Final = {"type": "Ping"}


class Transport(abc.ABC):
    """One worker's way to the others; see Note [The contract of a transport].

    Args:
        rank: This worker.
        world_size: Number of workers.
        sync: The seam.
        heartbeat_seconds: See Note [Heartbeats]; None for a transport on which nobody
            can be silent.

    Attributes:
        rank: As given, like the others.
        timers: For deadlines.
        patience_seconds: Time for which a worker may give no sign of life. None: three
            heartbeats, or `RUNNING_PATIENCE_SECONDS` if it seems to run. Set before
            `begin_heartbeats`.
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
        self.patience_seconds: float | None = None
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
        """Refuse new requests, and fail pending ones; idempotent."""

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
            meta: Values that JSON knows.
            arrays: See Note [The contract of a transport].
            timeout: Maximum time until the answer, in seconds; None is forever.

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
            try:
                self._expire(future, dst, timeout)
            except RuntimeError as error:  # there is no thread for the deadline
                future.set_error(error)
                return future
        self.deliver(dst, meta, arrays, future)
        return future

    def alive(self) -> dict[int, bool]:
        """For each worker, whether it is not known to be down."""
        with self._mutex:
            return {rank: rank not in self._down for rank in range(self.world_size)}

    def why_down(self, peer: int) -> str | None:
        """Return why a worker is down; None if it is not known to be."""
        with self._mutex:
            return self._down.get(peer)

    def lose(self, peer: int, reason: str) -> None:
        """Give up a peer, and notify the listener given to `start`."""
        if self.peer_is_down(peer, reason) and self._on_peer_down is not None:
            self._on_peer_down(peer, reason)

    def peer_is_down(self, peer: int, reason: str) -> bool:
        """Give up a peer and fail its pending answers. The first reason counts.

        Returns:
            True if the peer was not known to be down before.
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
        """Answer a request with the handler's result, unless it is a ping.

        Raises:
            GivenUpError: So was its sender: what is late does not bring it back.
        """
        if (reason := self.why_down(src)) is not None:
            raise GivenUpError(f"node {src} is down: {reason}")
        if meta == _PING:
            return completed(self.sync, ({"now_ns": self.sync.now_ns()}, ()))
        return handler(src, meta, arrays)

    def seems_to_run(self, peer: int) -> bool:
        """Return whether a silent worker's process is known to run; must not wait."""
        del peer
        return False

    def _beat(self, seconds: float) -> None:
        for peer, is_alive in self.alive().items():
            if is_alive and peer != self.rank:
                self._ping(peer, seconds)
        self.timers.after(seconds, lambda: self._beat(seconds))

    def _ping(self, peer: int, heartbeat: float) -> None:
        asked_ns = self.sync.now_ns()
        with self._mutex:
            heard_ns = self._heard_ns.setdefault(peer, asked_ns)
        usual = _MISSED_HEARTBEATS * heartbeat
        patience = usual if self.patience_seconds is None else self.patience_seconds
        wait = min(usual, patience)
        answer = self.request(peer, _PING, (), wait)

        def check() -> None:
            with self._mutex:
                is_silent = self._heard_ns[peer] <= heard_ns
            if not is_silent or not isinstance(answer.error, RpcTimeoutError):
                return
            now_ns = self.sync.now_ns()
            if (now_ns - asked_ns) / 1e9 > wait + heartbeat:
                return  # this worker could not run; it asks again
            limit = patience
            if self.patience_seconds is None and self.seems_to_run(peer):
                limit = RUNNING_PATIENCE_SECONDS
            if (now_ns - heard_ns) / 1e9 >= limit:
                self.lose(peer, f"it gave no sign of life for {limit:g} s")

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
    """Return the kind, text and traceback of an error, for sending."""
    if isinstance(error, RemoteError):
        return error.kind, str(error), error.remote_traceback
    lines = traceback.format_exception(error)
    return type(error).__name__, str(error), "".join(lines)


def as_remote(node: int, error: BaseException) -> RemoteError:
    """Return the error of a handler of `node`, for the requesting worker."""
    return remote_error(node, *error_words(error))


def _down(peer: int, reason: str) -> PeerDownError:
    return PeerDownError(f"node {peer} is down: {reason}")
