"""The passes that are under way on one worker: how they begin and end."""

from collections.abc import Sequence

from gradviz.distributed.backward.context import DistAutogradContext
from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.backward.execution import DistExecution
from gradviz.distributed.backward.others import Others
from gradviz.distributed.backward.preparation import prepare
from gradviz.distributed.messaging.failures import PeerDownError
from gradviz.distributed.messaging.future import Future
from gradviz.engine import Engine
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.ops.conventions.silence import SILENT, put, setting
from gradviz.trace import probe as trace


class DistPasses:
    """Begins, ends and counts the distributed passes of one worker.

    Args:
        engine: The local one, whose devices and rules are used.
        execution: Execution that runs their nodes.
        worker: The rank.
        others: The other workers.

    Attributes:
        mutex: Guards the beginning of passes: one at a time.
    """

    def __init__(
        self, engine: Engine, execution: DistExecution, worker: int, others: Others
    ) -> None:
        self._engine = engine
        self._sync = engine.sync
        self._execution = execution
        self._worker = worker
        self._others = others
        self.mutex = self._sync.lock()
        #: Guarded by `mutex`.
        self._under_way: dict[int, DistGraphTask] = {}

    def __len__(self) -> int:
        with self.mutex:
            return len(self._under_way)

    def close(self) -> None:
        """Fail all of them."""
        with self.mutex:
            under_way = tuple(self._under_way.values())
        for graph_task in under_way:
            graph_task.outcome.set_error(RuntimeError("the worker was shut down"), None)

    def begin(
        self,
        context: DistAutogradContext,
        begin: Node,
        pass_id: int,
        *,
        keep_graph: bool,
    ) -> DistGraphTask:
        """Make a pass, and have its context own it; under the mutex.

        Raises:
            RuntimeError: The context has one already; its graph has no proper end.
        """
        engine = self._engine
        heard = setting()
        try:
            put(SILENT)  # the pass runs in copies of this context
            graph_task = DistGraphTask(
                self._sync,
                pass_id=pass_id,
                keep_graph=keep_graph,
                shared_queue=self._execution.queue,
                probe=trace.current,
            )
        finally:
            put(heard)
        found = prepare(graph_task, context, begin)
        if found.devices:
            engine.initialize_device_threads_pool(found.devices)
            graph_task.devices = frozenset(one.number for one in found.devices)
            self._execution.begin_cpu_thread()
        if found.streams:
            graph_task.streams = PassStreams(
                graph_task.id, graph_task.probe, found.streams
            )
        context.set_graph_task(graph_task)
        try:
            engine.passes.begin(graph_task)
        except BaseException:
            context.reset_graph_task(graph_task)
            engine.passes.forget(graph_task.id, None)
            raise
        self._under_way[graph_task.id] = graph_task
        for send in context.send_functions().values():
            if (reason := self._others.why_down(send.peer)) is not None:
                error = PeerDownError(f"node {send.peer} is down: {reason}")
                self.fail(context, graph_task, error)
        if graph_task.probe:
            engine.report_begin(graph_task.probe, graph_task, begin)
        return graph_task

    def run(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        begin: Node,
        inputs: Sequence[Gradient],
    ) -> Future[None]:
        """Run a pass; done when all is, and it was cleaned up after it (D7, D8)."""
        result = graph_task.result

        def finish(error: BaseException | None) -> None:
            self.clean_up(context, graph_task, has_failed=error is not None)
            if error is None:
                result.set_result(None)
                return
            reason = f"Error on Node {self._worker}: {_message(error)}"
            failure = RuntimeError(reason)
            failure.__cause__ = error
            result.set_error(failure)
            self.tell_all(context, graph_task.pass_id, reason)

        def wait_for_rpcs() -> None:
            if graph_task.outcome.ended.error is not None:
                finish(graph_task.outcome.ended.error)
                return
            rpcs = context.outstanding_rpcs()
            rpcs.add_done_callback(lambda: finish(rpcs.error))

        graph_task.outcome.ended.add_done_callback(wait_for_rpcs)
        self._execution.launch(graph_task, begin, inputs)
        return result

    def clean_up(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        *,
        has_failed: bool,
    ) -> None:
        """Release a pass, however it ended (D10)."""
        context.mark_ended(graph_task.pass_id, has_failed=has_failed)
        if context.reset_graph_task(graph_task) and has_failed:
            ended = RuntimeError("the backward pass has ended")
            context.give_up_outstanding_rpcs(ended)
        with self.mutex:
            self._under_way.pop(graph_task.id, None)
        self._engine.passes.forget(graph_task.id, None)
        self._engine.passes.tell_idle()

    def abandon(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        error: BaseException,
    ) -> None:
        """Give up a pass for which the caller no longer waits."""
        self.fail(context, graph_task, error)
        self.clean_up(context, graph_task, has_failed=True)
        self.tell_all(context, graph_task.pass_id, _message(error))

    def tell_all(self, context: DistAutogradContext, pass_id: int, reason: str) -> None:
        """Have a pass fail on all workers to which its context was sent."""
        for peer in context.known_workers():
            self._others.tell_of_failure(peer, context.context_id, pass_id, reason)

    def fail(
        self,
        context: DistAutogradContext,
        graph_task: DistGraphTask,
        error: BaseException,
    ) -> None:
        """Have a pass fail, whether its nodes run or it only waits for answers."""
        graph_task.outcome.set_error(error, None)
        context.give_up_outstanding_rpcs(error)


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__
