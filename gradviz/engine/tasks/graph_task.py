"""One backward pass: its remaining work, its gradients so far, and its outcome."""

import contextvars
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gradviz import modes
from gradviz.engine.graph.input_buffer import InputBuffer
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.sync import Mailbox, Sync
from gradviz.engine.tasks.outcome import Outcome
from gradviz.engine.tasks.pass_streams import PassStreams
from gradviz.engine.tasks.ready_queue import ReadyQueue
from gradviz.modes import NEWEST_CHANGE
from gradviz.ready_order import (
    DEPTH_SHIFT,
    SHUTDOWN_PRIORITY,
    WAKE_UP_PRIORITY,
)
from gradviz.trace.probe import Probe
from gradviz.trace.reporting.ids import next_task_id

#: Values of `worker_device` that are not the index of a device. Source:
#: torch/csrc/autograd/graph_task.h (L1).
NO_DEVICE: Final = -2
CPU_DEVICE: Final = -1


class Capture(NamedTuple):
    """One gradient that the call returns: input `input_nr` of its node.

    Attributes:
        input_nr: Index of the gradient among the node's inputs.
        output_index: Its index in the result of `Engine.execute`.
        hook: Called with the node's gradients and `input_nr`; its result is captured
            instead. Runs without locks, on the thread that evaluates the node.

    Source: torch/csrc/autograd/graph_task.h, struct Capture, its capture hooks.
    """

    input_nr: int
    output_index: int
    hook: "Callable[[InputBuffer, int], Gradient] | None" = None


class ExecInfo:
    """Role of one node in a restricted pass.

    Note [Exec info]
    ~~~~~~~~~~~~~~~~
    A pass without outputs runs everything it can reach, and has no exec info at all.
    A pass with outputs has an entry for each node that matters: `is_needed` if it must
    run because it leads to an output (or is one, for ``backward(inputs=...)``),
    `captures` if its gradients are results. A node without an entry, or with neither,
    does not even receive its gradients.

    Written by one thread before the pass starts; only read after that.

    Source: torch/csrc/autograd/graph_task.h, struct ExecInfo (I1-I6).
    """

    __slots__ = ("captures", "is_needed")

    def __init__(self) -> None:
        self.is_needed = False
        self.captures: list[Capture] = []

    @property
    def should_execute(self) -> bool:
        """Return whether the node takes part in the pass at all."""
        return self.is_needed or bool(self.captures)


