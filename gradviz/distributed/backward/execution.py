"""Execution of distributed passes' nodes, on threads of their own."""

from collections.abc import Callable, Sequence

from gradviz.distributed.backward.distributed_task import DistGraphTask
from gradviz.distributed.messaging.thread_names import thread_name
from gradviz.engine import Engine
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.tasks.graph_task import CPU_DEVICE, NO_DEVICE, NodeTask, Shutdown
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.engine.threads.completion import mark_as_completed_and_run_post_processing
from gradviz.engine.threads.thread_main import help_with, report_wake_up
from gradviz.engine.threads.worker import Worker
from gradviz.trace.probe import Push


class DistExecution:
    """Runs the ready nodes of one worker's distributed passes.

    Note [GPU to CPU continuations]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    CPU work that a device's thread makes ready has no thread that waits for it; see
    Note [Queues of a distributed pass]. It goes to a queue of this engine, whose thread
    pops it and hands it to a thread of the pool at once.

    Args:
        engine: The local one, whose devices and rules are used.
        launch: Runs a job on another thread.
        worker: Worker that has the thread of the queue.

    Attributes:
        queue: Queue for what a device's thread makes ready for the CPU.

    Source: torch/csrc/distributed/autograd/engine/dist_engine.cpp (D1, D6).
    """

    def __init__(
        self,
        engine: Engine,
        launch: Callable[[Callable[[], object]], object],
        worker: int,
    ) -> None:
        self._engine = engine
        self._launch = launch
        self._thread_name = thread_name(worker, "CPU")
        self.queue: ReadyQueue = engine.queues.new_caller_queue()
        #: Guards what follows.
        self._mutex = engine.sync.lock()
        self._has_cpu_thread = False

    def begin_cpu_thread(self) -> None:
        """Have the thread of the queue, if it is not there yet.

        Raises:
            RuntimeError: The system refuses a thread.
        """
        with self._mutex:
            must_spawn, self._has_cpu_thread = not self._has_cpu_thread, True
        if must_spawn:
            try:
                self._engine.sync.spawn(self._global_cpu_thread, self._thread_name)
            except BaseException:
                with self._mutex:
                    self._has_cpu_thread = False
                raise

    def close(self) -> None:
        """End the thread of the queue."""
        with self._mutex:
            has_thread, self._has_cpu_thread = self._has_cpu_thread, False
        if has_thread:
            self.queue.push(Shutdown())

    def launch(
        self, graph_task: DistGraphTask, node: Node, inputs: Sequence[Gradient]
    ) -> None:
        """Run the first node of a pass, and those that it makes ready, on a thread."""
        buffer = list(inputs)
        if graph_task.streams is not None:
            buffer = graph_task.streams.begin(node, buffer)
        task = NodeTask(
            graph_task, node, buffer, graph_task.priority + node.sequence_nr
        )
        self._launch_until_empty(task, is_root=True)

    def _launch_until_empty(self, task: NodeTask, *, is_root: bool) -> None:
        graph_task = task.graph_task
        assert isinstance(graph_task, DistGraphTask)

        def run() -> None:
            self._execute_until_ready_queue_empty(graph_task, task, is_root=is_root)

        try:
            self._launch(run)
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            graph_task.outcome.set_error(error, None)

    def _execute_until_ready_queue_empty(
        self, graph_task: DistGraphTask, first: NodeTask, *, is_root: bool
    ) -> None:
        """Work with a fresh queue until it is empty (D6); a thread of the pool."""
        worker = self._engine.worker()
        queue: ReadyQueue = self._engine.queues.new_caller_queue()
        worker.serve(queue, CPU_DEVICE)
        if graph_task.probe:
            graph_task.probe.queue_defined(queue.id, queue.name, CPU_DEVICE)
            if is_root:
                _report_push(graph_task, first, queue)
        queue.push_own(first)
        del first  # or its gradients would live until the queue is empty
        try:
            while not queue.is_empty():
                self._run(worker, queue, queue.pop())
        except BaseException as error:  # noqa: BLE001 - it struck the engine's own code
            graph_task.outcome.is_torn.value = True
            graph_task.outcome.set_error(error, None)
            graph_task.outcome.forget_helper(worker)
        finally:
            worker.worker_device = NO_DEVICE
            worker.ready_queue = worker.graph_task = worker.node = None
            worker.in_user_code = True
            worker.is_interrupted = False

    def _run(self, worker: Worker, queue: ReadyQueue, task: NodeTask) -> None:
        """Run a task as the local engine's loop does."""
        graph_task = task.graph_task
        assert isinstance(graph_task, DistGraphTask)
        worker.has_count = True
        if task.node is not None:
            help_with(worker, graph_task, queue, task.node, task.inputs)
        else:
            report_wake_up(graph_task, queue, task)
            if task.ends_pass:
                graph_task.outcome.end()
                return
        del task
        if worker.has_count and graph_task.finish_one():
            mark_as_completed_and_run_post_processing(worker, graph_task)
            graph_task.outcome.end()

    def _global_cpu_thread(self) -> None:
        """See Note [GPU to CPU continuations]."""
        queue = self.queue
        while not isinstance(task := queue.pop(), Shutdown):
            self._launch_until_empty(task, is_root=False)
            del task


def _report_push(graph_task: DistGraphTask, task: NodeTask, queue: ReadyQueue) -> None:
    probe, node = graph_task.probe, task.node
    if probe is None or node is None:
        return
    with graph_task.mutex:
        probe.task_pushed(
            graph_task.id,
            node.id,
            queue.id,
            graph_task.reentrant_depth,
            node.sequence_nr,
            1,
            graph_task.outstanding_tasks,
            -1,
            Push.ROOT,
        )
