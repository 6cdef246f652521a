"""One worker: its knowledge of the others, and its answers to them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from gradviz.backends.base import Array
from gradviz.distributed.calling.calls import RpcCalls, WorkerInfo, forward, parcel_of
from gradviz.distributed.calling.departures import Departures
from gradviz.distributed.calling.dist_autograd import DistAutograd
from gradviz.distributed.calling.references import References
from gradviz.distributed.messaging.elastic_pool import ElasticPool
from gradviz.distributed.messaging.failures import RpcError
from gradviz.distributed.messaging.future import Future, completed
from gradviz.distributed.messaging.kept import Kept
from gradviz.distributed.messaging.messages import (
    AbortPass,
    AskClock,
    AskUnfed,
    Call,
    ClockReading,
    Done,
    Drop,
    Fetch,
    Greet,
    Greeting,
    Hold,
    JoinContext,
    Leave,
    Message,
    PropagateGradients,
    ReleaseContext,
    as_meta,
    from_meta,
)
from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.distributed.transport.base import Parcel, Transport
from gradviz.engine import Engine


class RpcWorker:
    """All state of one worker; its threads know it as the current one.

    Args:
        name: Its name for other workers.
        transport: Its connection to them.
        engine: The local engine, for its part of backward passes.

    Attributes:
        info: Its name and rank.
        transport: As given.
        autograd: Its part in graphs that go through several workers.
        container: Its autograd contexts.
        dist_engine: Its part of distributed backward passes.
        kept: Values that it keeps for others.
        references: Its references to values of others.
        calls: Calls that it runs for others, and they for it.
        infos: All workers by rank; complete after `meet`.
        launch: Runs a job on a thread of the pool, where it may wait.
        step_mutex: Held while an optimizer changes parameters of this worker.
    """

    def __init__(self, name: str, transport: Transport, engine: Engine) -> None:
        rank = transport.rank
        self.info = WorkerInfo(name, rank)
        self.transport = transport
        self.sync = transport.sync
        self._pool = ElasticPool(self.sync, thread_name(rank, "call"))
        self.launch = self._pool.submit
        self.autograd = DistAutograd(transport, engine, self._pool.submit)
        self.container = self.autograd.container
        self.dist_engine = self.autograd.dist_engine
        self.kept = Kept(self.sync)
        self.infos: dict[int, WorkerInfo] = {rank: self.info}
        self.step_mutex = self.sync.lock()
        self._has_met: Future[None] = Future(self.sync)
        self.references = References(self, transport)
        self.calls = RpcCalls(
            transport,
            self.autograd,
            self.references,
            self.kept,
            self._pool.submit,
            self.infos,
            self.entered,
        )
        self._departures = Departures(self.sync, transport.alive)

    # --- the life of a worker -----------------------------------------------------

    def meet(self, timeout: float | None) -> None:
        """Take requests from now on, and wait until all others do.

        Raises:
            RpcError: One of them did not come in time.
            ValueError: Two have the same name.
        """
        self.transport.start(self.handle, self._peer_is_down)
        greetings = {
            rank: self.transport.request(rank, as_meta(Greet()), (), timeout)
            for rank in range(self.transport.world_size)
            if rank != self.info.id
        }
        for rank, greeting in greetings.items():
            message = from_meta(greeting.wait()[0])
            assert isinstance(message, Greeting)
            self.infos[rank] = WorkerInfo(message.name, rank)
        names = [info.name for info in self.infos.values()]
        if len({*names}) < len(names):
            raise ValueError(f"two workers have the same name: {', '.join(names)}")
        self._has_met.set_result(None)
        self.transport.begin_heartbeats()

    def leave(self, timeout: float | None) -> None:
        """Wait until all others leave as well, or are gone.

        The first worker that lives keeps the list; if it goes, the next one does.
        """
        self.references.drop()
        while True:
            alive = self.transport.alive()
            first = min(rank for rank, is_alive in alive.items() if is_alive)
            leave = self.transport.request(first, as_meta(Leave()), (), timeout)
            try:
                leave.wait()
            except RpcError:
                if self.transport.why_down(first) is None:
                    raise
            else:
                return

    def close(self) -> None:
        """End whatever is under way here; idempotent."""
        self.dist_engine.close()
        self.transport.close()
        self._pool.close()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have the calling thread be one of this worker's."""
        token = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(token)

    def fetch(self, dst: int, rref: int, timeout: float | None) -> Future[Any]:
        """Return the future of a value that another worker keeps."""
        return self.calls.fetch(dst, rref, timeout)

    def drop_later(self, owner: int, rref: int, fork: int) -> None:
        """Take note that a reference is gone; a finalizer may call it anywhere."""
        self.references.drop_later(owner, rref, fork)

    def resolve(self, to: "str | int | WorkerInfo") -> int:
        """The rank of a worker.

        Raises:
            RuntimeError: There is no such worker.
        """
        if isinstance(to, WorkerInfo):
            return to.id
        for rank, info in self.infos.items():
            if to in (rank, info.name):
                return rank
        known = ", ".join(info.name for _, info in sorted(self.infos.items()))
        raise RuntimeError(
            f"name:{self.info.name},rank:{self.info.id} could not find destination "
            f"name {to}: there are {known}"
        )

    # --- being asked ------------------------------------------------------------------

    def handle(
        self, src: int, meta: dict[str, Any], arrays: Sequence[Array]
    ) -> Future[Parcel]:
        """Answer a request; never waits."""
        with self.entered():
            message = from_meta(meta)
            if isinstance(message, (Call, Fetch)) and not self._has_met.done():
                return self._later(src, meta, arrays)
            match message:
                case Greet():
                    return self._reply(Greeting(name=self.info.name))
                case AskClock():
                    return self._reply(ClockReading(now_ns=self.sync.now_ns()))
                case Leave():
                    left = self._departures.take_leave(src)
                    return left.then(lambda left: parcel_of(Done(), left.value()))
                case Call() as call:
                    return self.calls.run(src, call, arrays)
                case Fetch() as fetch:
                    return self.calls.give(src, fetch)
                case PropagateGradients() as gradients:
                    done = self.autograd.go_on_with(src, gradients, arrays)
                    return done.then(lambda done: parcel_of(Done(), done.value()))
                case AskUnfed() as ask:
                    return self._reply(self.autograd.unfed(ask))
                case _:
                    self._take_note(src, message)
                    return self._reply(Done())

    def _later(
        self, src: int, meta: dict[str, Any], arrays: Sequence[Array]
    ) -> Future[Parcel]:
        """Answer a call that may need the others once they are known."""
        reply: Future[Parcel] = Future(self.sync)

        def go_on() -> None:
            try:
                answer = self.handle(src, meta, arrays)
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                reply.set_error(error)
            else:
                forward(answer, reply.set_result, reply.set_error)

        self._has_met.add_done_callback(go_on)
        return reply

    def _peer_is_down(self, peer: int, reason: str) -> None:
        with self.entered():
            self.autograd.peer_is_down(peer, reason)
        self._departures.peer_is_down()

    def _take_note(self, src: int, message: Message) -> None:
        """Handle a message that has no answer."""
        match message:
            case Hold(rref=rref, fork=fork):
                self.kept.hold(rref, fork)
            case Drop(rref=rref, fork=fork):
                self.kept.drop(rref, fork)
            case AbortPass():
                self.autograd.abort(message)
            case JoinContext(context_id=context_id):
                self.autograd.join(src, context_id)
            case ReleaseContext(context_id=context_id):
                self.container.release_context_if_present(context_id)
            case _:
                raise ValueError(f"{type(message).__name__} is no request")

    def _reply(self, message: Message) -> Future[Parcel]:
        return completed(self.sync, parcel_of(message))


#: The worker that the calling thread is one of.
CURRENT: Final[ContextVar[RpcWorker | None]] = ContextVar(
    "gradviz.distributed.calling.worker", default=None
)
