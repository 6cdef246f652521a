"""One worker's part in graphs that go through several of them."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from gradviz.backends.base import Array
from gradviz.distributed.backward.attachment import (
    add_recv_rpc_backward,
    add_send_rpc_backward,
    need_gradients,
)
from gradviz.distributed.backward.container import DistAutogradContainer
from gradviz.distributed.backward.context import DistAutogradContext, SentGradients
from gradviz.distributed.backward.dist_engine import DistEngine, propagating_pass
from gradviz.distributed.backward.functions import RecvRpcBackward
from gradviz.distributed.calling.notices import tell_until_understood
from gradviz.distributed.calling.reports import (
    forward_received,
    forward_sent,
    gradients_received,
    gradients_sent,
)
from gradviz.distributed.messaging.failures import PeerDownError
from gradviz.distributed.messaging.future import Future, when_all
from gradviz.distributed.messaging.ids import worker_of
from gradviz.distributed.messaging.messages import (
    AbortPass,
    AskUnfed,
    AutogradMetadata,
    JoinContext,
    PropagateGradients,
    ReleaseContext,
    Unfed,
    as_meta,
    from_meta,
)
from gradviz.distributed.messaging.waits import Waits
from gradviz.distributed.transport.base import Transport
from gradviz.engine import Engine
from gradviz.engine.graph.grad_mode import is_grad_enabled
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.variables.variable import Variable

#: Time that other workers may take to say what they wait for.
_ASK_SECONDS: Final = 1.0

#: Time that a byte takes at most, a megabyte a second. A slower message is taken for
#: lost.
_SLOWEST_NS: Final = 1000


class DistAutograd:
    """The contexts and the engine of one worker, and their messages.

    Args:
        transport: The way to them.
        engine: The local engine.
        launch: Runs a job on another thread.

    Attributes:
        container: The contexts.
        dist_engine: Engine that runs backward passes.
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
        self.dist_engine = DistEngine(engine, self.container, launch, self)

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
            dst: Rank of the receiver.
            tensors: Those that it has.
            function: Name of the function that is called, or has been; for people.
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
        node = None
        if is_recorded:
            node = add_send_rpc_backward(
                context, tensors, message_id=message_id, peer=dst, function=function
            )
        context.add_known_worker(dst)
        metadata = AutogradMetadata(context.context_id, message_id, is_grad_enabled())
        forward_sent(self.container.worker, dst, metadata, node, tensors)
        return metadata

    def incoming(
        self, src: int, metadata: AutogradMetadata, tensors: Sequence[Variable]
    ) -> None:
        """Make a message part of the graph that has come from `src` (D12).

        Differs: PyTorch records what comes from a sender whose grad mode is off. The
        gradients that flow there find no send, and the backward fails.

        Raises:
            PeerDownError: The worker that made the context is gone.
            ValueError: There is no such worker.
        """
        owner = worker_of(metadata.context_id)
        if owner not in range(self._transport.world_size):
            raise ValueError(
                f"autograd context {metadata.context_id} cannot be: no worker has "
                f"rank {owner}"
            )
        context = self.container.get_or_create_context(metadata.context_id)
        # Asked when it is there: whoever is lost from now on is looked for in it.
        for peer in {src, owner}:
            if self.why_down(peer) is not None:
                self._see_to_the_end(context, peer)
        node = None
        if metadata.grad_enabled:
            node = add_recv_rpc_backward(
                tensors,
                message_id=metadata.message_id,
                peer=src,
                propagate=self._propagator(metadata.context_id),
            )
        forward_received(self.container.worker, src, metadata, node, tensors)

    # --- the backward pass ------------------------------------------------------

    def _propagator(
        self, context_id: int
    ) -> Callable[[RecvRpcBackward, Sequence[Gradient]], None]:
        """Return the function that sends gradients back to a message's sender (D13)."""

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
            gradients_sent(
                graph_task.probe,
                graph_task.id,
                self.container.worker,
                node.peer,
                message,
                node,
                gradients,
            )
            sent = self._transport.request(node.peer, as_meta(message), gradients)
            is_awaited = not graph_task.is_waited_for_by(node.peer)
            num_bytes = sum(one.nbytes for one in gradients)
            late_ns = self._transport.sync.now_ns() + num_bytes * _SLOWEST_NS
            context.add_outstanding_rpc(
                graph_task, node.message_id, SentGradients(sent, is_awaited, late_ns)
            )

        return propagate

    def go_on_with(
        self, src: int, message: PropagateGradients, gradients: Sequence[Array]
    ) -> Future[None]:
        """Continue a backward pass at the tensors sent, with their gradients."""
        context = self.container.retrieve_context(message.context_id)
        send = context.retrieve_send_function(message.message_id)
        gradients_received(self.container.worker, src, message, send, gradients)
        return self.dist_engine.execute_send_function_async(
            context,
            send,
            gradients,
            pass_id=message.pass_id,
            retain_graph=message.retain_graph,
        )

    def unfed(self, message: AskUnfed) -> Unfed:
        """Return what a pass still waits for here."""
        context = self.container.find_context(message.context_id)
        if context is None:
            return Unfed()
        waits = self.dist_engine.waits_of(context, message.pass_id)
        return Unfed(
            unfed=tuple(waits.unfed.items()),
            unanswered=tuple(waits.unanswered),
            awaited=tuple(waits.awaited),
            has_begun=waits.has_begun,
            has_ended=waits.has_ended,
        )

    def abort(self, message: AbortPass) -> None:
        """Have a pass fail that has failed elsewhere."""
        context = self.container.find_context(message.context_id)
        if context is not None:
            self.dist_engine.fail(context, message.pass_id, message.reason)

    # --- what the engine asks of other workers --------------------------------------

    def tell_of_failure(
        self, peer: int, context_id: int, pass_id: int, reason: str
    ) -> None:
        """Have a pass fail on a worker that has failed here."""
        message = AbortPass(context_id=context_id, pass_id=pass_id, reason=reason)
        tell_until_understood(self._transport, peer, message)

    def why_down(self, peer: int) -> str | None:
        """Return why a worker is down; None if it is not known to be."""
        return self._transport.why_down(peer)

    def waits_elsewhere(self, context_id: int, pass_id: int) -> dict[int, Waits]:
        """Return what other workers wait for in a pass, if they answer in time."""
        ask = as_meta(AskUnfed(context_id=context_id, pass_id=pass_id))
        asked = {
            peer: self._transport.request(peer, ask, (), _ASK_SECONDS)
            for peer, is_alive in self._transport.alive().items()
            if is_alive and peer != self._transport.rank
        }
        when_all(self._transport.sync, [*asked.values()]).settled()
        found: dict[int, Waits] = {}
        for peer, answer in asked.items():
            if answer.error is None:
                unfed = from_meta(answer.value()[0])
                assert isinstance(unfed, Unfed)
                found[peer] = Waits(
                    dict(unfed.unfed),
                    frozenset(unfed.unanswered),
                    frozenset(unfed.awaited),
                    unfed.has_begun,
                    unfed.has_ended,
                )
        return found

    # --- the end of a context ---------------------------------------------------

    def _tell_to_forget(self, context: DistAutogradContext) -> None:
        """End the work in a released context, and notify others."""
        self.dist_engine.forget(context)
        if self.why_down(worker_of(context.context_id)) is not None:
            return  # its maker is gone, if only for this worker: each sees for itself
        for peer in context.known_workers():
            message = ReleaseContext(context_id=context.context_id)
            tell_until_understood(self._transport, peer, message)

    def peer_is_down(self, peer: int, reason: str) -> None:
        """Wait for nothing from a worker any more, and forget its contexts.

        Each worker tells those to whom it has sent a context when that ends. The one
        that is gone may be the only one that would have told this one; so whoever made
        a context is asked to do so.
        """
        for context in self.container.contexts():
            self.dist_engine.peer_is_down(context, peer, reason)
            with contextlib.suppress(PeerDownError):
                self._see_to_the_end(context, peer)

    def _see_to_the_end(self, context: DistAutogradContext, lost: int) -> None:
        """Have a context end here although a worker is gone.

        Raises:
            PeerDownError: That one has made it: it ends at once.
        """
        owner = worker_of(context.context_id)
        if owner == lost:
            self.container.release_context_if_present(context.context_id)
            raise PeerDownError(
                f"node {owner} is down, which has made autograd context "
                f"{context.context_id}: {self.why_down(owner)}"
            )
        if owner != self._transport.rank:
            message = JoinContext(context_id=context.context_id)
            tell_until_understood(self._transport, owner, message)

    def join(self, peer: int, context_id: int) -> None:
        """Notify a worker of the end of a context of this one, which may be now."""
        context = self.container.find_context(context_id)
        try:
            if context is not None:
                context.add_known_worker(peer)
                return
        except RuntimeError:
            pass  # it has just been released
        message = ReleaseContext(context_id=context_id)
        tell_until_understood(self._transport, peer, message)
