import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.analysis.graphs.simplification import contract_chains, limit_nodes
from gradviz.render.graph.graph_scene import build_scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.layout.placed_graph import place

SVG = "{http://www.w3.org/2000/svg}"


def drawn(graph, color_by="device"):
    scene = build_scene(graph, color_by)
    return ET.fromstring(svg(scene, place(scene.sizes, scene.edges, scene.aside)))


def texts(picture):
    return ["".join(one.itertext()) for one in picture.iter(f"{SVG}text")]


def tooltips(picture):
    return [one.findtext(f"{SVG}title") for one in picture.iter(f"{SVG}g")]


def structure(picture):
    """Elements and the names of their attributes: what data must not change."""
    return [(one.tag, sorted(one.attrib)) for one in picture.iter()]


def test_every_node_is_drawn_with_its_name_and_order(step):
    shown = texts(drawn(step))

    assert shown.count("MulBackward0") == 6
    assert [text for text in shown if text.startswith("AccumulateGrad")] == [
        f"AccumulateGrad (32, 10) · {order}" for order in (6, 7, 8)
    ]
    assert [text for text in shown if text.isdecimal()] == [str(i) for i in range(6)]


def test_every_edge_is_drawn_with_an_arrow(step):
    edges = drawn(step).find(f".//{SVG}g[@class='edges']")

    assert len(edges) == 5  # a leaf stands in the box that leads to it
    assert ".edges path { marker-end: url(#arrow) }" in drawn(step).findtext(
        f"{SVG}style"
    )


def test_pointing_at_a_node_tells_all_that_is_known(step):
    (tooltip,) = (one for one in tooltips(drawn(step)) if one and "id 102" in one)

    assert tooltip.splitlines() == [
        "#2 MulBackward0 (id 102)",
        "device cpu",
        "sequence_nr 48, topological_nr 3",
        "input 0: (32, 10) float64 on cpu",
        "created at /home/u/main.py:7",
        "ran as number 2 on thread 0",
        "started 2 µs after the first node",
        "took 300 ns",
        "queued for 20 ns",
    ]


def test_the_legend_names_the_devices_and_nothing_that_is_not_there(step):
    shown = texts(drawn(step))

    assert "cpu" in shown
    assert "failed" not in shown
    assert "did not run" not in shown


def test_failed_nodes_and_nodes_that_did_not_run_are_marked_and_in_the_legend(
    step, make_node
):
    failed = make_node(0, status="failed", error="ValueError: no")
    idle = make_node(
        1, status=None, order=None, thread=None, start_ns=None, end_ns=None
    )
    graph = msgspec.structs.replace(step, nodes=(failed, idle, *step.nodes[2:]))

    picture = drawn(graph)

    rules = picture.findtext(f"{SVG}style")
    assert {"failed", "did not run", "ValueError: no"} <= set(texts(picture))
    assert "stroke-width:2.5" in rules
    assert "stroke-dasharray:4 3" in rules
    assert "0" in texts(picture)
    assert "1" not in texts(picture)


def test_colors_by_time_have_a_scale_with_its_ends(step):
    shown = texts(drawn(step, "time"))

    assert shown[2:4] == ["time: 100 ns", "900 ns"]


def test_the_longest_node_is_darkest_when_colors_stand_for_time(step):
    boxes = build_scene(step, "time").boxes
    (longest,) = boxes[-1].chips

    assert boxes[0].color != boxes[-1].color != longest.color
    assert longest.color == "#7a1f4f"


def test_omitted_nodes_and_edges_are_reported_with_their_place(step, make_node):
    nodes = (make_node(0, omitted_edges=2), *step.nodes[1:])
    graph = msgspec.structs.replace(
        step, nodes=nodes, omitted=1_234, omitted_edges=5_678
    )

    picture = drawn(graph)

    told, where = (text for text in texts(picture) if "left out" in text)
    assert "1,234 more left out · 5,678 edges left out" in told
    assert where == "(32, 10) · main.py:7 · 2 edges left out"
    (pointed,) = (one for one in tooltips(picture) if one and "left out" in one)
    assert pointed.startswith("#0 MulBackward0 (id 100), 2 edges left out\n")


