"""Functions that workers run for each other: the calls, at both ends."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from gradviz.backends.base import Array
from gradviz.distributed.dist_autograd import DistAutograd
from gradviz.distributed.failures import RemoteError, remote_error
from gradviz.distributed.future import Future
from gradviz.distributed.kept import Kept
from gradviz.distributed.messages import (
    AutogradMetadata,
    Call,
    Done,
    Fetch,
    Message,
    Result,
    as_meta,
    from_meta,
)
from gradviz.distributed.references import References
from gradviz.distributed.registry import function_named, name_of_function
from gradviz.distributed.transport.base import Parcel, Transport
from gradviz.distributed.values import Packed, Packer, Unpacker

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


class RpcCalls:
    """What one worker asks others to run, and what it runs for them.

    Args:
        transport: The way to them.
        autograd: This worker's part in graphs that go through several.
        references: What makes references of forms, and forms of them.
        kept: What this worker keeps for others.
        launch: Runs a job on another thread.
        infos: All workers by rank.
        enter: Makes the thread that it is called on one of this worker's, for a block.
    """

    def __init__(
        self,
        transport: Transport,
        autograd: DistAutograd,
        references: References,
        kept: Kept,
        launch: Callable[[Callable[[], object]], object],
        infos: Mapping[int, WorkerInfo],
        enter: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._transport = transport
        self._sync = transport.sync
        self._autograd = autograd
        self._references = references
        self._kept = kept
        self._launch = launch
        self._infos = infos
        self._enter = enter

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
        packer = Packer(lambda value: self._references.pack(value, dst))
        arguments = packer.pack((tuple(args), dict(kwargs)))
        metadata = self._autograd.outgoing(dst, packer.tensors, name, is_forced=True)
        message = Call(function=name, arguments=arguments, autograd=metadata, rref=rref)
        return self._ask(dst, message, packer.arrays, timeout, keep=(args, kwargs))

    def fetch(self, dst: int, rref: int, timeout: float | None) -> Future[Any]:
        """The future of what a worker keeps."""
        metadata = self._autograd.outgoing(dst, (), _TO_HERE, is_forced=True)
        message = Fetch(rref=rref, autograd=metadata)
        return self._ask(dst, message, (), timeout, keep=())

    def _ask(
        self,
        dst: int,
        message: Message,
        arrays: Sequence[Array],
        timeout: float | None,
        keep: object,
    ) -> Future[Any]:
        self._references.drop()
        reply = self._transport.request(dst, as_meta(message), arrays, timeout)

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

    def _error_of_call(self, dst: int, error: RemoteError) -> RemoteError:
        """An error of a function elsewhere, in PyTorch's words."""
        where = self._infos.get(dst, WorkerInfo(str(dst), dst))
        text = f"On {where}:\n{error.kind}({str(error)!r})\n{error.remote_traceback}"
        return remote_error(dst, error.kind, text, error.remote_traceback)

    # --- being asked ------------------------------------------------------------------

    def run(self, src: int, message: Call, arrays: Sequence[Array]) -> Future[Parcel]:
        """Run a function on a thread of the pool."""
        function = function_named(message.function)
        args, kwargs = self._incoming(src, message.autograd, message.arguments, arrays)
        context_id = message.autograd.context_id if message.autograd else None
        reply: Future[Parcel] = Future(self._sync)
        kept: Future[Any] | None = None
        if message.rref is not None:
            is_wanted = self._kept.hold(message.rref, message.rref)
            kept = self._kept.future(message.rref) if is_wanted else Future(self._sync)

        def answer(value: object) -> None:
            if kept is not None:
                kept.set_result(value)
                reply.set_result(parcel_of(Done()))
            else:
                reply.set_result(self._result(src, value, message.function, context_id))

        def fail(error: BaseException) -> None:
            if kept is not None:
                kept.set_error(error)
            reply.set_error(error)

        def run() -> None:
            with self._enter(), self._autograd.container.inside(context_id):
                try:
                    value = function(*args, **kwargs)
                    if isinstance(value, Future):
                        forward(value, answer, fail)
                    else:
                        answer(value)
                except BaseException as error:  # noqa: BLE001 - whoever asked is told
                    fail(error)

        self._launch(run)
        return reply

    def give(self, src: int, message: Fetch) -> Future[Parcel]:
        """Send what is kept here, as soon as it is there."""
        context_id = message.autograd.context_id if message.autograd else None
        self._incoming(src, message.autograd, None, ())
        kept = self._kept.future(message.rref)
        with self._autograd.container.inside(context_id):
            return kept.then(
                lambda kept: self._result(src, kept.value(), _TO_HERE, context_id)
            )

    def _result(
        self, dst: int, value: object, function: str, context_id: int | None
    ) -> Parcel:
        packer = Packer(lambda one: self._references.pack(one, dst))
        form = packer.pack(value)
        with self._autograd.container.inside(context_id):
            metadata = self._autograd.outgoing(
                dst, packer.tensors, function, is_forced=False
            )
        return as_meta(Result(value=form, autograd=metadata)), packer.arrays

    # --- both ends ------------------------------------------------------------------

    def _incoming(
        self,
        src: int,
        metadata: AutogradMetadata | None,
        form: Packed,
        arrays: Sequence[Array],
    ) -> Any:  # noqa: ANN401 - of any type
        """The value that came, made part of the graph."""
        unpacker = Unpacker(arrays, self._references.unpack)
        value = unpacker.unpack(form)
        if metadata is not None:
            self._autograd.incoming(src, metadata, unpacker.tensors)
        return value


def parcel_of(message: Message, _: None = None) -> Parcel:
    """A message that has no arrays, as a transport takes it."""
    return as_meta(message), ()


def forward(
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
