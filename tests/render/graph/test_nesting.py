import functools
import re

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.analysis.graphs.nested_passes import every_graph, nest_passes
from gradviz.render.graph.coloring import coloring
from gradviz.render.graph.dot import digraph
from gradviz.render.graph.graph_picture import render_graph
from gradviz.render.graph.graph_scene import build_scene
from gradviz.utils.checkpoint import checkpoint
from tests.render.svg_geometry import Drawing, DrawnBox, faults, read_drawing

SIZES = (3, 1, 2)


class Model(nn.Module):
    """Segments of so many layers, and in the first of them another one."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(*(nn.Linear(4, 4) for _ in range(size))) for size in SIZES
        )

    def forward(self, x: gv.Tensor) -> gv.Tensor:
        for part in self.parts:
            x = checkpoint(self.twice, part, x, use_reentrant=True)
        return x

    def twice(self, part: nn.Module, x: gv.Tensor) -> gv.Tensor:
        return checkpoint(part, x, use_reentrant=True).tanh()


@functools.cache
def checkpointed(*, are_boxes: bool = False) -> Graph:
    model = Model()
    with gv.record() as recording:
        model(gv.ones(2, 4, requires_grad=True)).sum().backward()
    trace = recording.trace
    graph = build_graph(trace, trace.tasks[0])
    return nest_passes(graph, trace, lambda one: one, 1_000, are_boxes=are_boxes)


def drawings(drawing: Drawing) -> list[Drawing]:
    inner = [one for box in drawing.boxes for one in box.passes]
    return [drawing, *(deeper for one in inner for deeper in drawings(one))]


def boxes(drawing: Drawing) -> list[DrawnBox]:
    return [box for one in drawings(drawing) for box in one.boxes]


def test_passes_lie_inside_of_their_callers_and_nothing_overlaps():
    graph = checkpointed()

    for engine in ("own", "auto"):
        drawing = read_drawing(render_graph(graph, engine=engine).data)

        assert faults(drawing) == []
        assert len(drawings(drawing)) == len(every_graph(graph)) == 7


def test_all_nodes_of_all_passes_are_drawn_with_the_numbers_of_their_pass():
    graph = checkpointed()
    drawing = read_drawing(render_graph(graph, engine="own").data)

    numbers = [
        text
        for box in boxes(drawing)
        for one in (box, *box.chips)
        for text, _ in one.texts
    ]
    badges = sorted(int(text.split(" · ")[-1]) for text in numbers if is_number(text))
    ran = (node.order for one in every_graph(graph) for node in one.nodes)
    assert badges == sorted(order for order in ran if order is not None)


def is_number(text: str) -> bool:
    return text.rsplit(" · ", maxsplit=1)[-1].isdecimal()


def test_a_pass_begins_with_a_box_that_leads_to_its_roots():
    scene = build_scene(checkpointed())

    (called,) = next(box.passes for box in scene.boxes if box.passes)
    assert re.fullmatch(r"pass \d+", called.boxes[0].title)
    consumers = {consumer for _, consumer in called.edges}
    assert consumers == {*range(1, len(called.boxes))}


def test_a_pass_as_one_box_has_no_other():
    scene = build_scene(checkpointed(are_boxes=True))

    for box in scene.boxes:
        for called in box.passes:
            (whole,) = called.boxes
            assert re.fullmatch(r"pass \d+", whole.title)
            assert "nodes" in whole.subtitle


def test_one_scale_of_colors_holds_for_all_passes():
    graph = checkpointed()
    every = every_graph(graph)

    found = [coloring(one, "order", every) for one in every]

    assert len({one.scale for one in found}) == 1
    pairs = {
        (node.order, colors.colors[node.id])
        for one, colors in zip(every, found, strict=True)
        for node in one.nodes
        if node.order is not None
    }
    assert len(pairs) == len({order for order, _ in pairs}) > 4


def test_in_dot_a_caller_leads_to_a_cluster_for_each_pass():
    graph = checkpointed()

    source = digraph(build_scene(graph)).source

    assert len(re.findall(r"subgraph cluster_n\w+ {", source)) == 6
    calls = re.findall(r"(n[\d_]+) -> \1_0_0\b", source)
    assert len(calls) == 6


def test_the_head_counts_the_passes_inside():
    graph = checkpointed()

    inside = sum(one.num_nodes for one in every_graph(graph)[1:])

    assert f"6 passes inside, {inside} nodes" in build_scene(graph).subtitle
