"""Pictures of graphs of every form."""

import pytest

from gradviz.render.graph.graph_scene import build_scene
from gradviz.render.graph.graph_svg import svg
from gradviz.render.graph.module_frames import with_room
from gradviz.render.layout.placed_graph import place
from tests.render.random_graphs import random_graph
from tests.render.svg_geometry import begins_in_sight, faults, misses, read_drawing


def assert_sound(seed, most):
    scene = build_scene(random_graph(seed, most))
    layout = place(scene.sizes, scene.edges, scene.aside)

    drawing = read_drawing(svg(scene, with_room(scene, layout)))

    assert faults(drawing) == []
    assert misses(drawing, scene) == []
    assert begins_in_sight(drawing)


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_nothing_is_wrong_with_the_picture_of_a_small_graph(seed):
    for one in range(seed, seed + 20):
        assert_sound(one, most=24)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(1_000, 3_000, 100))
def test_nothing_is_wrong_with_the_picture_of_a_graph(seed):
    for one in range(seed, seed + 100):
        assert_sound(one, most=70)
