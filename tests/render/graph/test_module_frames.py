import itertools
import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.render.graph.chips import TIMES
from gradviz.render.graph.dot import digraph, skeleton
from gradviz.render.graph.graph_scene import build_scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.graph.module_frames import (
    CLEARANCE,
    LABEL_HEIGHT,
    PADDING,
    place_frames,
    place_labels,
    with_room,
)
from gradviz.render.layout.placed_graph import BoxLayout, place
from gradviz.render.style import SMALL_SIZE
from gradviz.render.words.text import width
from tests.render.svg_geometry import faults, read_drawing

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def model(make_graph, make_node):
    """Two stretches of two nodes in a column, and a node between them."""
    modules = ("head", "head", "", "body.0", "body.0", "")
    nodes = tuple(
        make_node(index, id=100 - index, module=module)
        for index, module in enumerate(modules)
    )
    return make_graph(6, [(i, i + 1) for i in range(5)], nodes=nodes)


def layout(scene, *places):
    """Boxes at the given rows and columns."""
    centers = tuple((300.0 * column, 100.0 * row) for row, column in places)
    routes = tuple(
        (centers[a], centers[a], centers[b], centers[b]) for a, b in scene.edges
    )
    return BoxLayout(centers, routes, 900.0, 700.0)


COLUMN = [(row, 0) for row in range(6)]


def test_a_frame_lies_around_its_boxes(model):
    scene = build_scene(model)

    (_, (frame, place)) = place_frames(scene, layout(scene, *COLUMN))

    box = scene.boxes[0]
    assert frame.label == "head"
    assert place.left == -box.width / 2 - PADDING
    assert place.right == box.width / 2 + PADDING
    assert place.top < -box.height / 2
    assert place.bottom == 100 + box.height / 2 + PADDING


def test_a_frame_that_would_hold_a_strangers_box_is_left_out(model):
    scene = build_scene(model)
    places = [(0, 0), (2, 0), (1, 0), (3, 0), (4, 0), (5, 0)]

    found = place_frames(scene, layout(scene, *places))

    assert [frame.label for frame, _ in found] == ["body.0"]


@pytest.fixture
def nested(make_graph, make_node):
    """A column: a loss, then a block of a norm and a perceptron of two layers."""
    modules = ("", "net.block.mlp.1", "net.block.mlp.1", "net.block.mlp.0")
    modules = (*modules, "net.block.mlp.0", "net.block.norm", "net.block.norm", "")
    nodes = tuple(
        make_node(index, id=100 - index, module=module)
        for index, module in enumerate(modules)
    )
    return make_graph(8, [(i, i + 1) for i in range(7)], nodes=nodes)


def drawn_in_a_column(graph):
    scene = build_scene(graph)
    return scene, with_room(scene, place(scene.sizes, scene.edges, scene.aside))


def test_frames_of_parts_lie_in_those_of_what_they_are_parts_of(nested):
    frames = place_frames(*drawn_in_a_column(nested))

    labels = [frame.label for frame, _ in frames]
    assert labels[:2] == ["net.block", "mlp"]
    assert sorted(labels[2:]) == ["0", "1", "norm"]
    outer = frames[0][1]
    for _, inner in frames[1:]:
        assert outer.left < inner.left < inner.right < outer.right
        assert outer.top < inner.top < inner.bottom < outer.bottom


def test_there_is_room_for_the_labels_of_all_frames_that_begin_at_one_box(nested):
    scene, layout = drawn_in_a_column(nested)

    frames = dict(place_frames(scene, layout))

    drawing = read_drawing(svg(scene, layout))
    assert len(frames) == len(drawing.frames) == 5
    assert faults(drawing) == []
    tops = sorted(place.top for place in frames.values())[:3]
    assert all(b - a >= LABEL_HEIGHT for a, b in itertools.pairwise(tops))
    first = layout.centers[0][1] + scene.boxes[0].height / 2
    assert first < tops[0]


def test_room_for_frames_makes_no_picture_wider(nested):
    scene = build_scene(nested)
    before = place(scene.sizes, scene.edges, scene.aside)

    after = with_room(scene, before)

    assert after.width == before.width
    assert [x for x, _ in after.centers] == [x for x, _ in before.centers]
    assert after.height > before.height


def test_parts_of_a_part_that_repeats_are_called_by_what_their_names_have_more(
    make_graph, make_node
):
    front = "Model.of_a_library.with_a_name.that_is_long.layers.0-3"
    modules = (f"{front}.mlp.up", f"{front}.mlp.up", f"{front}.norm", f"{front}.norm")
    nodes = tuple(
        make_node(index, id=100 - index, module=module, repeats=4)
        for index, module in enumerate(modules)
    )
    graph = make_graph(4, [(i, i + 1) for i in range(3)], nodes=nodes)

    frames = place_frames(*drawn_in_a_column(graph))

    labels = [frame.label for frame, _ in frames]
    assert labels[0].endswith(f"layers.0-3 {TIMES}4")
    assert sorted(labels[1:]) == [f"mlp.up {TIMES}4", f"norm {TIMES}4"]


def test_the_page_holds_frames_that_lie_in_many_others(make_graph, make_node):
    paths = [".".join("abcdefgh"[: 2 + depth]) for depth in range(6)]
    nodes = tuple(
        make_node(index, id=100 - index, module=module, name="W" * 40)
        for index, module in enumerate(("", *paths, paths[-1]))
    )
    graph = make_graph(8, [(i, i + 1) for i in range(7)], nodes=nodes)

    drawing = read_drawing(svg(*drawn_in_a_column(graph)))

    assert len(drawing.frames) > 4
    assert faults(drawing) == []


