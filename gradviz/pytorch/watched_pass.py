"""A backward pass of PyTorch's that is watched: what was known of it as it ran."""

from typing import Final

from gradviz.pytorch.needs import nodes_needed
from gradviz.pytorch.seen_node import SeenGraph, SeenNode
from gradviz.trace.probe import Probe


class WatchedPass:
    """One call of `backward` or `grad`. The thread that calls it fills it.

    Attributes:
        task: Its id.
        parent: The pass inside of which it began, None for none.
        listener: Whom it reports to, to its end.
        thread: The operating system's number of the thread that called it.
        thread_name: What that is called.
        graph: What it may run, None if that could not be read.
        needed: Of that, what has to run, None for all; see `nodes_needed`.
        captures: Node -> which outputs are its gradients.
        accumulates: Whether gradients go into ``.grad``.
        called_ns: When PyTorch was called, on the clock of events.
        returned_ns: When PyTorch had returned; 0 before.
        error: What it raised, empty if nothing.
        fails_in_node: Whether it was a node that raised, and no hook.
        unseen: What the profiler said of it when it was counted: why it cannot see its
            nodes, empty if it can; None if it was not counted.
        is_begun: Whether its begin has been told of.
        is_told: Whether its end has been told of, if its nodes were not seen.
        doubt: What went wrong with watching it, empty if nothing.
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
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.graph: SeenGraph | None = None
        self.needed: set[SeenNode] | None = None
        self.captures: dict[SeenNode, list[int]] = {}
        self.accumulates = False
        self.called_ns = self.returned_ns = 0
        self.error = ""
        self.fails_in_node = False
        self.unseen: str | None = None
        self.is_begun = self.is_told = False
        self.doubt = ""

    def take(self, graph: SeenGraph, *, accumulates: bool) -> None:
        """Note what it may run, and find out what it has to."""
        self.graph = graph
        self.accumulates = accumulates
        self.needed = nodes_needed(graph, accumulate=accumulates)
        if not accumulates:
            for index, output in enumerate(graph.outputs):
                if output.node is not None:
                    self.captures.setdefault(output.node, []).append(index)
        for node in graph.nodes:
            node.waiting = node.num_edges

    def unheard(self) -> "WatchedPass":
        """The same without a graph and with nobody who listens.

        It stands for what the profiler may have seen of a pass that it was not to see.
        """
        one = WatchedPass(self.task, None, Probe(), self.thread, self.thread_name)
        one.called_ns, one.returned_ns = self.called_ns, self.returned_ns
        return one
