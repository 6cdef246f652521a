"""The distributed engine: a backward pass that goes on where its gradients come from.

Each worker runs its part by itself, with the pieces of the local engine: it begins when
the first gradients come, goes on with each message that brings more, and its answer to
the first message says that all of it is done, here and beyond. So the root of the pass
knows that everything is done when its own messages are answered.
"""

import contextvars
from collections.abc import Callable, Sequence
from typing import Final

from gradviz.distributed.backward.container import DistAutogradContainer
from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.execution import DistExecution
from gradviz.distributed.backward.functions import RecvRpcBackward, SendRpcBackward
from gradviz.distributed.backward.others import Others
from gradviz.distributed.backward.passes import DistPasses
from gradviz.distributed.backward.preparation import validate_roots_and_retrieve_edges
from gradviz.distributed.backward.watchdog import DistWatchdog
from gradviz.distributed.messaging.failures import PeerDownError
from gradviz.distributed.messaging.future import Future, completed, failed
from gradviz.distributed.messaging.ids import Ids, worker_of
from gradviz.distributed.messaging.waits import Waits
from gradviz.engine import Engine
from gradviz.engine.graph.basic_nodes import GraphRoot
from gradviz.engine.graph.node import Edge
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.validation import validate_outputs

#: The keys of `DistEngine.debug_info`.
NUM_BACKWARD_PASSES: Final = "num_current_backward_passes"
NUM_CONTEXTS: Final = "num_autograd_contexts"