def test_edges_still_begin_and_end_at_their_boxes_when_frames_got_room(nested):
    scene, layout = drawn_in_a_column(nested)

    for (producer, consumer), route in zip(scene.edges, layout.routes, strict=True):
        bottom = layout.centers[producer][1] + scene.boxes[producer].height / 2
        top = layout.centers[consumer][1] - scene.boxes[consumer].height / 2
        assert (route[0][1], route[-1][1]) == pytest.approx((bottom, top))


def with_edges(layout, place, *xs):
    """A layout in which further edges pass the label of a frame."""
    y = place.top + 5
    passing = tuple(
        ((place.left + x, y), (place.left + x, y), (place.left + x, y + 9)) for x in xs
    )
    ways = tuple((*way, way[-1]) for way in passing)
    return layout._replace(routes=(*layout.routes, *ways))


def test_a_label_stands_right_of_an_edge_that_passes_at_the_left(nested):
    scene, layout = drawn_in_a_column(nested)
    frames = place_frames(scene, layout)
    _, outer = frames[0]

    before = place_labels(frames, layout.routes)
    after = place_labels(frames, with_edges(layout, outer, 20).routes)

    assert before[0] == (outer.left + PADDING, "net.block")
    assert after[0] == (outer.left + 20 + CLEARANCE, "net.block")
    assert after[1:] == before[1:]


def test_a_label_keeps_its_end_where_edges_leave_no_room_for_all_of_it(nested):
    scene, layout = drawn_in_a_column(nested)
    frames = place_frames(scene, layout)
    _, outer = frames[0]
    passed = with_edges(layout, outer, *range(0, 500, 40))

    left, text = place_labels(frames, passed.routes)[0]

    assert text.startswith("…")
    assert text.endswith("ck")
    assert (left - CLEARANCE - outer.left) % 40 == pytest.approx(0)
    assert width(text, SMALL_SIZE) <= 40 - 2 * CLEARANCE


def test_a_picture_without_frames_needs_no_room(step):
    scene = build_scene(step)
    before = place(scene.sizes, scene.edges, scene.aside)

    assert with_room(scene, before) == before


def test_a_graph_of_no_model_has_no_frames(step):
    assert build_scene(step).frames == ()


def test_a_big_picture_has_no_frames(model, make_graph, make_node):
    nodes = tuple(make_node(place, module="a") for place in range(3_001))

    scene = build_scene(make_graph(3_001, [(0, 1)], nodes=nodes))

    assert scene.frames == ()


def test_the_picture_shows_frames_behind_everything_and_labels_above_the_edges(model):
    scene = build_scene(model)

    picture = ET.fromstring(svg(scene, layout(scene, *COLUMN)))

    drawing = picture.find(f"{SVG}g[@transform][2]")
    rect, edges, text = f"{SVG}rect", f"{SVG}g", f"{SVG}text"
    assert [one.tag for one in drawing][:5] == [rect, rect, edges, text, text]
    assert drawing[2].get("class") == "edges"
    assert [one.text for one in drawing.findall(f"{SVG}text")] == ["body.0", "head"]


def test_dot_keeps_the_nodes_of_a_part_together(model):
    scene = build_scene(model)

    source = digraph(scene).source

    clusters = re.findall(r"subgraph cluster_\d {(.*?)}", source, re.DOTALL)
    members = [re.findall(r"\bn\d\b", cluster) for cluster in clusters]
    assert members == [["n0", "n1"], ["n3", "n4", "n5"]]  # the leaf is its own
    assert 'label="body.0\\l"' in source


def test_clusters_of_parts_lie_in_those_of_what_they_are_parts_of(nested):
    source = digraph(build_scene(nested)).source

    open_, depth = [], {}
    for line in map(str.strip, source.splitlines()):
        if line.startswith("subgraph"):
            open_.append(line)
        elif line == "}" and open_:
            open_.pop()
        elif found := re.fullmatch(r'graph .*label="(.*?)\\l".*', line):
            depth[found[1]] = len(open_)
    assert depth["net.block"] == 1
    assert depth["net.block.mlp"] == depth["net.block.norm"] == 2
    assert depth["net.block.mlp.0"] == depth["net.block.mlp.1"] == 3


def test_a_name_of_very_many_parts_does_not_take_long(make_graph, make_node):
    module = "a." * 20_000
    nodes = tuple(make_node(index, module=module) for index in range(3))

    frames = build_scene(make_graph(3, [(0, 1), (1, 2)], nodes=nodes)).frames

    assert len(frames) == 1


def test_frames_do_not_push_the_layout_of_dot_apart(model):
    assert "cluster" not in skeleton(build_scene(model)).source


def test_a_hostile_name_of_a_part_stays_text(model, hostile):
    nodes = tuple(msgspec.structs.replace(one, module=hostile) for one in model.nodes)
    scene = build_scene(msgspec.structs.replace(model, nodes=nodes))

    picture = svg(scene, layout(scene, *COLUMN))

    tags = {one.tag.removeprefix(SVG) for one in ET.fromstring(picture).iter()}
    assert tags.isdisjoint({"script", "image", "img", "a"})
    assert "injected" not in [word.strip('"[];=') for word in picture.decode().split()]


def test_a_frame_says_how_often_what_is_in_it_repeats(make_graph, make_node):
    nodes = tuple(
        make_node(index, id=100 - index, module="cell", repeats=20)
        for index in range(2)
    )

    (frame,) = build_scene(make_graph(2, [(0, 1)], nodes=nodes)).frames

    assert frame.label == "cell \N{MULTIPLICATION SIGN}20"
