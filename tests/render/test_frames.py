import re
import xml.etree.ElementTree as ET

import msgspec
import pytest

from gradviz.render.dot import digraph, skeleton
from gradviz.render.frames import PADDING, place_frames
from gradviz.render.layout import BoxLayout
from gradviz.render.scene import build_scene
from gradviz.render.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def model(make_graph, make_node):
    """Two stretches of two nodes in a column, and a node between them."""
    modules = ("head", "head", "", "body.0", "body.0", "")
    nodes = tuple(
        make_node(place, id=100 - place, module=module)
        for place, module in enumerate(modules)
    )
    return make_graph(6, [(i, i + 1) for i in range(5)], nodes=nodes)


def layout(scene, *places):
    """Boxes at the given rows and columns."""
    centres = tuple((300.0 * column, 100.0 * row) for row, column in places)
    routes = tuple(
        (centres[a], centres[a], centres[b], centres[b]) for a, b in scene.edges
    )
    return BoxLayout(centres, routes, 900.0, 700.0)


COLUMN = [(row, 0) for row in range(6)]


def test_a_frame_lies_around_its_boxes(model):
    scene = build_scene(model)

    ((frame, place), _) = place_frames(scene, layout(scene, *COLUMN))

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
    assert [one.text for one in drawing.findall(f"{SVG}text")] == ["head", "body.0"]


def test_dot_keeps_the_nodes_of_a_part_together(model):
    scene = build_scene(model)

    source = digraph(scene).source

    clusters = re.findall(r"subgraph cluster_\d {(.*?)}", source, re.DOTALL)
    members = [re.findall(r"\bn\d\b", cluster) for cluster in clusters]
    assert members == [["n0", "n1"], ["n3", "n4", "n5"]]  # the leaf is its own
    assert 'label="body.0\\l"' in source


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
        make_node(place, id=100 - place, module="cell", repeats=20)
        for place in range(2)
    )

    (frame,) = build_scene(make_graph(2, [(0, 1)], nodes=nodes)).frames

    assert frame.label == "cell \N{MULTIPLICATION SIGN}20"
