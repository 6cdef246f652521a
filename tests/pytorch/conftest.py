"""Passes as PyTorch's engine runs them, without PyTorch."""

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest

from gradviz.pytorch.nodes.data_parallel import BucketPlan, ProcessGroup
from gradviz.pytorch.nodes.needs import graph_towards, number_topologically
from gradviz.pytorch.nodes.seen_node import SeenEdge, SeenInput, SeenNode
from gradviz.pytorch.reconstruction.pass_events import Inference
from gradviz.pytorch.reconstruction.seen_collectives import (
    SeenCollective,
    tell_collectives,
)
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass
from gradviz.pytorch.reconstruction.session import SeenRun
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.pytorch.watching.pass_reports import tell_seen
from gradviz.trace.events import (
    MAX_SEQUENCE_NR,
    AnyEvent,
    DependenciesCounted,
    TaskBegun,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.probe import Probe
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from gradviz.trace.reporting.ids import next_node_id, next_task_id


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


class Asked(NamedTuple):
    """A root, and what a pass from there is asked for."""

    root: SeenNode
    outputs: tuple[SeenNode, ...]


def graph(root: SeenNode, *outputs: SeenNode) -> Asked:
    nodes = [root]
    for one in nodes:  # grows while it is walked
        for edge in one.next_edges:
            if edge.node is not None and edge.node not in nodes:
                nodes.append(edge.node)
    number_topologically(nodes, in_order=False)
    return Asked(root, outputs)


class Seen(NamedTuple):
    """Observed runs of nodes, with their times."""

    node: SeenNode
    begin: int
    end: int
    thread: int = 0
    made_by: int = 0


class Told:
    """Passes that have ended, and the trace of what is told of them."""

    def __init__(self) -> None:
        self.engine = Inference()
        self._sink = MemorySink()
        self.recorder = Recorder(self._sink, flush_every_s=None)
        self._passes: list[WatchedPass] = []

    def begin(
        self,
        of: Asked,
        called: int,
        returned: int,
        *,
        parent: WatchedPass | None = None,
        inside: SeenNode | None = None,
        error: str = "",
        accumulates: bool = True,
        listener: Probe | None = None,
    ) -> WatchedPass:
        """A pass that ends at `returned`."""
        thread = threading.get_native_id()
        listener = listener or self.recorder
        one = WatchedPass(next_task_id(), parent, listener, thread, "main")
        one.called_ns, one.returned_ns, one.error = called, returned, error
        one.fails_in_node = bool(error) and error != "in a hook"
        one.inside = -1 if inside is None else inside.id
        number = -1 if parent is None else parent.task
        begun = [called - 2, one.task, -1, number, one.depth, -1, 1, 0, 0, 0, ""]
        outputs = [SeenEdge(output, 0) for output in of.outputs]
        read = graph_towards(of.root, outputs, accumulate=accumulates)
        counted = [called - 1, one.task, -1, len(read.nodes), 0]
        listener.rows_reported(
            thread, "", {TaskBegun: begun, DependenciesCounted: counted}
        )
        one.take(read, accumulates=accumulates)
        listener.nodes_defined(read.nodes)
        self._passes.append(one)
        return one

    def saw(
        self,
        *runs: Seen | tuple[SeenNode, int, int],
        collectives: Sequence[SeenCollective] = (),
        plans: Sequence[BucketPlan] = (),
    ) -> list[ReplayedPass]:
        """All passes that were begun have ended, and these functions ran."""
        seen = [self._run(Seen(*one)) for one in runs]
        replays = self.engine.go_through(self._passes, sorted(seen), 0)
        everybody = ProcessGroup("", 0, 2)
        tell_collectives(replays, collectives, 0, plans, everybody)
        tell_seen(replays)
        self._passes = []
        return replays

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
        return (one.begin, one.end, *called, thread, one.made_by)


@pytest.fixture
def pytorch() -> Iterator[Told]:
    made = Told()
    yield made
    made.recorder.close()
