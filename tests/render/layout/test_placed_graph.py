import cProfile
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradviz.render.layout import layers
from gradviz.render.layout.placed_graph import SIDE_GAP, place

SIZE = (100.0, 30.0)


def laid_out(num_boxes, edges):
    return place([SIZE] * num_boxes, edges)


@st.composite
def graphs(draw, *, is_acyclic):
    num_boxes = draw(st.integers(1, 25))
    box = st.integers(0, num_boxes - 1)
    edges = draw(st.lists(st.tuples(box, box), max_size=60))
    if is_acyclic:
        edges = [(min(pair), max(pair)) for pair in edges if pair[0] != pair[1]]
    sizes = draw(
        st.lists(
            st.tuples(st.integers(20, 200), st.integers(20, 60)),
            min_size=num_boxes,
            max_size=num_boxes,
        )
    )
    return [(float(wide), float(high)) for wide, high in sizes], edges


def boxes_of(layout, sizes):
    return [
        (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
        for (x, y), (wide, high) in zip(layout.centers, sizes, strict=True)
    ]


@given(graphs(is_acyclic=False))
@settings(max_examples=60, deadline=None)
def test_boxes_never_overlap(graph):
    sizes, edges = graph

    boxes = boxes_of(place(sizes, edges), sizes)

    for one, other in itertools.combinations(boxes, 2):
        apart_x = one[2] <= other[0] or other[2] <= one[0]
        apart_y = one[3] <= other[1] or other[3] <= one[1]
        assert apart_x or apart_y


@given(graphs(is_acyclic=False))
@settings(max_examples=60, deadline=None)
def test_nothing_lies_outside_the_picture(graph):
    sizes, edges = graph

    layout = place(sizes, edges)

    slack = 1e-6
    for x0, y0, x1, y1 in boxes_of(layout, sizes):
        assert -slack <= x0 <= x1 <= layout.width + slack
        assert -slack <= y0 <= y1 <= layout.height + slack
    for x, y in itertools.chain.from_iterable(layout.routes):
        assert -slack <= x <= layout.width + slack
        assert -slack <= y <= layout.height + slack


@given(graphs(is_acyclic=True))
@settings(max_examples=60, deadline=None)
def test_every_edge_leads_down_from_its_producer_to_its_consumer(graph):
    sizes, edges = graph

    layout = place(sizes, edges)

    boxes = boxes_of(layout, sizes)
    for (producer, consumer), route in zip(edges, layout.routes, strict=True):
        (x0, y0), (x1, y1) = route[0], route[-1]
        assert y0 == pytest.approx(boxes[producer][3])
        assert y1 == pytest.approx(boxes[consumer][1])
        assert boxes[producer][0] <= x0 <= boxes[producer][2]
        assert boxes[consumer][0] <= x1 <= boxes[consumer][2]
        assert all(b >= a for (_, a), (_, b) in itertools.pairwise(route))


@given(graphs(is_acyclic=True))
@settings(max_examples=30, deadline=None)
def test_the_same_graph_gets_the_same_layout(graph):
    assert place(*graph) == place(*graph)


def test_a_chain_is_a_straight_line():
    layout = laid_out(5, [(0, 1), (1, 2), (2, 3), (3, 4)])

    assert {x for x, _ in layout.centers} == {50.0}
    assert all(x == 50.0 for route in layout.routes for x, _ in route)


def test_the_longest_way_down_is_a_straight_line():
    chain = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    layout = laid_out(9, [*chain, (0, 6), (1, 7), (3, 8)])

    spine = [layout.centers[box][0] for box in range(6)]
    assert max(spine) - min(spine) < 1


def test_a_tree_has_no_crossings():
    layout = laid_out(7, [(0, 1), (0, 2), (1, 3), (2, 4), (1, 5), (2, 6)])

    x = [at for at, _ in layout.centers]
    assert max(x[3], x[5]) < min(x[4], x[6]) or max(x[4], x[6]) < min(x[3], x[5])


def test_a_long_edge_goes_round_the_boxes_between():
    sizes = [SIZE] * 5
    layout = place(sizes, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])

    points = layout.routes[4]
    for x0, y0, x1, y1 in boxes_of(layout, sizes)[1:4]:
        assert not any(x0 < x < x1 and y0 < y < y1 for x, y in points)


