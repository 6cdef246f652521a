"""Passes as PyTorch's engine runs them, without PyTorch."""

import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gradviz.ids import next_node_id, next_task_id
from gradviz.pytorch.inference import Inference
from gradviz.pytorch.reports import tell_seen
from gradviz.pytorch.seen_node import SeenEdge, SeenGraph, SeenInput, SeenNode
from gradviz.pytorch.session import SeenRun
from gradviz.pytorch.watched_pass import WatchedPass
from gradviz.trace.events import (
    MAX_SEQUENCE_NR,
    AnyEvent,
    DependenciesCounted,
    TaskBegun,
)
from gradviz.trace.model import Trace
from gradviz.trace.probe import Probe
from gradviz.trace.reader import parse_trace
from gradviz.trace.recorder import Recorder
from gradviz.trace.sink import MemorySink


def node(
    name: str,
    sequence_nr: int,
    *edges: SeenNode,
    device: str = "cpu",
) -> SeenNode:
    """A node that hands a gradient of 8 bytes to each of some others."""
    seen_nr = -1 if sequence_nr == MAX_SEQUENCE_NR else sequence_nr
    made = SeenNode(next_node_id(), name, sequence_nr, name, seen_nr)
    made.next_edges = tuple(SeenEdge(one, 0) for one in edges)
    made.input_metadata = (SeenInput((2,), "float32", device, 8),)
    made.runs_on = device
    return made


def leaf() -> SeenNode:
    return node("AccumulateGrad", MAX_SEQUENCE_NR)


def graph(root: SeenNode, *outputs: SeenNode) -> SeenGraph:
    nodes = [root]
    for one in nodes:  # grows while it is walked
        for edge in one.next_edges:
            assert edge.node is not None
            edge.node.num_edges += 1
            if edge.node not in nodes:
                nodes.append(edge.node)
    return SeenGraph(root, nodes, [SeenEdge(one, 0) for one in outputs], {})


class Seen(NamedTuple):
    """What was seen to run: of which node, and when."""

    node: SeenNode
    begin: int
    end: int
    thread: int = 0


class Told:
    """Passes that have ended, and the trace of what is told of them."""

    def __init__(self) -> None:
        self.engine = Inference()
        self._sink = MemorySink()
        self.recorder = Recorder(self._sink, flush_every_s=None)
        self._passes: list[WatchedPass] = []

    def begin(
        self,
        of: SeenGraph,
        called: int,
        returned: int,
        *,
        parent: WatchedPass | None = None,
        error: str = "",
        accumulates: bool = True,
        listener: Probe | None = None,
    ) -> WatchedPass:
        """A pass that ends at `returned`."""
        thread = threading.get_native_id()
        listener = listener or self.recorder
        one = WatchedPass(next_task_id(), parent, listener, thread, "main")
        one.called_ns, one.returned_ns, one.error = called, returned, error
        one.fails_in_node = bool(error)
        number = -1 if parent is None else parent.task
        begun = [called - 2, one.task, -1, number, one.depth, -1, 1, 0, 0, 0, ""]
        counted = [called - 1, one.task, -1, len(of.nodes), 0]
        listener.told(thread, "", {TaskBegun: begun, DependenciesCounted: counted})
        one.take(of, accumulates=accumulates)
        listener.nodes_defined(of.nodes)
        self._passes.append(one)
        return one

    def saw(self, *runs: Seen | tuple[SeenNode, int, int]) -> None:
        """All passes that were begun have ended, and these functions ran."""
        seen = [self._run(Seen(*one)) for one in runs]
        tell_seen(self.engine.go_through(self._passes, sorted(seen), 0))
        self._passes = []

    def trace(self) -> Trace:
        self.recorder.close()
        return parse_trace(self._sink.contents())

    def events(self, *kinds: type[AnyEvent]) -> list[AnyEvent]:
        return [
            one for one in self.trace().events() if isinstance(one, kinds or object)
        ]

    def _run(self, one: Seen) -> SeenRun:
        thread = one.thread or threading.get_native_id()
        called = one.node.raw_name, one.node.seen_nr
        return (one.begin, one.end, *called, thread)


@pytest.fixture
def pytorch() -> Iterator[Told]:
    made = Told()
    yield made
    made.recorder.close()
