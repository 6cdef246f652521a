"""One worker: what it knows of the others, and what it does when they ask."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from gradviz.backends.base import Array
from gradviz.distributed.departures import Departures
from gradviz.distributed.dist_autograd import DistAutograd
from gradviz.distributed.elastic_pool import ElasticPool
from gradviz.distributed.failures import RemoteError, remote_error
from gradviz.distributed.future import Future, completed
from gradviz.distributed.ids import Ids
from gradviz.distributed.kept import Kept
from gradviz.distributed.messages import (
    AbortPass,
    AutogradMetadata,
    Call,
    Done,
    Drop,
    Fetch,
    Greet,
    Greeting,
    Hold,
    Leave,
    Message,
    PropagateGradients,
    ReleaseContext,
    Result,
    as_meta,
    from_meta,
)
from gradviz.distributed.registry import function_named, name_of_function
from gradviz.distributed.rref import RRef
from gradviz.distributed.transport.base import Parcel, Transport
from gradviz.distributed.values import Packed, Packer, Unpacker
from gradviz.engine import Engine

#: What is called where a reference is followed; for people.
_TO_HERE: Final = "RRef.to_here"


class WorkerInfo(NamedTuple):
    """How one speaks of a worker.

    Attributes:
        name: As it has called itself.
        id: Its rank.
    """

    name: str
    id: int

    def __str__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class RpcWorker:
    """All that one worker has; its threads know it as the current one.

    Args:
        name: How others may call it.
        transport: Its way to them.
        engine: The local engine, for its part of backward passes.

    Attributes:
        info: Its name and rank.
        transport: As given.
        autograd: Its part in graphs that go through several workers.
        container: Its autograd contexts.
        dist_engine: Its part of distributed backward passes.
        kept: What it keeps for others.
        infos: All workers by rank; complete after `meet`.
    """

    def __init__(self, name: str, transport: Transport, engine: Engine) -> None:
        rank = transport.rank
        self.info = WorkerInfo(name, rank)
        self.transport = transport
        self.sync = transport.sync
        self._pool = ElasticPool(self.sync, f"gv_rpc_{rank}")
        self.autograd = DistAutograd(transport, engine, self._pool.submit)
        self.container = self.autograd.container
        self.dist_engine = self.autograd.dist_engine
        self.kept = Kept(self.sync)
        self._rref_ids = Ids(rank)
        self.infos: dict[int, WorkerInfo] = {rank: self.info}
        self._has_met: Future[None] = Future(self.sync)
        #: Owner, id and fork of references that are gone. Finalisers append: in one
        #: step of C and past the seam, for they may strike anywhere.
        self._dropped: deque[tuple[int, int, int]] = deque()
        self._departures = Departures(self.sync, transport.alive)

    # --- the life of a worker -----------------------------------------------------

    def meet(self, timeout: float | None) -> None:
        """Take requests from now on, and wait until all others do.

        Raises:
            RpcError: One of them did not come in time.
            ValueError: Two have the same name.
        """
        self.transport.start(self.handle, self._departures.peer_is_down)
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

    def leave(self, timeout: float | None) -> None:
        """Wait until all others leave as well, or are gone."""
        self.drop_references()
        self.transport.request(0, as_meta(Leave()), (), timeout).wait()

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

    # --- asking others --------------------------------------------------------------

    def call(
        self,
        dst: int,
        function: "Callable[..., Any] | str",
        args: Sequence[object],
        kwargs: Mapping[str, object],
        *,
        timeout: float | None,
        rref: int | None = None,
    ) -> Future[Any]:
        """Have a worker run a function; the future of what it returns.

        Raises:
            UserError: Something of it cannot be sent.
        """
        name = name_of_function(function)
        packer = Packer(lambda value: self._pack_rref(value, dst))
        arguments = packer.pack((tuple(args), dict(kwargs)))
        metadata = self.autograd.outgoing(dst, packer.tensors, name, is_forced=True)
        message = Call(function=name, arguments=arguments, autograd=metadata, rref=rref)
        return self._ask(dst, message, packer.arrays, timeout, keep=(args, kwargs))

    def fetch(self, dst: int, rref: int, timeout: float | None) -> Future[Any]:
        """The future of what a worker keeps."""
        metadata = self.autograd.outgoing(dst, (), _TO_HERE, is_forced=True)
        message = Fetch(rref=rref, autograd=metadata)
        return self._ask(dst, message, (), timeout, keep=())

    def new_rref(self, owner: int, created: Future[None] | None = None) -> RRef:
        """A reference to what `owner` will keep under a new id."""
        number = self._rref_ids.next()
        return RRef(self, owner, number, number, created)

    def drop_later(self, owner: int, rref: int, fork: int) -> None:
        """Take note that a reference is gone; a finaliser may call it anywhere."""
        self._dropped.append((owner, rref, fork))

    def drop_references(self) -> None:
        """Tell owners of the references that are gone."""
        while self._dropped:
            owner, rref, fork = self._dropped.popleft()
            if owner == self.info.id:
                self.kept.drop(rref, fork)
            else:
                self._send(owner, Drop(rref=rref, fork=fork))

    def _ask(
        self,
        dst: int,
        message: Message,
        arrays: Sequence[Array],
        timeout: float | None,
        keep: object,
    ) -> Future[Any]:
        self.drop_references()
        reply = self.transport.request(dst, as_meta(message), arrays, timeout)

        def unpack(reply: Future[Parcel]) -> object:
            nonlocal keep
            keep = None  # references that were sent had to live until now
            try:
                meta, received = reply.value()
            except RemoteError as error:
                raise self._error_of_call(dst, error) from None
            result = from_meta(meta)
            if isinstance(result, Done):
                return None
            assert isinstance(result, Result)
            return self._incoming(dst, result.autograd, result.value, received)

        return reply.then(unpack)

    def _incoming(
        self,
        src: int,
        metadata: AutogradMetadata | None,
        form: Packed,
        arrays: Sequence[Array],
    ) -> Any:  # noqa: ANN401 - of any type
        """The value that came, made part of the graph."""
        unpacker = Unpacker(arrays, self._unpack_rref)
        value = unpacker.unpack(form)
        if metadata is not None:
            self.autograd.incoming(src, metadata, unpacker.tensors)
        return value

    def _send(self, dst: int, message: Message) -> Future[Parcel]:
        return self.transport.request(dst, as_meta(message))

    def _error_of_call(self, dst: int, error: RemoteError) -> RemoteError:
        """An error of a function elsewhere, in PyTorch's words."""
        where = self.infos.get(dst, WorkerInfo(str(dst), dst))
        text = f"On {where}:\n{error.kind}({str(error)!r})\n{error.remote_traceback}"
        return remote_error(dst, error.kind, text, error.remote_traceback)

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
                case Leave():
                    left = self._departures.take_leave(src)
                    return left.then(lambda left: _parcel(Done(), left.value()))
                case Call() as call:
                    return self._run(src, call, arrays)
                case Fetch() as fetch:
                    return self._fetch(src, fetch)
                case PropagateGradients() as gradients:
                    done = self.autograd.go_on_with(gradients, arrays)
                    return done.then(lambda done: _parcel(Done(), done.value()))
                case _:
                    self._take_note(message)
                    return self._reply(Done())

    def _later(
        self, src: int, meta: dict[str, Any], arrays: Sequence[Array]
    ) -> Future[Parcel]:
        """Answer what a function may need the others for when they are known."""
        reply: Future[Parcel] = Future(self.sync)

        def go_on() -> None:
            try:
                answer = self.handle(src, meta, arrays)
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                reply.set_error(error)
            else:
                _forward(answer, reply.set_result, reply.set_error)

        self._has_met.add_done_callback(go_on)
        return reply

    def _take_note(self, message: Message) -> None:
        """Do what a message says that has no answer."""
        match message:
            case Hold(rref=rref, fork=fork):
                self.kept.hold(rref, fork)
            case Drop(rref=rref, fork=fork):
                self.kept.drop(rref, fork)
            case AbortPass():
                self.autograd.abort(message)
            case ReleaseContext(context_id=context_id):
                self.container.release_context_if_present(context_id)
            case _:
                raise ValueError(f"{type(message).__name__} is no request")

    def _reply(self, message: Message) -> Future[Parcel]:
        return completed(self.sync, _parcel(message))

    def _run(self, src: int, message: Call, arrays: Sequence[Array]) -> Future[Parcel]:
        """Run a function on a thread of the pool."""
        function = function_named(message.function)
        args, kwargs = self._incoming(src, message.autograd, message.arguments, arrays)
        context_id = message.autograd.context_id if message.autograd else None
        reply: Future[Parcel] = Future(self.sync)
        kept = None
        if message.rref is not None:
            self.kept.hold(message.rref, message.rref)
            kept = self.kept.future(message.rref)

        def answer(value: object) -> None:
            if kept is not None:
                kept.set_result(value)
                reply.set_result(_parcel(Done()))
            else:
                reply.set_result(self._result(src, value, message.function, context_id))

        def fail(error: BaseException) -> None:
            if kept is not None:
                kept.set_error(error)
            reply.set_error(error)

        def run() -> None:
            with self.entered(), self.container.inside(context_id):
                try:
                    value = function(*args, **kwargs)
                    if isinstance(value, Future):
                        _forward(value, answer, fail)
                    else:
                        answer(value)
                except BaseException as error:  # noqa: BLE001 - whoever asked is told
                    fail(error)

        self._pool.submit(run)
        return reply

    def _fetch(self, src: int, message: Fetch) -> Future[Parcel]:
        """Send what is kept here, as soon as it is there."""
        context_id = message.autograd.context_id if message.autograd else None
        self._incoming(src, message.autograd, None, ())
        kept = self.kept.future(message.rref)
        with self.container.inside(context_id):
            return kept.then(
                lambda kept: self._result(src, kept.value(), _TO_HERE, context_id)
            )

    def _result(
        self, dst: int, value: object, function: str, context_id: int | None
    ) -> Parcel:
        packer = Packer(lambda one: self._pack_rref(one, dst))
        form = packer.pack(value)
        with self.container.inside(context_id):
            metadata = self.autograd.outgoing(
                dst, packer.tensors, function, is_forced=False
            )
        return as_meta(Result(value=form, autograd=metadata)), packer.arrays

    # --- references -------------------------------------------------------------------

    def _pack_rref(self, value: object, dst: int) -> Packed | None:
        if not isinstance(value, RRef):
            return None
        if value.owner_rank == dst:
            return ["rref", value.owner_rank, value.number, -1]
        fork = self._rref_ids.next()
        if value.owner_rank == self.info.id:
            self.kept.hold(value.number, fork)
        else:
            told = self._send(value.owner_rank, Hold(rref=value.number, fork=fork))
            told.add_done_callback(lambda: _let_live(value))
        return ["rref", value.owner_rank, value.number, fork]

    def _unpack_rref(self, form: Sequence[Packed]) -> RRef:
        match form:
            case ["rref", int(owner), int(number), int(fork)]:
                if fork < 0:
                    fork = self._rref_ids.next()
                    self.kept.hold(number, fork)
                return RRef(self, owner, number, fork, None)
            case _:
                raise ValueError(f"not the form of a value: {form!r:.80}")


def _parcel(message: Message, _: None = None) -> Parcel:
    return as_meta(message), ()


#: The worker that the calling thread is one of.
CURRENT: Final[ContextVar[RpcWorker | None]] = ContextVar(
    "gradviz.distributed.worker", default=None
)


def _forward(
    future: Future[Any],
    answer: Callable[[Any], object],
    fail: Callable[[BaseException], object],
) -> None:
    """Do with the answer of a future, when it comes."""

    def call() -> None:
        if future.error is not None:
            fail(future.error)
            return
        try:
            answer(future.value())
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            fail(error)

    future.add_done_callback(call)


def _let_live(value: object) -> None:
    """Called when `value` may go: until then, the callback refers to it."""
    del value
