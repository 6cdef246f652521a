"""What the engine remembers of each thread."""

from gradviz.engine.graph_task import NO_DEVICE, GraphTask, NodeTask
from gradviz.engine.node import Node
from gradviz.engine.ready_queue import ReadyQueue
from gradviz.engine.sync import current_thread


class ThreadState:
    """One thread's part in one engine; touched by that thread only.

    Attributes:
        worker_device: Index of the device whose queue the thread consumes, -1 for the
            CPU; `NO_DEVICE` while it is in no backward. A call of `execute` on a
            thread that has one is reentrant (RE1).
        ready_queue: The queue it consumes; made at its first backward and kept (L11).
        current_depth: Reentrant calls nested on this thread.
        total_depth: The same over all threads that led here.
        graph_task: The pass whose node it runs (K2).
        node: That node (K7).
        are_outer_unrestricted: Whether every pass on this thread's stack, below the
            one whose node it runs, has no exec info.
        has_count: Whether the task that it runs still counts as outstanding; see
            Note [Passing on a count].
        in_user_code: Whether a node, hook or callback is running, so that a call of
            `execute` comes from there, and not from a signal handler or a finaliser
            that struck inside the engine. See Note [Interrupted engine code].
        is_interrupted: An error struck the engine's own code in a nested call, so the
            loops below it on this thread must end too.
        calls: For each reentrant call on this thread, the pass and the node that made
            it, outermost first.
        thread_name: For people.
        thread_id: For looking up its stack.

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
        "ready_queue",
        "thread_id",
        "thread_name",
        "total_depth",
        "worker_device",
    )

    def __init__(self) -> None:
        self.worker_device = NO_DEVICE
        self.ready_queue: ReadyQueue[NodeTask] | None = None
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
        """Whether every pass on this thread's stack runs without exec info (K1)."""
        return self.are_outer_unrestricted and not (
            self.graph_task is not None and self.graph_task.exec_info
        )

    def serve(
        self, queue: ReadyQueue[NodeTask], device: int, total_depth: int = 0
    ) -> None:
        """Begin anew as a thread that works for the engine on `queue`."""
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
        """What a call of `execute` changes and puts back when it ends."""
        return (
            self.worker_device,
            self.total_depth,
            self.current_depth,
            self.graph_task,
            self.node,
            self.are_outer_unrestricted,
        )