def test_an_edge_for_which_there_are_too_many_bends_goes_round_all_boxes(monkeypatch):
    monkeypatch.setattr(layers, "MAX_BENDS", 0)
    layout = laid_out(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])

    lane = max(x for x, _ in layout.routes[4])

    assert lane > 100.0  # where the boxes end
    assert layout.width == lane
    assert sum(x == lane for x, _ in layout.routes[4]) >= 4


def test_a_box_aside_stands_to_the_right_of_the_box_that_leads_to_it():
    layout = place([SIZE] * 4, [(0, 1), (1, 2), (1, 3)], aside=[3])

    (host, aside), route = layout.centers[1:4:2], layout.routes[2]
    assert aside == (host[0] + 100.0 + SIDE_GAP, host[1])
    assert (route[0], route[-1]) == ((host[0] + 50, host[1]), (aside[0] - 50, host[1]))
    assert layout.width == aside[0] + 50.0


def test_of_several_that_could_stand_aside_the_others_stand_below():
    layout = place([SIZE] * 4, [(0, 1), (0, 2), (0, 3)], aside=[2, 3])

    levels = [y for _, y in layout.centers]
    assert levels[0] == levels[2] < levels[1] == levels[3]


@given(graphs(is_acyclic=True), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_nothing_overlaps_what_stands_aside(graph, chooser):
    sizes, edges = graph
    first = len(sizes)
    hosts = [box for box in range(first) if chooser.random() < 0.5]
    edges = [*edges, *((host, first + at) for at, host in enumerate(hosts))]
    chooser.shuffle(edges)
    sizes = [*sizes, *((chooser.uniform(20, 200), 60.0) for _ in hosts)]

    layout = place(sizes, edges, range(first, len(sizes)))

    boxes = boxes_of(layout, sizes)
    for one, other in itertools.combinations(boxes, 2):
        apart_x = one[2] <= other[0] or other[2] <= one[0]
        apart_y = one[3] <= other[1] or other[3] <= one[1]
        assert apart_x or apart_y
    assert max(box[2] for box in boxes) <= layout.width + 1e-6
    for at, host in enumerate(hosts):
        assert layout.centers[first + at][1] == layout.centers[host][1]
        assert boxes[first + at][0] == pytest.approx(boxes[host][2] + SIDE_GAP)


def test_edges_of_one_box_do_not_start_at_one_point():
    layout = laid_out(4, [(0, 1), (0, 2), (0, 3)])

    assert len({route[0] for route in layout.routes}) == 3


def test_parallel_edges_are_drawn_side_by_side():
    layout = laid_out(2, [(0, 1), (0, 1)])

    assert layout.routes[0] != layout.routes[1]


def test_a_graph_without_nodes_has_no_size():
    assert place([], [])[:4] == ((), (), 0.0, 0.0)


@pytest.mark.parametrize(
    "edges", [[(0, 0)], [(0, 1), (1, 0)], [(0, 1), (1, 2), (2, 0)]]
)
def test_a_cycle_is_drawn_and_does_not_hang(edges):
    layout = laid_out(3, edges)

    assert len(layout.routes) == len(edges)


def num_calls(num_boxes):
    """Function calls that a layout of a random graph takes: no clock, no noise."""
    chooser = random.Random(1)
    edges = [(max(0, box - chooser.randint(1, 40)), box) for box in range(1, num_boxes)]
    profile = cProfile.Profile()
    profile.runcall(laid_out, num_boxes, edges)
    return sum(entry.callcount for entry in profile.getstats())


def test_a_large_graph_takes_work_in_proportion_to_its_size():
    assert num_calls(12_000) < 4.4 * num_calls(3_000)
