"""One backward pass: what is still to come, what has arrived, how it ended."""

import contextvars
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from gradviz import modes
from gradviz.engine.input_buffer import InputBuffer
from gradviz.engine.node import Edge, Node
from gradviz.engine.pass_streams import PassStreams
from gradviz.engine.protocols import Gradient
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.sync import Mailbox, Sync
from gradviz.ids import next_task_id
from gradviz.modes import NEWEST_CHANGE
from gradviz.ready_order import (
    DEPTH_SHIFT,
    SHUTDOWN_PRIORITY,
    WAKE_UP_PRIORITY,
)
from gradviz.trace.probe import Probe

#: Values of `worker_device` that are no device's index.
#: Source: torch/csrc/autograd/graph_task.h (L1).
NO_DEVICE: Final = -2
CPU_DEVICE: Final = -1

#: How long a failed pass waits for its nodes that run on other threads.
QUIESCE_NS: Final = 5_000_000_000


class Capture(NamedTuple):
    """One gradient that the call returns: input `input_nr` of the node it is at.

    Attributes:
        input_nr: Which gradient of the node's.
        output_index: Its place in what `Engine.execute` returns.
        hook: Given the node's gradients and `input_nr`; what it returns is captured
            instead. Without locks, on the thread that evaluates the node.

    Source: torch/csrc/autograd/graph_task.h, struct Capture, its capture hooks.
    """

    input_nr: int
    output_index: int
    hook: "Callable[[InputBuffer, int], Gradient] | None" = None


class ExecInfo:
    """What a restricted pass wants of one node.

    Note [Exec info]
    ~~~~~~~~~~~~~~~~
    A pass without outputs runs everything it can reach, and has no exec info at all.
    A pass with outputs has an entry for each node that matters: `is_needed` if it must
    run because it leads to an output (or is one, for ``backward(inputs=...)``),
    `captures` if its gradients are results. A node without an entry, or with neither,
    is not even given its gradients.

    Written before the pass begins, by one thread; only read after that.

    Source: torch/csrc/autograd/graph_task.h, struct ExecInfo (I1-I6).
    """

    __slots__ = ("captures", "is_needed")

    def __init__(self) -> None:
        self.is_needed = False
        self.captures: list[Capture] = []

    @property
    def should_execute(self) -> bool:
        """Whether the node takes part in the pass at all."""
        return self.is_needed or bool(self.captures)