def test_an_overview_tells_what_is_left_out_when_one_points_there(make_graph):
    graph = make_graph(3_003, [(0, 1), (0, 3_001), (1, 3_002)])

    picture = drawn(limit_nodes(graph, 3_001))

    pointed = [one for one in tooltips(picture) if one and "left out" in one]
    assert pointed == [
        "#0 MulBackward0 (id 100), 1 edge left out",
        "#1 MulBackward0 (id 101), 1 edge left out",
    ]


def test_a_box_of_several_nodes_says_how_many_and_which(make_graph):
    graph = make_graph(20, [(index, index + 1) for index in range(19)])

    picture = drawn(contract_chains(graph))

    assert "20 nodes in 1 box" in texts(picture)[1]
    assert texts(picture)[-2:] == [
        "MulBackward0 → … → MulBackward0",
        "20 nodes · 21 µs",
    ]
    (tooltip,) = (one for one in tooltips(picture) if one and "device" in one)
    assert tooltip.splitlines()[0] == "MulBackward0 → … → MulBackward0, 20 nodes"
    assert tooltip.splitlines()[-17:] == [
        *(f"#{index} MulBackward0 (id {100 + index})" for index in range(16)),
        "and 4 more nodes",
    ]


def test_everything_is_inside_the_picture(step):
    picture = drawn(step)
    wide, high = (float(picture.get(name)) for name in ("width", "height"))
    ((left, top),) = re.findall(
        r"translate\((\S+) (\S+)\)", picture.findall(f"{SVG}g")[-1].get("transform")
    )

    for group in picture.findall(f"{SVG}g")[-1].iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if rect is not None:
            x, y = re.findall(r"[\d.]+", group.get("transform"))
            assert float(left) + float(x) + float(rect.get("width")) <= wide
            assert float(top) + float(y) + float(rect.get("height")) <= high


def test_a_graph_without_nodes_is_a_picture_too(make_graph):
    assert "Backward pass 4" in texts(drawn(make_graph(0, [])))


@pytest.mark.parametrize(
    ("program", "title"),
    [
        ("/home/u/train.py", "Backward pass 4 of train.py"),
        ("-c", "Backward pass 4"),
        ("/usr/lib/ipykernel_launcher.py", "Backward pass 4"),
        ("t" * 60, f"Backward pass 4 of …{'t' * 43}"),
    ],
)
def test_the_title_names_the_program(make_graph, program, title):
    assert title in texts(drawn(make_graph(2, [(0, 1)], program=program)))


def test_the_title_says_that_a_pass_failed(make_graph):
    graph = make_graph(2, [(0, 1)], program="train.py", is_failed=True)

    assert "Backward pass 4 of train.py failed" in texts(drawn(graph))


def test_hostile_names_change_nothing_but_text(hostile_graph, make_graph):
    benign = msgspec.structs.replace(
        hostile_graph,
        nodes=tuple(
            msgspec.structs.replace(
                node, name="x", device="x", location="x" * bool(node.location)
            )
            for node in hostile_graph.nodes
        ),
    )

    # The devices must be as many, or the legend differs.
    devices = {node.device for node in hostile_graph.nodes}
    nodes = (*benign.nodes[:2], msgspec.structs.replace(benign.nodes[2], device="cpu"))
    benign = msgspec.structs.replace(benign, nodes=nodes)

    assert len(devices) == 2
    assert structure(drawn(hostile_graph)) == structure(drawn(benign))


