import pytest

from gradviz.render.scene import MAX_PARALLEL, build_scene


@pytest.mark.parametrize(
    ("parallel", "drawn"),
    [(1, 1), (MAX_PARALLEL, MAX_PARALLEL), (MAX_PARALLEL + 1, 1), (48, 1)],
)
def test_many_edges_between_two_boxes_are_drawn_as_one(make_graph, parallel, drawn):
    scene = build_scene(make_graph(3, [(0, 1)] * parallel + [(1, 2)]))

    assert scene.edges == ((0, 1),) * drawn + ((1, 2),)
    assert f"{parallel + 1} edges" in scene.subtitle
