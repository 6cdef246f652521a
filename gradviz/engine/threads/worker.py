"""Per-thread state of the engine: the running node, and the queue of ready ones."""

from typing import Final

from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.sync import Sync, current_thread
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import NO_DEVICE, GraphTask, NodeTask
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.probe import Push

# when compiled: found
_NODE: Final = Push.NODE
_ROOT: Final = Push.ROOT


class Worker:
    """State of one thread in one engine; only that thread touches it.

    Args:
        sync: The seam.
        queues: The queues of the engine's devices.

    Attributes:
        sync: As given.
        queues: As given.
        worker_device: Index of the device whose queue the thread consumes, -1 for the
            CPU; `NO_DEVICE` while it is in no backward. A call of `execute` on a
            thread that has one is reentrant (RE1).
        ready_queue: The queue it consumes; made at its first backward and kept (L11).
        current_depth: Reentrant calls nested on this thread.
        total_depth: The same over all threads that led here.
        graph_task: The pass whose node it runs (K2).
        node: That node (K7).
        are_outer_unrestricted: True if every pass on this thread's stack, below the one
            whose node it runs, has no exec info.
        has_count: True if the running task still counts as outstanding; see
            Note [Passing on a count].
        in_user_code: True if a node, hook or callback is running, so that a call of
            `execute` comes from there, and not from a signal handler or a finalizer
            that interrupted the engine. See Note [Interrupted engine code].
        is_interrupted: An error struck the engine's own code in a nested call, so the
            loops below it on this thread must end too.
        calls: For each reentrant call on this thread, the pass and the node that made
            it, outermost first.
        thread_name: Name of the thread, for display.
        thread_id: Identifier of the thread, to look up its stack.

    Source: torch/csrc/autograd/engine.cpp, its thread-locals (L10).
    """

    __slots__ = (
        "__weakref__",
        "are_outer_unrestricted",
        "calls",
        "current_depth",
        "graph_task",
        "has_count",
        "in_user_code",
        "is_interrupted",
        "node",
        "queues",
        "ready_queue",
        "sync",
        "thread_id",
        "thread_name",
        "total_depth",
        "worker_device",
    )

    def __init__(self, sync: Sync, queues: DeviceQueues) -> None:
        self.sync = sync
        self.queues = queues
        self.worker_device = NO_DEVICE
        self.ready_queue: ReadyQueue | None = None
        self.current_depth = 0
        self.total_depth = 0
        self.graph_task: GraphTask | None = None
        self.node: Node | None = None
        self.are_outer_unrestricted = True
        self.has_count = True
        self.in_user_code = True
        self.is_interrupted = False
        self.calls: list[tuple[GraphTask | None, Node | None]] = []
        self.thread_name, self.thread_id = current_thread()

    @property
    def is_checkpoint_valid(self) -> bool:
        """Return whether every pass on this thread's stack has no exec info (K1)."""
        return self.are_outer_unrestricted and not (
            self.graph_task is not None and self.graph_task.exec_info
        )

    def serve(self, queue: ReadyQueue, device: int, total_depth: int = 0) -> None:
        """Start over as a thread that works for the engine on `queue`."""
        self.worker_device = device
        self.ready_queue = queue
        self.current_depth = 0
        self.total_depth = total_depth
        self.graph_task = None
        self.node = None
        self.are_outer_unrestricted = True
        self.has_count = True
        self.in_user_code = False
        self.is_interrupted = False
        self.calls.clear()

    def saved(
        self,
    ) -> tuple[int, int, int, GraphTask | None, Node | None, bool]:
        """The fields that a call of `execute` changes and restores when it ends."""
        return (
            self.worker_device,
            self.total_depth,
            self.current_depth,
            self.graph_task,
            self.node,
            self.are_outer_unrestricted,
        )

    def reports(self, graph_task: GraphTask) -> NodeReports:
        """Return the node reporter for a recorded pass on this thread."""
        if self is graph_task.home:
            reports = graph_task.home_reports
            assert reports is not None
            return reports
        assert graph_task.probe is not None
        return graph_task.probe.for_this_thread()

    # Note [Passing on a count]
    # ~~~~~~~~~~~~~~~~~~~~~~~~~
    # Every task of a pass counts as outstanding, under the pass's mutex, from its push
    # until it has run. A node that makes another one ready *on its own thread* need not
    # count: no other thread can run that one before this thread comes back to its
    # queue, so the task that ends simply passes its count on (`has_count` says whether
    # it still has it). A chain thus runs from its root to its leaf with one count that
    # never changes. A count must not be passed to another thread's queue: that thread
    # might end the pass while this one is still handing over gradients.

    def push(
        self,
        graph_task: GraphTask,
        reports: NodeReports | None,
        node: Node,
        inputs: InputBuffer,
        producer: Node | None,
    ) -> None:
        """Push a node that has all its gradients to the queue of its device.

        Called under the GraphTask's mutex, unless the pass is private.

        Args:
            graph_task: The pass.
            reports: The node reporter, None for none.
            node: The node to run.
            inputs: Its gradients, which nobody else holds.
            producer: The node running here that made it ready; None for a root, which
                nobody made ready.
        """
        queue = self.queues.queue_of(graph_task, node, self)
        is_own = queue is self.ready_queue
        if is_own and producer is not None:
            self.push_own(graph_task, node, inputs)
            if reports is not None:
                _report_push(reports, graph_task, node, queue, len(queue), producer)
            return
        graph_task.outstanding_tasks += 1
        if reports is not None:  # first, or its pop might be reported earlier
            _report_push(reports, graph_task, node, queue, len(queue) + 1, producer)
        priority = graph_task.priority + node.sequence_nr
        push = queue.push_own if is_own else queue.push
        push(NodeTask(graph_task, node, inputs, priority))

    def push_own(self, graph_task: GraphTask, node: Node, inputs: InputBuffer) -> None:
        """Push a node to the queue that this thread consumes, without a report."""
        if self.has_count:
            self.has_count = False
        else:
            graph_task.outstanding_tasks += 1
        task = NodeTask.__new__(NodeTask)  # when compiled: new
        task.graph_task = graph_task
        task.node = node
        task.inputs = inputs
        task.priority = graph_task.priority + node.sequence_nr
        queue = self.ready_queue
        assert queue is not None
        if queue.plain is None:
            queue.push_own(task)
        else:
            queue.plain.push(task)


def _report_push(
    reports: NodeReports,
    graph_task: GraphTask,
    node: Node,
    queue: ReadyQueue,
    length: int,
    producer: Node | None,
) -> None:
    reports.task_pushed(
        graph_task.id,
        node.id,
        queue.id,
        graph_task.reentrant_depth,
        node.sequence_nr,
        length,
        graph_task.outstanding_tasks,
        -1 if producer is None else producer.id,
        _ROOT if producer is None else _NODE,
    )
