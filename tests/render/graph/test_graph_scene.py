import pytest

from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.simplification import as_one
from gradviz.render.graph.graph_scene import MAX_PARALLEL, build_scene


def test_a_box_says_how_many_of_its_nodes_did_not_run_or_were_captured(make_node):
    statuses = ["completed", "captured", None, None]
    nodes = [
        make_node(at, status=one, order=None if one is None else at)
        for at, one in enumerate(statuses)
    ]

    def told(some):
        box = as_one(some, name="N.part", module="N.part")
        graph = Graph(task=0, nodes=(box,), edges=())
        return build_scene(graph).boxes[0].subtitle

    assert "2 did not run · 1 captured" in told(nodes)
    assert "did not run" not in told(nodes[2:])
    failed = make_node(4, status="failed", error="ValueError: no\nmore")
    assert told([failed, *nodes[2:]]) == "ValueError: no · 2 did not run"


@pytest.mark.parametrize(
    ("parallel", "drawn"),
    [(1, 1), (MAX_PARALLEL, MAX_PARALLEL), (MAX_PARALLEL + 1, 1), (48, 1)],
)
def test_many_edges_between_two_boxes_are_drawn_as_one(make_graph, parallel, drawn):
    scene = build_scene(make_graph(3, [(0, 1)] * parallel + [(1, 2)]))

    assert scene.edges == ((0, 1),) * drawn + ((1, 2),)
    assert f"{parallel + 1} edges" in scene.subtitle


def test_a_transposed_weight_stands_aside_and_nothing_that_others_lead_to(
    make_graph, make_node
):
    names = ["AddmmBackward0", "TBackward0", "ReluBackward0", "TBackward0"]
    nodes = [make_node(index, name=name) for index, name in enumerate(names)]
    leaves = [make_node(index, name="AccumulateGrad") for index in (4, 5)]
    own = [(0, 1), (1, 4), (0, 2)]
    shared = [(0, 3), (2, 3), (3, 5)]
    graph = make_graph(6, own + shared, nodes=(*nodes, *leaves))

    assert build_scene(graph).aside == [1]


def test_a_view_of_something_computed_does_not_stand_aside(make_graph, make_node):
    names = ["AddmmBackward0", "TBackward0", "MulBackward0", "ReluBackward0"]
    nodes = tuple(make_node(index, name=name) for index, name in enumerate(names))

    assert build_scene(make_graph(4, [(0, 1), (1, 2), (0, 3)], nodes=nodes)).aside == []
