"""Functions that workers run for each other: the calls, at both ends."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from gradviz.backends.base import Array
from gradviz.distributed.calling.dist_autograd import DistAutograd
from gradviz.distributed.calling.references import References
from gradviz.distributed.messaging.failures import RemoteError, remote_error
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.kept import Kept
from gradviz.distributed.messaging.messages import (
    AutogradMetadata,
    Call,
    Done,
    Fetch,
    Message,
    Result,
    as_meta,
    from_meta,
)
from gradviz.distributed.messaging.registry import function_named, name_of_function
from gradviz.distributed.messaging.values import Packed, Packer, Unpacker
from gradviz.distributed.transport.base import Parcel, Transport

#: Name, for people, of the call that follows a reference.
_TO_HERE: Final = "RRef.to_here"


class WorkerInfo(NamedTuple):
    """Name and rank of a worker.

    Attributes:
        name: The name that it chose.
        id: Its rank.
    """

    name: str
    id: int

    def __str__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class RpcCalls:
    """Calls of one worker to others, and of others to it.

    Args:
        transport: The connection to them.
        autograd: This worker's part in graphs that go through several.
        references: Converts references to forms and back.
        kept: Values that this worker keeps for others.
        launch: Runs a job on another thread.
        infos: All workers by rank.
        enter: Makes the calling thread one of this worker's, for a block.
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
        """Call a function on a worker; return the future of its result.

        The arguments are copied: the caller may change its own at once.

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
        """Return the future of a value that a worker keeps."""
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
                result = self._result(src, value, message.function, message.autograd)
                reply.set_result(result)

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

        try:
            self._launch(run)
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            fail(error)
        return reply

    def give(self, src: int, message: Fetch) -> Future[Parcel]:
        """Send a value kept here, as soon as it is there."""
        context_id = message.autograd.context_id if message.autograd else None
        self._incoming(src, message.autograd, None, ())
        kept = self._kept.future(message.rref)
        with self._autograd.container.inside(context_id):
            return kept.then(
                lambda kept: self._result(src, kept.value(), _TO_HERE, message.autograd)
            )

    def _result(
        self, dst: int, value: object, function: str, asked: AutogradMetadata | None
    ) -> Parcel:
        """The answer to a request, recorded if the caller records it.

        Differs: PyTorch records a send for a caller whose grad mode is off, too. That
        send gets no gradients, and every pass that reaches this worker hangs.
        """
        packer = Packer(lambda one: self._references.pack(one, dst))
        form = packer.pack(value)
        metadata = None
        if asked is not None and asked.grad_enabled:
            with self._autograd.container.inside(asked.context_id):
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
