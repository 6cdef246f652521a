"""One worker's part in graphs that go through several of them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from gradviz.backends.base import Array
from gradviz.distributed.attachment import (
    add_recv_rpc_backward,
    add_send_rpc_backward,
    need_gradients,
)
from gradviz.distributed.container import DistAutogradContainer
from gradviz.distributed.context import DistAutogradContext
from gradviz.distributed.dist_engine import DistEngine, propagating_pass
from gradviz.distributed.failures import PeerDownError
from gradviz.distributed.functions import RecvRpcBackward
from gradviz.distributed.future import Future
from gradviz.distributed.messages import (
    AbortPass,
    AutogradMetadata,
    PropagateGradients,
    ReleaseContext,
    as_meta,
)
from gradviz.distributed.transport.base import Transport
from gradviz.engine import Engine
from gradviz.engine.protocols import Gradient
from gradviz.ops.recording.variable import Variable

#: How often a worker is told to forget a context, if it does not answer.
#: Source: torch/csrc/distributed/autograd/context/container.cpp.
MAX_RETRIES: Final = 20

_FIRST_RETRY_SECONDS: Final = 0.05
_LAST_RETRY_SECONDS: Final = 5.0


class DistAutograd:
    """The contexts and the engine of one worker, and what they say to other workers.

    Args:
        transport: The way to them.
        engine: The local engine.
        launch: Runs a job on another thread.

    Attributes:
        container: The contexts.
        dist_engine: What runs backward passes.
    """

    def __init__(
        self,
        transport: Transport,
        engine: Engine,
        launch: Callable[[Callable[[], object]], object],
    ) -> None:
        self._transport = transport
        self._engine = engine
        self.container = DistAutogradContainer(transport.rank, transport.sync)
        self.container.after_release = self._tell_to_forget
        self.dist_engine = DistEngine(
            engine, self.container, launch, self._tell_of_failure
        )

    # --- the forward pass -------------------------------------------------------

    def outgoing(
        self,
        dst: int,
        tensors: Sequence[Variable],
        function: str,
        *,
        is_forced: bool,
    ) -> AutogradMetadata | None:
        """Make a message part of the graph before it leaves (D12).

        Args:
            dst: To whom.
            tensors: Those that it has.
            function: What is called, or has been; for people.
            is_forced: Say in which context it was made even if no tensor needs a
                gradient: the answer may.

        Source: torch/csrc/distributed/autograd/utils.cpp, getMessageWithAutograd.
        """
        if self.container.current_id() is None:
            return None
        is_recorded = need_gradients(tensors)
        if not (is_forced or is_recorded):
            return None
        context = self.container.current_context()
        message_id = self.container.new_message_id()
        if is_recorded:
            add_send_rpc_backward(
                context, tensors, message_id=message_id, peer=dst, function=function
            )
        context.add_known_worker(dst)
        return AutogradMetadata(context.context_id, message_id)

    def incoming(
        self, src: int, metadata: AutogradMetadata, tensors: Sequence[Variable]
    ) -> None:
        """Make a message part of the graph that has come from `src` (D12)."""
        context = self.container.get_or_create_context(metadata.context_id)
        add_recv_rpc_backward(
            context,
            tensors,
            message_id=metadata.message_id,
            peer=src,
            propagate=self._propagator(metadata.context_id),
        )

    # --- the backward pass ------------------------------------------------------

    def _propagator(
        self, context_id: int
    ) -> Callable[[RecvRpcBackward, Sequence[Gradient]], None]:
        """What sends gradients back to where a message came from (D13)."""

        def propagate(node: RecvRpcBackward, gradients: Sequence[Gradient]) -> None:
            graph_task = propagating_pass(self._engine, node)
            context = self.container.find_context(context_id)
            if context is None:
                raise RuntimeError(
                    "Autograd context no longer valid! This usually means the autograd "
                    "context was cleaned up by a different thread due to an error "
                    "before RecvRpcBackward had a chance to run"
                )
            message = PropagateGradients(
                context_id=context_id,
                message_id=node.message_id,
                pass_id=graph_task.pass_id,
                retain_graph=graph_task.keep_graph,
            )
            sent = self._transport.request(node.peer, as_meta(message), gradients)
            context.add_outstanding_rpc(graph_task, sent)

        return propagate

    def go_on_with(
        self, message: PropagateGradients, gradients: Sequence[Array]
    ) -> Future[None]:
        """Go on with a backward pass where tensors were sent, whose gradients came."""
        context = self.container.retrieve_context(message.context_id)
        return self.dist_engine.execute_send_function_async(
            context,
            context.retrieve_send_function(message.message_id),
            gradients,
            pass_id=message.pass_id,
            retain_graph=message.retain_graph,
        )

    def abort(self, message: AbortPass) -> None:
        """Have a pass fail that has failed elsewhere."""
        context = self.container.find_context(message.context_id)
        if context is not None:
            self.dist_engine.fail(context, message.pass_id, message.reason)

    def _tell_of_failure(
        self, peer: int, context: DistAutogradContext, pass_id: int, reason: str
    ) -> None:
        message = AbortPass(
            context_id=context.context_id, pass_id=pass_id, reason=reason
        )
        self._transport.request(peer, as_meta(message))

    # --- the end of a context ---------------------------------------------------

    def _tell_to_forget(self, context: DistAutogradContext) -> None:
        """End what is under way in a context that was released, and tell others."""
        self.dist_engine.forget(context)
        for peer in context.known_workers():
            self._tell_until_understood(peer, context.context_id, 0)

    def _tell_until_understood(self, peer: int, context_id: int, attempt: int) -> None:
        message = ReleaseContext(context_id=context_id)
        told: Future[Any] = self._transport.request(peer, as_meta(message))

        def check() -> None:
            if told.error is None or isinstance(told.error, PeerDownError):
                return
            if attempt < MAX_RETRIES:
                pause = min(_FIRST_RETRY_SECONDS * 2**attempt, _LAST_RETRY_SECONDS)
                self._transport.timers.after(
                    pause,
                    lambda: self._tell_until_understood(peer, context_id, attempt + 1),
                )

        told.add_done_callback(check)
