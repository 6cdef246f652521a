import functools
import itertools

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.graphs.backward_graph import Graph, build_graph
from gradviz.analysis.graphs.nested_passes import every_graph
from gradviz.render.graph.detail import (
    MAX_SIZE,
    MIN_SCALE,
    automatic,
    detailed_to_fit,
    fits,
    scale_to_fit,
    whole,
)
from gradviz.trace.format.model import Trace
from gradviz.utils.checkpoint import checkpoint

SIZES = [(300, 300), (700, 500), (1_200, 900), (1_920, 1_080), (4_000, 6_000)]


@functools.cache
def recorded() -> Trace:
    """Twelve layers that are not alike, two by two in parts."""
    widths = [*range(4, 17)]
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    parts = [
        nn.Sequential(layers[at], nn.Tanh(), layers[at + 1]) for at in range(0, 12, 2)
    ]
    model = nn.Sequential(*parts)
    with gv.record() as recording:
        model(gv.ones(2, 4)).sum().backward()
    return recording.trace


def graph_of(trace: Trace) -> Graph:
    return build_graph(trace, trace.tasks[0])


@pytest.mark.parametrize("size", SIZES)
def test_a_graph_drawn_to_fit_a_size_stays_readable(size):
    trace = recorded()

    drawn, scale = detailed_to_fit(graph_of(trace), size, trace)

    assert scale == scale_to_fit(drawn, size)
    assert scale >= MIN_SCALE or size == SIZES[0]


def test_more_room_shows_more():
    trace = recorded()

    found = [detailed_to_fit(graph_of(trace), size, trace)[0] for size in SIZES]

    nums = [len(one.nodes) for one in found]
    assert nums == sorted(nums)
    assert len({*nums}) >= 3
    assert found[-1] == graph_of(trace)
    assert found[1].notes == ("parts of models to depth 1 as boxes",)


def test_a_graph_of_few_nodes_that_needs_too_much_room_has_an_overview():
    """Fifty-nine nodes below each other, of which each is seventy pixels high."""
    x = gv.ones(2, requires_grad=True)
    with gv.record() as recording:
        y = x
        for number in range(70):
            y = (y * 2.0) if number % 2 else y.tanh()
        y.sum().backward()
    trace = recording.trace
    graph = graph_of(trace)

    simpler = automatic(graph, trace)

    assert not fits(graph, MAX_SIZE)
    assert fits(simpler, MAX_SIZE)
    assert simpler.notes == ("what repeats is drawn once",)
    assert whole(graph, trace) == graph


@pytest.mark.parametrize(("num", "are_boxes"), [(2, False), (6, True)])
def test_passes_inside_are_boxes_where_they_need_too_much_room(num, are_boxes):
    parts = [nn.Sequential(*(nn.Linear(4, 4) for _ in range(9))) for _ in range(num)]
    with gv.record() as recording:
        x = gv.ones(2, 4, requires_grad=True)
        for part in parts:
            x = checkpoint(part, x, use_reentrant=True)
        x.sum().backward()
    trace = recording.trace

    drawn = automatic(graph_of(trace), trace)

    assert len(every_graph(drawn)) == 1 + num
    assert ("passes inside as boxes" in drawn.notes) == are_boxes
