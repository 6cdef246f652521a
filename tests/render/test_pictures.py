"""Pictures of ten models: nothing overlaps, and none is much worse than dot's."""

import functools

import pytest

from gradviz.render.graph import graphviz
from gradviz.render.graph.arrangement import Stacked, arranged
from gradviz.render.graph.dot import parse_plain, skeleton
from gradviz.render.graph.graph_scene import Scene, build_scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.graph.module_frames import place_frames, with_room
from gradviz.render.layout.placed_graph import FIRST_SCREEN, BoxLayout, place
from tests.render.layout_quality import quality
from tests.render.models import MODELS, hubs, recurrent, residual, transformer
from tests.render.svg_geometry import begins_in_sight, faults, misses, read_drawing
from tests.sampled import sampled

needs_graphviz = pytest.mark.skipif(
    not graphviz.is_available(), reason="neither dot nor pygraphviz is here"
)


@functools.cache
def scene_of(model: str) -> Scene:
    return build_scene(MODELS[model]())


@functools.cache
def our_layout(model: str) -> BoxLayout:
    scene = scene_of(model)
    return place(scene.sizes, scene.edges, scene.aside)


def place_boxes(scene: Scene, order: Stacked = ()) -> BoxLayout:
    return place(scene.sizes, scene.edges, scene.aside, order)


def dots_layout(model: str) -> BoxLayout:
    """Return dot's layout of the same boxes and edges, without frames."""
    scene = scene_of(model)._replace(frames=())
    plain = graphviz.run(skeleton(scene).source, "plain", 60)
    return parse_plain(plain.decode(), scene)


@pytest.mark.parametrize("model", MODELS)
def test_nothing_overlaps_and_no_edge_runs_through_a_box(model):
    scene = scene_of(model)
    layout = with_room(scene, our_layout(model))

    drawing = read_drawing(svg(scene, layout))

    assert faults(drawing) == []
    assert misses(drawing, scene) == []


@needs_graphviz
@pytest.mark.parametrize("model", sampled(MODELS, 3))
def test_our_own_picture_is_not_much_larger_than_that_of_dot(model):
    theirs = dots_layout(model)
    ours, dots = quality(our_layout(model)), quality(theirs)

    # Of a picture that begins at its left end, and not in the middle, one half of the
    # edges leads across it instead of a quarter.
    begins_in_sight = theirs.centers[0][0] <= FIRST_SCREEN
    assert ours.area <= 1.3 * dots.area
    assert ours.aspect <= 1.5 * dots.aspect or ours.area < dots.area
    assert ours.crossings <= 1.2 * dots.crossings
    assert ours.length <= (1.5 if begins_in_sight else 2.2) * dots.length


@pytest.mark.parametrize("model", MODELS)
def test_title_legend_and_first_node_are_on_the_first_screen(model):
    assert begins_in_sight(read_drawing(svg(scene_of(model), our_layout(model))))


@pytest.mark.parametrize("model", MODELS)
def test_the_longest_way_down_from_the_first_node_is_a_straight_line(model):
    scene, layout = scene_of(model), our_layout(model)
    reach = [0] * len(scene.boxes)
    for producer, consumer in sorted(
        scene.edges, key=lambda edge: -layout.centers[edge[1]][1]
    ):
        reach[producer] = max(reach[producer], reach[consumer] + 1)
    on_line = {
        at
        for at, (x, _) in enumerate(layout.centers)
        if abs(x - layout.centers[0][0]) < 0.5
    }

    assert len(on_line) > reach[0]


@pytest.mark.parametrize("model", ["perceptron", "recurrent", "two devices"])
def test_each_layer_has_its_frame(model):
    scene, layout, _ = arranged(scene_of(model), place_boxes)

    placed = place_frames(scene, layout)

    assert {frame.members for frame, _ in placed} == {
        frame.members for frame in scene_of(model).frames
    }


def found(scene, layout):
    drawing = read_drawing(svg(scene, layout))
    return "\n".join([*faults(drawing), *misses(drawing, scene)])


def test_boxes_and_edges_at_wrong_places_are_found():
    scene, layout = scene_of("perceptron"), our_layout("perceptron")
    first, second, *rest = layout.centers
    (x0, y0), (x1, y1) = layout.routes[0][0], layout.routes[0][-1]
    far = 2 * layout.height
    through = ((x0, y0), (x0, far / 3), (x1, far / 2), (x1, y1))
    beside = ((x0 - 100.0, y0), (x0, y0), (x1, y1), (x1, y1))
    away = ((x0, y0), (x0 + 9_999.0, y0), (x1, y1), (x1, y1))

    def with_way(way):
        return layout._replace(routes=(way, *layout.routes[1:]))

    on_top = layout._replace(centers=(first, first, *rest))
    outside = layout._replace(centers=((-500.0, first[1]), second, *rest))
    assert "overlaps" in found(scene, on_top)
    assert "outside the page" in found(scene, outside)
    assert "runs through" in found(scene, with_way(through))
    assert "does not begin and end at a box" in found(scene, with_way(beside))
    assert "leaves the page" in found(scene, with_way(away))


def test_texts_without_room_are_found():
    scene, layout = scene_of("perceptron"), our_layout("perceptron")
    first, *rest = scene.boxes

    narrow = scene._replace(boxes=(first._replace(width=40.0), *rest))
    low = scene._replace(boxes=(first._replace(height=20.0), *rest))
    assert "leaves its box" in found(narrow, layout)
    assert "leaves its box" in found(low, layout)


def test_edges_across_labels_and_frames_around_strangers_are_found():
    scene = scene_of("perceptron")
    layout = with_room(scene, our_layout("perceptron"))
    drawing = read_drawing(svg(scene, layout))
    (_, label), frame = drawing.labels[0], drawing.frames[1]
    middle = ((label.left + label.right) / 2, (label.top + label.bottom) / 2)
    across = drawing._replace(edges=(*drawing.edges, (middle,) * 4))
    taller = frame._replace(bottom=frame.bottom + 30.0)
    around = drawing._replace(frames=(drawing.frames[0], taller))

    assert faults(drawing) == []
    assert any("crosses 'Sequential" in one for one in faults(across))
    assert any("a frame holds a part of" in one for one in faults(around))


def test_missing_boxes_and_edges_are_found():
    scene = scene_of("perceptron")
    drawing = read_drawing(svg(scene, our_layout("perceptron")))

    fewer = drawing._replace(boxes=drawing.boxes[1:], edges=drawing.edges[1:])

    assert misses(drawing, scene) == []
    assert [one.split()[-1] for one in misses(fewer, scene)] == ["missing", "missing"]


@pytest.mark.stress
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(lambda: residual(400), id="residual"),
        pytest.param(lambda: recurrent(250), id="recurrent"),
        pytest.param(lambda: transformer(40), id="transformer"),
        *(
            pytest.param(lambda seed=seed: hubs(1_500, seed), id=f"hubs {seed}")
            for seed in range(6)
        ),
    ],
)
def test_large_pictures_have_nothing_wrong_and_begin_on_the_first_screen(graph):
    scene = build_scene(graph())
    layout = place(scene.sizes, scene.edges, scene.aside)

    drawing = read_drawing(svg(scene, with_room(scene, layout)))

    assert faults(drawing) == []
    assert begins_in_sight(drawing)
