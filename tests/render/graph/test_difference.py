"""Pictures of two graphs as one; that nothing in them overlaps is checked for all."""

import random
import xml.etree.ElementTree as ET

import pytest

from gradviz.analysis.changes.node_changes import pass_changes
from gradviz.analysis.changes.union_graph import union_graph
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.graphs.simplification import contract_chains, split_shared_leaves
from gradviz.render.graph.difference import Difference, difference_scene
from gradviz.render.graph.graph_picture import render_graph
from gradviz.render.words.text import clean
from gradviz.trace.reading.reader import load_trace
from tests.analysis.changes.test_pass_comparison import (
    random_edges,
    recorded,
    run_graph,
)
from tests.analysis.conftest import Story
from tests.render.svg_geometry import SVG


def difference_between(one, other) -> Difference:
    changes = pass_changes(*one, *other)
    return Difference(
        changes, union_graph(build_graph(*one), build_graph(*other), changes)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("simplified", [split_shared_leaves, contract_chains])
def test_a_picture_of_two_graphs_names_each_node_that_only_one_of_them_has(
    seed, simplified
) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, 14)
    less = [[to for to in own if rng.random() < 0.9] for own in edges]
    difference = difference_between(
        recorded(run_graph, edges, range(len(edges))),
        recorded(run_graph, less, range(len(less))),
    )

    graph = simplified(difference.union.graph)
    svg = render_graph(graph, engine="own", difference=difference).data

    tooltips = [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}title")]
    comparison = difference.changes.comparison
    for some, words in (
        (comparison.vanished, "only in A"),
        (comparison.appeared, "only in B"),
    ):
        assert all(
            any(one.name in told and words in told for told in tooltips) for one in some
        )


def test_texts_of_traces_are_no_more_than_texts(hostile, tmp_path) -> None:
    def made(number: int):
        story = Story()
        node = story.node(1, name=hostile)
        more = story.node(2 + number, name=hostile * (1 + number))
        story.begin(0, [node, more], at=0)
        story.ran(0, node, at=10, until=20)
        story.ran(0, more, at=30, until=40)
        story.end(0, at=50)
        path = tmp_path / f"{number}.gvt"
        path.write_bytes(story.contents())
        return load_trace(path), 0

    difference = difference_between(made(0), made(1))
    svg = render_graph(difference.union.graph, difference=difference).data

    assert {one.tag for one in ET.fromstring(svg).iter()} <= {
        f"{SVG}{tag}"
        for tag in ("svg", "style", "defs", "marker", "path", "g", "rect", "text")
    } | {f"{SVG}title"}


def test_a_moved_node_has_both_its_numbers() -> None:
    edges = [[], [], [], [0, 1, 2]]
    difference = difference_between(
        recorded(run_graph, edges, [0, 1, 2, 3]),
        recorded(run_graph, edges, [2, 1, 0, 3]),
    )

    scene = difference_scene(difference.union.graph, difference)

    moved = [box for box in scene.boxes if "→" in box.badge]
    assert len(moved) == len(difference.changes.comparison.moved) > 0
    assert all(box.subtitle.startswith("another turn") for box in moved)
    assert all(clean(box.badge) == box.badge for box in moved)