class GraphTask:
    """State of one call of `Engine.execute`.

    Note [Ownership of a GraphTask]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A pass belongs to the thread that called `execute`. That thread (or, beyond the
    reentrancy limit, the pool thread that stands in for it) consumes the queue of the
    device `owner` and leaves when `outcome` says that the pass is done. The thread that
    finishes the last task completes the pass. If it is not the consumer of the owner's
    queue, it pushes a wake-up there, whose arrival sets `is_done`. So only the consumer
    of one queue ever touches `is_done`, and it needs no lock.

    A failed pass ends the same way: its tasks are still popped and counted, but not
    executed. When the call raises, none of its tasks is left in any queue and none of
    its nodes is running. PyTorch returns at once instead and leaves the rest behind.

    Note [Private passes]
    ~~~~~~~~~~~~~~~~~~~~~
    A pass whose nodes are all on the CPU is private: its calling thread runs all its
    nodes, or a stand-in from the pool does while that thread sleeps. So only one thread
    at a time touches the progress that `mutex` guards (`dependencies`, `not_ready`,
    `outstanding_tasks`), and the mutex, which would cost more than everything done
    under it, is not taken for them. State that other threads may touch even so (the
    error and the end of the pass) stays under the mutex.

    Attributes:
        id: Unique in this process, from 0.
        is_private: See above. Constant once the pass has started.
        goes_short: True if it is private and not restricted, so that nodes may take the
            short way (Note [The short way through a node]). Constant likewise.
        keep_graph: True if saved tensors survive the pass. Constant.
        create_graph: Gradient mode inside the pass. Constant.
        reentrant_depth: 0, or one more than the pass it was called from. Constant.
        cpu_ready_queue: The queue of its CPU work. Constant.
        roots: Edges to its first nodes. Constant.
        outputs: The edges that restrict it. Constant.
        owner: `worker_device` of the calling thread. Set before the first push.
        home: The calling thread's state, compared by identity only. Constant.
        parent: The pass whose node made the call, None for a fresh call. Constant.
        devices: Indices of the devices that its nodes run on. Constant once started.
        uses_device_threads: False runs everything on `cpu_ready_queue`. Constant once
            the pass has started.
        streams: Its stream state; None if no node is on an accelerator, as in every
            private pass. Constant once the pass has started.
        context: The caller's context variables. Constant; threads run in copies.
        seen_change: The newest change of a mode after which `home` was as `context`;
            belongs to that thread. See Note [Modes in a backward].
        probe: The listener, None for none. Constant.
        home_reports: The node reporter of `home`, and of no other thread. Constant.
        exec_info: See Note [Exec info]. Constant once the pass has started.
        dependencies: Node -> incoming edges still to come; 0 stays in the table, so
            that its keys are the nodes of the graph. Guarded by `mutex`.
        not_ready: Node -> the gradients that have arrived. Guarded by `mutex`.
        captured_gradients: The results. Guarded by `mutex`.
        outstanding_tasks: Tasks queued or running. Guarded by `mutex`.
        outcome: State of its end. Constant.
        baton: Mailbox in which a stand-in from the pool reports back.

    Source: torch/csrc/autograd/graph_task.h, struct GraphTask.
    """

    __slots__ = (
        "__weakref__",
        "baton",
        "captured_gradients",
        "context",
        "cpu_ready_queue",
        "create_graph",
        "dependencies",
        "devices",
        "exec_info",
        "goes_short",
        "home",
        "home_reports",
        "id",
        "is_private",
        "keep_graph",
        "mutex",
        "not_ready",
        "outcome",
        "outputs",
        "outstanding_tasks",
        "owner",
        "parent",
        "priority",
        "probe",
        "reentrant_depth",
        "roots",
        "seen_change",
        "streams",
        "uses_device_threads",
    )

    def __init__(  # noqa: PLR0913 - what a pass is made of
        self,
        sync: Sync,
        *,
        keep_graph: bool,
        create_graph: bool,
        reentrant_depth: int,
        cpu_ready_queue: ReadyQueue,
        roots: Sequence[Edge] = (),
        outputs: Sequence[Edge] = (),
        owner: int,
        home: object,
        parent: "GraphTask | None" = None,
        uses_device_threads: bool,
        probe: Probe | None,
    ) -> None:
        self.id = next_task_id()
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.reentrant_depth = reentrant_depth
        self.priority = reentrant_depth << DEPTH_SHIFT
        self.cpu_ready_queue = cpu_ready_queue
        self.roots = roots
        self.outputs = outputs
        self.owner = owner
        self.home = home
        self.parent = parent
        self.uses_device_threads = uses_device_threads
        self.context = contextvars.copy_context()
        self.seen_change = NEWEST_CHANGE[0]
        self.probe = probe
        self.home_reports = probe.for_this_thread() if probe else None
        self.devices: frozenset[int] = frozenset()
        self.is_private = True
        self.goes_short = False
        self.streams: PassStreams | None = None
        self.exec_info: dict[Node, ExecInfo] = {}
        self.mutex = sync.lock()
        self.outcome = Outcome(sync, self.id, self.mutex, probe)
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.captured_gradients: list[Gradient] = []
        self.outstanding_tasks = 0
        self.baton: Mailbox[None] = sync.mailbox()

    def cpu_queue(self, worker: object) -> ReadyQueue:
        """Return the queue for a worker's ready CPU nodes."""
        del worker
        return self.cpu_ready_queue

    def put_back_modes(self) -> None:
        """Give the thread `home` back the modes it had when it called the pass."""
        if NEWEST_CHANGE[0] != self.seen_change:
            self.seen_change = modes.put_back(self.context)

    def should_execute(self, node: Node) -> bool:
        """Return whether `node` takes part in this pass."""
        if not self.exec_info:
            return True
        info = self.exec_info.get(node)
        return info is not None and info.should_execute

    def remaining(self) -> tuple[int, ...]:
        """Return the number of edges that each node still waits for; takes no lock."""
        return tuple(self.dependencies.values())

    def finish_one(self) -> bool:
        """Count one task as done; any thread, without `mutex`.

        Returns:
            True if it was the last: the caller then completes the pass.
        """
        if self.is_private:
            self.outstanding_tasks -= 1
            return self.outstanding_tasks == 0
        with self.mutex:
            self.outstanding_tasks -= 1
            return self.outstanding_tasks == 0

    def __repr__(self) -> str:
        return f"<GraphTask #{self.id}>"


class NodeTask:
    """One entry of a ready queue: a node to run and its gradients.

    Attributes:
        graph_task: The pass it belongs to; None for a shutdown.
        node: None for a wake-up and a shutdown.
        inputs: The gradients, one for each input of `node`.
        priority: See Note [Priority in a ready queue].
        ends_pass: True if its arrival means that the pass is complete.

    Source: torch/csrc/autograd/engine.h, struct NodeTask (Q1).
    """

    __slots__ = ("graph_task", "inputs", "node", "priority")

    ends_pass = False

    def __init__(
        self,
        graph_task: GraphTask | None,
        node: Node | None,
        inputs: list[Gradient],
        priority: int,
    ) -> None:
        self.graph_task = graph_task
        self.node = node
        self.inputs = inputs
        self.priority = priority


class WakeUp(NodeTask):
    """A task that only wakes up the consumer of the owner's queue (M5)."""

    __slots__ = ("ends_pass",)

    def __init__(self, graph_task: GraphTask, *, ends_pass: bool) -> None:
        super().__init__(graph_task, None, [], WAKE_UP_PRIORITY)
        self.ends_pass = ends_pass


class LetGo(WakeUp):
    """Tells a stand-in from the pool that its caller was interrupted and has left.

    Its push is not reported, because the report could be interrupted too; so its pop is
    not reported either.
    """

    __slots__ = ()

    def __init__(self, graph_task: GraphTask) -> None:
        super().__init__(graph_task, ends_pass=True)


class Shutdown(NodeTask):
    """A task that ends the thread that pops it (Q6)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [], SHUTDOWN_PRIORITY)
