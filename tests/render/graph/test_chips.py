import msgspec
import pytest

from gradviz.analysis.graphs.simplification import contract_chains, split_shared_leaves
from gradviz.render.graph.graph_scene import build_scene


@pytest.fixture
def shared(make_graph, make_node):
    """A chain of six whose ends lead to the same leaf."""
    nodes = [make_node(index) for index in range(6)]
    leaf = make_node(6, name="AccumulateGrad", parameters=("net.0.weight",))
    chain = [(index, index + 1) for index in range(5)]
    return make_graph(7, [*chain, (0, 6), (5, 6)], nodes=(*nodes, leaf))


def chips(graph, color_by="device"):
    return [
        [chip.text for chip in box.chips] for box in build_scene(graph, color_by).boxes
    ]


def test_a_leaf_is_no_box_but_a_chip_in_the_box_that_leads_to_it(step):
    scene = build_scene(step)

    assert [len(box.chips) for box in scene.boxes] == [0, 1, 0, 1, 0, 1]
    assert scene.edges == ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5))
    assert scene.boxes[1].chips[0].tooltip.startswith("#6 AccumulateGrad (id 106)\n")
    assert "9 nodes" in scene.subtitle


@pytest.mark.parametrize("transform", [lambda graph: graph, split_shared_leaves])
def test_a_shared_leaf_is_in_each_box_that_leads_to_it_and_says_how_many(
    shared, transform
):
    text = "net.0.weight (32, 10) · 6 · \N{MULTIPLICATION SIGN}2"

    assert chips(transform(shared)) == [[text], [], [], [], [], [text]]


def test_a_leaf_used_twice_by_one_node_is_one_chip(shared, make_graph):
    graph = make_graph(7, [(0, 6), (0, 6)], nodes=shared.nodes)

    assert chips(graph)[0] == ["net.0.weight (32, 10) · 6"]


def test_a_chip_tells_the_time_where_colors_do(shared):
    assert chips(shared, "time")[0] == [
        "net.0.weight 700 ns · 6 · \N{MULTIPLICATION SIGN}2"
    ]


@pytest.mark.parametrize(
    ("module", "parameters", "name"),
    [
        ("net.0", (), "AccumulateGrad"),
        ("net.0", ("w",), "w"),
        ("net.0", ("net.0.weight",), "weight"),
        ("net", ("net.weights.3",), "weights.3"),
        ("net.head", ("net.body.weight",), "body.weight"),
        ("net.head", ("0.weight",), "0.weight"),
        ("", ("net.0.weight",), "net.0.weight"),
        ("net.a", ("net.a.weight", "net.b.weight"), "weight = …"),
        ("weight", ("weight",), "weight"),
        ("", ("",), ""),
        ("", ("x" * 50 + ".weight",), "x" * 50 + ".weight"),
        ("", ("y" + "x" * 88 + ".weight",), "…" + "x" * 80 + ".weight"),
    ],
)
def test_a_chip_names_its_parameter_without_the_modules_around_it(
    make_graph, make_node, module, parameters, name
):
    leaf = make_node(1, name="AccumulateGrad", parameters=parameters)
    graph = make_graph(2, [(0, 1)], nodes=(make_node(0, module=module), leaf))

    assert chips(graph) == [[f"{name} (32, 10) · 1".strip()]]


def test_a_leaf_that_nothing_leads_to_is_a_box(make_graph, make_node):
    graph = make_graph(1, [], nodes=(make_node(0, name="AccumulateGrad"),))

    (box,) = build_scene(graph).boxes

    assert (box.title, box.is_leaf) == ("AccumulateGrad", True)


def test_a_box_has_room_for_its_chips(shared):
    with_chips, without = build_scene(shared).boxes[:2]

    assert with_chips.height > without.height + 16


def test_of_very_many_leaves_the_last_chip_counts_those_that_have_no_room(
    make_graph, make_node
):
    leaves = [make_node(place, name="AccumulateGrad") for place in range(1, 11)]
    graph = make_graph(
        11, [(0, place) for place in range(1, 11)], nodes=(make_node(0), *leaves)
    )

    (box,) = build_scene(graph).boxes

    assert len(box.chips) == 6
    assert box.chips[-1].text == "and 5 more"
    assert box.chips[-1].tooltip.splitlines() == [
        f"AccumulateGrad (32, 10) · {place}" for place in range(6, 11)
    ]


@pytest.mark.parametrize(
    ("status", "outline"),
    [
        ("completed", "plain"),
        ("captured", "dotted"),
        ("failed", "alarm"),
        ("unfinished", "alarm"),
        (None, "dashed"),
    ],
)
def test_the_outline_of_a_chip_shows_the_status_of_its_leaf(shared, status, outline):
    leaf = msgspec.structs.replace(shared.nodes[6], status=status)
    graph = msgspec.structs.replace(shared, nodes=(*shared.nodes[:6], leaf))

    assert build_scene(graph).boxes[0].chips[0].outline == outline


def test_chips_are_no_boxes_where_boxes_are_counted(shared):
    assert build_scene(split_shared_leaves(shared)).subtitle.startswith("7 nodes ·")

    contracted = build_scene(contract_chains(shared))

    assert contracted.subtitle.startswith(f"7 nodes in {len(contracted.boxes)} box")


def test_a_leaf_that_failed_is_a_box_with_the_first_line_of_its_error(
    make_graph, make_node
):
    leaf = make_node(1, name="AccumulateGrad", status="failed", error="no\nmore")
    scene = build_scene(make_graph(2, [(0, 1)], nodes=(make_node(0), leaf)))

    assert [len(box.chips) for box in scene.boxes] == [0, 0]
    assert "no" in scene.boxes[1].subtitle
    assert scene.boxes[1].outline == "alarm"


def test_a_leaf_that_failed_names_its_parameter(make_graph, make_node):
    leaf = make_node(
        1,
        name="AccumulateGrad",
        status="failed",
        error="no",
        parameters=("net.0.weight",),
    )

    scene = build_scene(make_graph(2, [(0, 1)], nodes=(make_node(0), leaf)))

    assert scene.boxes[1].title == "AccumulateGrad of net.0.weight"
