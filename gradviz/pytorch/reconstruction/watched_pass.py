"""A watched backward pass of PyTorch's: the facts known while it ran."""

from typing import Final

from gradviz.pytorch.nodes.places import ForwardPlace
from gradviz.pytorch.nodes.seen_node import PlannedHooks, SeenGraph, SeenNode
from gradviz.trace.probe import How, Probe


class WatchedPass:
    """One call of `backward` or `grad`. The thread that calls it fills it.

    Attributes:
        task: Its id.
        parent: The pass inside of which it began, None for none.
        inside: The id of the node of `parent` that was being evaluated when it began:
            the node itself ran, or one of its hooks. -1 if there is none.
        listener: Listener that it reports to, until its end.
        thread: The operating system's number of the thread that called it.
        thread_name: Name of that thread.
        graph: Graph that it may run, None if that could not be read.
        needed: Of that, what has to run, None for all; see `needs.needed_nodes`.
        captures: Node -> which outputs are its gradients.
        accumulates: True if gradients go into ``.grad``.
        had_grad: The leaves' nodes whose ``.grad`` was there when it began.
        adds: Way in which it adds to those.
        hooks: The hooks of its nodes, as far as they are known.
        called_ns: Time of the call of PyTorch, on the clock of events.
        returned_ns: Time of the return from PyTorch; 0 before.
        error: Error that it raised, empty if nothing.
        fails_in_node: True if it was a node that raised, and no hook.
        unseen: Answer of the profiler when it was counted: the reason why it cannot see
            its nodes, empty if it can; None if it was not counted.
        is_begun: True once its start has been reported.
        is_told: True once its end has been reported, if its nodes were not seen.
        problem: Problem with watching it, empty if there was none.
        not_finite: Values that checks found not to be finite, rows of `NotFinite`. Any
            thread of the engine appends.
        place_before: With `create_graph`, the place of the thread before it made nodes.
    """

    def __init__(
        self,
        task: int,
        parent: "WatchedPass | None",
        listener: Probe,
        thread: int,
        thread_name: str,
    ) -> None:
        self.task: Final = task
        self.parent: Final = parent
        self.listener: Final = listener
        self.thread: Final = thread
        self.thread_name: Final = thread_name
        self.inside = -1
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.graph: SeenGraph | None = None
        self.needed: set[SeenNode] | None = None
        self.captures: dict[SeenNode, list[int]] = {}
        self.accumulates = False
        self.had_grad: set[SeenNode] = set()
        self.adds = How.IN_PLACE
        self.hooks: dict[SeenNode, PlannedHooks] = {}
        self.called_ns = self.returned_ns = 0
        self.error = ""
        self.fails_in_node = False
        self.unseen: str | None = None
        self.is_begun = self.is_told = False
        self.problem = ""
        self.not_finite: list[list[int | str]] = []
        self.place_before: ForwardPlace | None = None

    def take(self, graph: SeenGraph, *, accumulates: bool) -> None:
        """Note the nodes that it may run."""
        self.graph = graph
        self.accumulates = accumulates
        self.needed = graph.needed
        if not accumulates:
            for index, output in enumerate(graph.outputs):
                if output.node is not None:
                    self.captures.setdefault(output.node, []).append(index)

    def unheard(self) -> "WatchedPass":
        """Return a copy without a graph and without listeners.

        It stands for what the profiler may have seen of a pass that it was not to see.
        """
        parent, nobody = self.parent, Probe()
        one = WatchedPass(self.task, parent, nobody, self.thread, self.thread_name)
        one.inside = self.inside
        one.called_ns, one.returned_ns = self.called_ns, self.returned_ns
        return one
