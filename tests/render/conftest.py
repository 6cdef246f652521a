"""Graphs and timelines as plain values: no trace, no engine."""

from collections.abc import Callable, Iterable

import pytest

from gradviz.analysis.graphs.backward_graph import Graph, GraphEdge, GraphNode
from gradviz.analysis.tables.passes import Pass
from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render.graph import graph_picture as graph_pictures
from gradviz.render.graph.graph_scene import Scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.trace.format.model import InputDefinition
from tests.hostile.texts import HOSTILE
from tests.render.svg_geometry import faults, misses, read_drawing


def node(index: int, **changes: object) -> GraphNode:
    fields = {
        "id": 100 + index,
        "name": "MulBackward0",
        "device": "cpu",
        "sequence_nr": 50 - index,
        "topological_nr": 3,
        "inputs": (InputDefinition((32, 10), "float64", "cpu"),),
        "location": "/home/u/main.py:7",
        "order": index,
        "thread": 0,
        "start_ns": 1_000 * index,
        "end_ns": 1_000 * index + 100 * (index + 1),
        "waited_ns": 20,
        "status": "completed",
    }
    return GraphNode(**(fields | changes))


@pytest.fixture(autouse=True)
def _pictures_of_graphs_are_sound(monkeypatch):
    """Nothing is wrong with any picture of a graph that a test draws."""

    def checked(scene: Scene, layout: BoxLayout, scale: float = 1.0) -> bytes:
        drawn = svg(scene, layout, scale)
        drawing = read_drawing(drawn)
        assert faults(drawing) == []
        assert misses(drawing, scene) == []
        return drawn

    monkeypatch.setattr(graph_pictures, "svg", checked)


@pytest.fixture
def make_node() -> Callable[..., GraphNode]:
    return node


@pytest.fixture
def make_graph() -> Callable[..., Graph]:
    def make(
        num_nodes: int, pairs: Iterable[tuple[int, int]], **changes: object
    ) -> Graph:
        nodes = tuple(node(index) for index in range(num_nodes))
        edges = tuple(GraphEdge(one, other, 0) for one, other in pairs)
        fields = {"task": 4, "nodes": nodes, "edges": edges}
        return Graph(**(fields | changes))

    return make


@pytest.fixture
def step(make_graph) -> Graph:
    """One training step: a chain with a leaf at every second node."""
    chain = [(index, index + 1) for index in range(5)]
    nodes = tuple(
        node(index, name="AccumulateGrad" if index > 5 else "MulBackward0")
        for index in range(9)
    )
    return make_graph(9, [*chain, (1, 6), (3, 7), (5, 8)], nodes=nodes)


@pytest.fixture(params=HOSTILE)
def hostile(request) -> str:
    return request.param


@pytest.fixture
def hostile_graph(hostile, make_graph) -> Graph:
    """Two nodes whose every text is hostile, and one that is not."""
    bad = node(0, name=hostile, device=hostile, location=hostile)
    inputs = (InputDefinition((2,), hostile, hostile),)
    worse = node(1, name=hostile, device=hostile, location=hostile, inputs=inputs)
    return make_graph(3, [(0, 1), (1, 2)], nodes=(bad, worse, node(2)))


def span(index: int, start_ns: int, end_ns: int, **changes: object) -> Span:
    fields = {
        "kind": "node",
        "task": 4,
        "node": 100 + index,
        "index": index,
        "name": "MulBackward0",
        "device": "cpu",
        "row": 0,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "waited_ns": 5,
        "status": "completed",
    }
    return Span(**(fields | changes))


@pytest.fixture
def make_span() -> Callable[..., Span]:
    return span


@pytest.fixture
def make_timeline() -> Callable[..., Timeline]:
    """A timeline of one lane for each list of spans; one of kernels is a stream."""

    def make(*lanes: Iterable[Span], duration_ns: int, names=("Main",)) -> Timeline:
        made = []
        for number, spans in enumerate(map(tuple, lanes)):
            nodes = [one for one in spans if one.kind == "node"]
            kernels = [one for one in spans if one.kind == "kernel"]
            busy = [*nodes, *kernels]
            made.append(
                Lane(
                    thread=-1 if kernels else number,
                    name=names[number % len(names)],
                    num_rows=1 + max(one.row for one in spans),
                    num_runs=len(nodes),
                    busy_ns=sum(one.end_ns - one.start_ns for one in busy),
                    spans=spans,
                    num_kernels=len(kernels),
                )
            )
        one_pass = Pass(
            task=4,
            parent=-1,
            depth=0,
            thread=0,
            begin_ns=0,
            end_ns=duration_ns,
            status="completed",
            error="",
            location="",
        )
        return Timeline(
            tasks=(4,),
            origin_ns=0,
            duration_ns=duration_ns,
            passes=(one_pass,),
            lanes=tuple(made),
        )

    return make