@pytest.mark.parametrize("color_by", ["device", "time"])
def test_an_overview_of_many_nodes_has_names_numbers_and_straight_edges(
    make_graph, color_by
):
    many = 3_001
    graph = make_graph(many, [(index, index + 1) for index in range(many - 1)])

    picture = drawn(graph, color_by)

    assert "3000 MulBackward0" in texts(picture)
    edges = picture.find(f".//{SVG}g[@class='edges']")
    assert not any("C" in edge.get("d") for edge in edges)


def test_a_large_picture_stays_small(make_graph):
    many = 5_000
    graph = make_graph(many, [(index, index + 1) for index in range(many - 1)])
    scene = build_scene(graph)

    assert len(svg(scene, place(scene.sizes, scene.edges, scene.aside))) < 320 * many


def test_a_leaf_says_which_parameter_it_is_of(make_graph, make_node):
    leaf = make_node(0, name="AccumulateGrad", parameters=("Net.a.weight", "Net.b.w"))
    graph = make_graph(1, [], nodes=(leaf,))

    (box,) = build_scene(graph).boxes

    assert box.subtitle == "Net.a.weight · …"
    assert "adds up the gradient of Net.a.weight = Net.b.w" in box.tooltip


def test_colors_by_time_stand_for_what_is_usual(make_graph, make_node):
    unlucky = make_node(
        0,
        end_ns=49_000_000,
        thread_time_ns=200_000,
        processor_wait_ns=48_000_000,
        num_alike=20,
        usual_ns=200_000,
    )
    alike = make_node(1, end_ns=201_000, num_alike=20, usual_ns=200_000)
    slow = make_node(2, end_ns=5_002_000, num_alike=20, usual_ns=5_000_000)
    graph = make_graph(3, [], nodes=(unlucky, alike, slow))

    boxes = build_scene(graph, "time").boxes

    assert boxes[0].color == boxes[1].color != boxes[2].color
    assert "usually 200 µs" in boxes[0].subtitle
    for line in (
        "its thread was running for 200 µs",
        "waited for a processor: 48 ms",
        "usually 200 µs, median of 20 passes of this shape",
    ):
        assert line in boxes[0].tooltip


def test_a_node_seen_once_has_the_color_of_its_own_time(make_graph, make_node):
    once = [make_node(n, end_ns=10 ** (n + 4), num_alike=1, usual_ns=7) for n in (0, 1)]

    boxes = build_scene(make_graph(2, [], nodes=tuple(once)), "time").boxes

    assert boxes[0].color != boxes[1].color


def test_the_critical_path_is_bold_and_other_boxes_say_their_slack(step):
    nodes = tuple(
        msgspec.structs.replace(node, is_critical=index < 3, slack_ns=2_000)
        for index, node in enumerate(step.nodes)
    )
    graph = msgspec.structs.replace(step, nodes=nodes)

    picture = drawn(graph)

    bold = [one for one in picture.iter(f"{SVG}path") if one.get("class") == "bold"]
    assert len(bold) == 2
    assert "critical path" in texts(picture)
    assert sum("slack 2 µs" in text for text in texts(picture)) == 3


def test_of_an_error_the_first_line_stands_under_the_node(make_graph, make_node):
    failed = make_node(0, status="failed", error="ValueError: no\nsecond line")

    picture = drawn(make_graph(1, [], nodes=(failed,)))

    assert "ValueError: no" in texts(picture)


@pytest.mark.parametrize(
    ("is_finished", "told"), [(True, "not needed"), (False, "did not run")]
)
def test_a_node_that_did_not_run_was_not_needed_if_the_pass_is_finished(
    is_finished, told, make_graph, make_node
):
    nodes = (make_node(0), make_node(1, status=None, order=None))
    graph = make_graph(2, [(0, 1)], nodes=nodes, is_finished=is_finished)

    assert told in texts(drawn(graph))


def test_a_box_names_the_passes_that_its_node_called(make_graph, make_node):
    picture = drawn(make_graph(1, [], nodes=(make_node(0, calls=(5, 6)),)))

    assert texts(picture)[-1].endswith("called passes 5, 6")