class DistEngine:
    """Runs one worker's part of distributed backward passes.

    Note [Pass ids]
    ~~~~~~~~~~~~~~~
    When a pass fails on one worker, its gradients may still be on their way to another.
    They must not start it again there: nobody would ever end it, and the next pass of
    the context would meet it. PyTorch's engine does just that. So each pass has an id,
    the worker of its root and that worker's count of passes, and every message with
    gradients carries it. A worker refuses gradients of a pass that has ended here, or
    of an earlier one of the same root; it fails a pass that is still there when a later
    one arrives. And a worker on which a pass fails notifies those that it knows, so
    that nobody waits for gradients that will not come.

    Args:
        engine: The local one, whose devices and rules are used.
        container: The contexts.
        launch: Runs a job on another thread.
        others: The other workers.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp (D1-D11).
    """

    def __init__(
        self,
        engine: Engine,
        container: DistAutogradContainer,
        launch: Callable[[Callable[[], object]], object],
        others: Others,
    ) -> None:
        self._sync = engine.sync
        self._container = container
        self._pass_ids = Ids(container.worker, 1)
        self._execution = DistExecution(engine, launch, container.worker)
        self._passes = DistPasses(engine, self._execution, container.worker, others)
        self._watchdog = DistWatchdog(engine.sync, others)

    # --- what a worker is asked to do ---------------------------------------------

    def execute(
        self,
        context_id: int,
        roots: Sequence[object],
        *,
        retain_graph: bool,
        timeout: float | None = None,
    ) -> None:
        """Run a backward pass from here, through all workers, and wait for it (D9).

        Args:
            context_id: Id of the context; its gradients are added up there.
            roots: Tensors of one element.
            retain_graph: Keep what the graph has saved, for another pass.
            timeout: Most seconds that it may take; None is forever.

        Raises:
            RuntimeError: There is no such context; a root cannot be one; a pass is
                under way in it; the pass failed, here or elsewhere, or took too long.
        """
        context = self._container.retrieve_context(context_id)
        edges, gradients = validate_roots_and_retrieve_edges(roots)
        root = GraphRoot(edges, gradients)
        pass_id = self._pass_ids.next()
        with self._passes.mutex:
            graph_task = self._passes.begin(
                context, root, pass_id, keep_graph=retain_graph
            )
            graph_task.outstanding_tasks += 1
        self._passes.run(context, graph_task, root, [])
        try:
            if not self._watchdog.is_over(context, graph_task, timeout):
                raise RuntimeError(
                    f"the distributed backward did not end within {timeout:g} s"
                    f"{self._watchdog.waits(context, graph_task)}"
                )
        except BaseException as error:
            self._passes.abandon(context, graph_task, error)
            raise
        graph_task.result.value()

    def execute_send_function_async(
        self,
        context: DistAutogradContext,
        send: SendRpcBackward,
        gradients: Sequence[Gradient],
        *,
        pass_id: int,
        retain_graph: bool,
    ) -> Future[None]:
        """Go on with a pass at a send, with the gradients that have come (D8).

        Args:
            context: Context of the pass.
            send: Send whose gradients they are.
            gradients: One for each tensor that was sent.
            pass_id: Id of the pass; see Note [Pass ids].
            retain_graph: Keep what the graph has saved.

        Returns:
            For the first message of a pass, done when all of it is done that begins
            here; else done at once. It never waits.
        """
        inputs = [Edge(send, index) for index in range(send.num_inputs)]
        gradients = list(validate_outputs(inputs, gradients))
        with self._passes.mutex:
            current = context.graph_task
            if context.has_succeeded(pass_id):
                return completed(self._sync, None)
            if context.has_ended(pass_id):
                return failed(self._sync, self._late(context, pass_id))
            if current is None:
                begun = self._passes.begin(
                    context, send, pass_id, keep_graph=retain_graph
                )
                begun.begun_by = send
                begun.receive(send.message_id)
        if current is None:
            return self._passes.run(context, begun, send, gradients)
        if current.pass_id != pass_id:
            return self._after(context, current, send, gradients, pass_id, retain_graph)
        if not current.receive(send.message_id):
            if current.begun_by is send:
                return current.result
            return completed(self._sync, None)
        self._execution.launch(current, send, gradients)
        return completed(self._sync, None)

    def fail(self, context: DistAutogradContext, pass_id: int, reason: str) -> None:
        """Have a pass of a context fail, as another worker says; pass on such news."""
        if not context.mark_ended(pass_id):
            return
        current = context.graph_task
        if current is not None and current.pass_id == pass_id:
            self._passes.fail(context, current, RuntimeError(reason))
        else:
            self._passes.tell_all(context, pass_id, reason)

    def forget(self, context: DistAutogradContext) -> None:
        """Have the pass of a context fail that was released (Note [Pass ids])."""
        current = context.graph_task
        error = RuntimeError(
            f"autograd context {context.context_id} was released during backward"
        )
        if current is not None:
            self._passes.fail(context, current, error)
        else:
            context.give_up_outstanding_rpcs(error)

    def peer_is_down(
        self, context: DistAutogradContext, peer: int, reason: str
    ) -> None:
        """Have the pass of a context fail that waits for a worker which is gone."""
        current = context.graph_task
        if current is not None and (
            worker_of(current.pass_id) == peer
            or any(send.peer == peer for send in context.unanswered_sends(current))
        ):
            error = PeerDownError(f"node {peer} is down: {reason}")
            self._passes.fail(context, current, error)

    def waits_of(self, context: DistAutogradContext, pass_id: int) -> Waits:
        """Return the gradients and answers that a pass waits for here (D14)."""
        current = context.graph_task
        if current is not None and current.pass_id == pass_id:
            return context.waits(current)
        if current is not None or context.has_ended(pass_id):
            return context.waits_at_end(pass_id)
        sends = context.send_functions()
        unfed = {number: send.describe() for number, send in sends.items()}
        return Waits(unfed, has_begun=False)

    def num_backward_passes(self) -> int:
        """Return the number of passes under way on this worker."""
        return len(self._passes)

    def debug_info(self) -> dict[str, int]:
        """Two numbers by which one sees whether anything is left behind (D11)."""
        return {
            NUM_BACKWARD_PASSES: self.num_backward_passes(),
            NUM_CONTEXTS: len(self._container),
        }

    def close(self) -> None:
        """Fail the passes under way, and end the engine's thread."""
        self._passes.close()
        self._execution.close()

    def _after(
        self,
        context: DistAutogradContext,
        current: DistGraphTask,
        send: SendRpcBackward,
        gradients: Sequence[Gradient],
        pass_id: int,
        retain_graph: bool,
    ) -> Future[None]:
        """Begin a pass when the one that is here has ended, which is out of date."""
        if worker_of(current.pass_id) != worker_of(pass_id):
            return failed(
                self._sync,
                RuntimeError(
                    f"a backward pass of node {worker_of(current.pass_id)} is "
                    f"under way in autograd context {context.context_id}"
                ),
            )
        error = RuntimeError("a later backward pass of the same root has begun")
        self._passes.fail(context, current, error)
        result: Future[None] = Future(self._sync)
        run = contextvars.copy_context().run

        def go_on() -> None:
            self._passes.clean_up(context, current, has_failed=True)
            again = self.execute_send_function_async(
                context, send, gradients, pass_id=pass_id, retain_graph=retain_graph
            )
            again.add_done_callback(
                lambda: (
                    result.set_result(None)
                    if again.error is None
                    else result.set_error(again.error)
                )
            )

        current.outcome.ended.add_done_callback(lambda: run(go_on))
        return result

    def _late(self, context: DistAutogradContext, pass_id: int) -> RuntimeError:
        return RuntimeError(
            f"Error on Node {self._container.worker}: gradients came for backward "
            f"pass {pass_id} of autograd context {context.context_id}, which has ended"
        )


def propagating_pass(engine: Engine, node: RecvRpcBackward) -> DistGraphTask:
    """The distributed pass that runs `node` on the calling thread.

    Raises:
        RuntimeError: Some other pass does.
    """
    graph_task = engine.current_graph_task
    if not isinstance(graph_task, DistGraphTask):
        raise RuntimeError(
            f"{node!r} came from node {node.peer}, and its gradients go there: call "
            f"gradviz.distributed.autograd.backward instead of backward"
        )
    return graph_task