class GraphTask:
    """All that one call of `Engine.execute` has to remember.

    Note [Ownership of a GraphTask]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
    A pass belongs to the thread that called `execute`. That thread (or, beyond the
    reentrancy limit, the pool thread that stands in for it) consumes the queue of the
    device `owner` and leaves when it finds `is_done`. Whichever thread finishes the
    last task completes the pass; if it is not the consumer of the owner's queue, it
    pushes a wake-up there, whose arrival sets `is_done`. So `is_done` is only ever
    touched by the consumer of one queue, and needs no lock.

    A failed pass ends the same way: its tasks are still popped and counted, but not
    executed. When the call raises, none of its tasks is left in any queue and none of
    its nodes is running. PyTorch returns at once instead and leaves the rest behind.

    Note [Private passes]
    ~~~~~~~~~~~~~~~~~~~~~
    A pass whose nodes are all on the CPU is private: the thread that called for it
    runs all its nodes, or a stand-in from the pool while that thread sleeps. One thread
    at a time then touches what `mutex` guards of its progress (`dependencies`,
    `not_ready`, `outstanding_tasks`), and the mutex, which would cost more than all
    else that happens under it, is not taken for them. What others may touch even so
    (its error, its end) stays under the mutex.

    Attributes:
        id: Unique in this process, from 0.
        is_private: See above. Constant once the pass has begun.
        goes_short: Whether it is private and not restricted, so that nodes may go the
            short way (Note [The short way through a node]). Constant likewise.
        keep_graph: Whether saved tensors survive the pass. Constant.
        create_graph: Gradient mode inside the pass. Constant.
        reentrant_depth: 0, or one more than the pass it was called from. Constant.
        cpu_ready_queue: Where its work for the CPU goes. Constant.
        roots: Where it begins. Constant.
        outputs: What restricts it. Constant.
        owner: `worker_device` of the calling thread. Set before the first push.
        home: The calling thread's state, compared by identity only. Constant.
        parent: The pass whose node made the call, None for a fresh call. Constant.
        devices: Indices of the devices that its nodes run on. Constant once begun.
        uses_device_threads: False runs everything on `cpu_ready_queue`. Constant once
            the pass has begun.
        streams: What it knows of streams; None if no node is on an accelerator, which
            a private pass never has. Constant once the pass has begun.
        context: The caller's context variables. Constant; threads run in copies.
        seen_change: The newest change of a mode after which `home` was as `context`;
            belongs to that thread. See Note [Modes in a backward].
        probe: Who listens, None for nobody. Constant.
        home_reports: Whom `home` reports its nodes to, and only it. Constant.
        exec_info: See Note [Exec info]. Constant once the pass has begun.
        dependencies: Node -> incoming edges still to come; 0 stays in the table, so
            that its keys are the nodes of the graph. Guarded by `mutex`.
        not_ready: Node -> the gradients that have come. Guarded by `mutex`.
        captured_gradients: The results. Guarded by `mutex`.
        outstanding_tasks: Tasks queued or running. Guarded by `mutex`.
        helpers: The states of threads other than `home`, once for each node that they
            run (a nested loop may run another one). Guarded by `mutex`.
        error: The first error. Guarded by `mutex`, readable without once `is_done`.
        is_complete: Whether it ended without one. Guarded by `mutex`.
        has_error: A `Flag`, set with `error` and never reset.
        is_torn: A `Flag`: an error struck the engine's own code on a device thread
            that worked for the pass, so its tasks can no longer be counted.
        is_ended: See `claim_end`. Guarded by `mutex`.
        is_told: Whether a wake-up has told the owner so. Guarded by `mutex`.
        final_callbacks: Run when the last node has. Appending is atomic.
        is_done: See above; belongs to the consumer of the owner's queue.
        deadline_ns: See `time_left`; belongs to that consumer, too.
        baton: Where a stand-in from the pool reports back.

    Source: torch/csrc/autograd/graph_task.h, struct GraphTask.
    """

    __slots__ = (
        "__weakref__",
        "baton",
        "captured_gradients",
        "context",
        "cpu_ready_queue",
        "create_graph",
        "deadline_ns",
        "dependencies",
        "devices",
        "error",
        "exec_info",
        "final_callbacks",
        "goes_short",
        "has_error",
        "helpers",
        "home",
        "home_reports",
        "id",
        "is_complete",
        "is_done",
        "is_ended",
        "is_private",
        "is_told",
        "is_torn",
        "keep_graph",
        "mutex",
        "not_ready",
        "outputs",
        "outstanding_tasks",
        "owner",
        "parent",
        "priority",
        "probe",
        "quiet",
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
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.captured_gradients: list[Gradient] = []
        self.outstanding_tasks = 0
        self.helpers: list[object] = []
        self.error: BaseException | None = None
        self.is_complete = False
        self.is_ended = False
        self.is_told = False
        self.has_error = sync.flag()
        self.is_torn = sync.flag()
        self.final_callbacks: list[Callable[[], object]] = []
        self.is_done = False
        self.deadline_ns: int | None = None
        self.baton: Mailbox[None] = sync.mailbox()
        self.quiet: Mailbox[None] = sync.mailbox()

    def cpu_queue(self, worker: object) -> ReadyQueue:
        """Where a worker puts what is ready for the CPU."""
        del worker
        return self.cpu_ready_queue

    def put_back_modes(self) -> None:
        """Give the thread `home` the modes that it had when it called for the pass."""
        if NEWEST_CHANGE[0] != self.seen_change:
            self.seen_change = modes.put_back(self.context)

    def should_execute(self, node: Node) -> bool:
        """Whether `node` takes part in this pass."""
        if not self.exec_info:
            return True
        info = self.exec_info.get(node)
        return info is not None and info.should_execute

    def remaining(self) -> tuple[int, ...]:
        """How many edges each node still waits for; takes no lock."""
        return tuple(self.dependencies.values())

    def set_error(self, error: BaseException, node: Node | None) -> bool:
        """Make `error` the outcome of the pass, unless there is one already.

        Any thread, without `mutex`.

        Returns:
            Whether it was the first, and came before the pass was complete.
        """
        text = describe(error) if self.probe else ""  # anybody's code: not under it
        with self.mutex:
            is_first = not (self.has_error.value or self.is_complete)
            if is_first:
                self.error = error
                # Before it holds: what strikes the report comes here with its own.
                if self.probe:
                    self.probe.task_failed(
                        self.id, -1 if node is None else node.id, text
                    )
                self.has_error.value = True
        return is_first

    def claim_end(self) -> bool:
        """Claim the right to tell the owner that the pass has ended.

        Returns:
            True the first time, so that the owner is told once: it leaves when it is
            told, and a second wake-up would be left behind in its queue.
        """
        with self.mutex:
            is_first = not self.is_ended
            self.is_ended = True
        return is_first

    def complete(self) -> None:
        """Say that the pass has ended well, unless it has failed (P1)."""
        with self.mutex:
            if self.has_error.value:
                return
            # Before it holds: what strikes the report makes the pass fail.
            if self.probe:
                self.probe.task_completed(self.id)
            self.is_complete = True

    def time_left(self, now_ns: int) -> float:
        """How many seconds a failed pass may still wait for its nodes elsewhere.

        The time begins with the first call. The consumer of the owner's queue only.
        """
        if self.deadline_ns is None:
            self.deadline_ns = now_ns + QUIESCE_NS
        return max(0.0, (self.deadline_ns - now_ns) / 1e9)

    def begin_help(self, state: object) -> bool:
        """Say that a thread other than `home` is about to run a node.

        Args:
            state: That thread's.

        Returns:
            False if the pass has failed: then the node must not start. Decided under
            the mutex, so that no node starts after `home` has found no helpers in a
            pass that has failed.
        """
        with self.mutex:
            if self.has_error.value:
                return False
            self.helpers.append(state)
        return True

    def end_help(self, state: object) -> None:
        """Say that the node which `begin_help` announced has run."""
        with self.mutex:
            if state in self.helpers:
                self.helpers.remove(state)
            is_quiet = not self.helpers and self.has_error.value
        if is_quiet:
            self.quiet.put(None)

    def forget_helper(self, state: object) -> None:
        """Say that a thread runs no node of this pass any more, however it ended."""
        with self.mutex:
            self.helpers = [one for one in self.helpers if one is not state]
            is_quiet = not self.helpers and self.has_error.value
        if is_quiet:
            self.quiet.put(None)

    def finish_one(self) -> bool:
        """Count one task as done; any thread, without `mutex`.

        Returns:
            Whether it was the last: the caller then completes the pass.
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
    """One entry of a ready queue: a node to run and the gradients it is given.

    Attributes:
        graph_task: The pass it belongs to; None for a shutdown.
        node: None for a wake-up and a shutdown.
        inputs: The gradients, one for each input of `node`.
        priority: See Note [Priority in a ready queue].
        ends_pass: Whether its arrival says that the pass is complete.

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
    """A task that only makes the owner's consumer look up (M5)."""

    __slots__ = ("ends_pass",)

    def __init__(self, graph_task: GraphTask, *, ends_pass: bool) -> None:
        super().__init__(graph_task, None, [], WAKE_UP_PRIORITY)
        self.ends_pass = ends_pass


class LetGo(WakeUp):
    """Tells a stand-in from the pool that its caller was interrupted, and has gone.

    Nobody reports its push: that could be interrupted as well. So nor is its pop.
    """

    __slots__ = ()

    def __init__(self, graph_task: GraphTask) -> None:
        super().__init__(graph_task, ends_pass=True)


class Shutdown(NodeTask):
    """A task that ends the thread that pops it (Q6)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [], SHUTDOWN_PRIORITY)


def describe(error: BaseException) -> str:
    """An error in one line, as traces keep it."""
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
