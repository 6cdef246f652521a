import random

import msgspec
import pytest

from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.graphs import neighborhood
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.graphs.neighborhood import NotInPictureError, critical_edges
from tests.analysis.graphs.test_modules import make_graph, pairs_of


def places(graph):
    """Return the indices of the nodes of `make_graph`."""
    return [100 - node.id for node in graph.nodes]


@pytest.fixture
def net():
    """A chain of six, a way around its middle, and a node aside."""
    return make_graph(
        [""] * 7, [(0, 1), (1, 2), (1, 6), (2, 3), (3, 4), (4, 5), (6, 4)]
    )


@pytest.mark.parametrize(
    ("radius", "kept"), [(0, [2]), (1, [1, 2, 3]), (2, [0, 1, 2, 3, 4, 6])]
)
def test_around_a_node_is_what_is_so_many_edges_away(net, radius, kept):
    assert places(neighborhood.around(net, 98, radius)) == kept


def test_a_neighborhood_counts_the_nodes_and_edges_it_leaves_out(net):
    graph = neighborhood.around(net, 98, 1)

    assert pairs_of(graph) == [(0, 1), (1, 2)]
    assert [node.omitted_edges for node in graph.nodes] == [2, 0, 1]
    assert (graph.omitted, graph.omitted_edges) == (4, 5)
    assert graph.notes == ("only what is 1 edge around Op2 (node 98)",)


@pytest.mark.parametrize(("one", "other"), [(99, 96), (96, 99)])
def test_between_two_nodes_is_each_way_from_one_to_the_other(net, one, other):
    graph = neighborhood.between(net, one, other)

    assert places(graph) == [1, 2, 3, 4, 6]
    assert graph.notes == ("only what is between Op1 (node 99) and Op4 (node 96)",)


def test_between_nodes_without_a_way_is_an_error(net):
    with pytest.raises(NotInPictureError, match="neither leads to the other"):
        neighborhood.between(net, 98, 94)


def test_a_node_that_the_graph_does_not_have_is_an_error(net):
    with pytest.raises(NotInPictureError, match="node 7 is not among the first 7"):
        neighborhood.around(net, 7, 1)


@pytest.mark.parametrize("seed", range(20))
def test_parts_are_those_that_a_search_from_each_node_finds(seed):
    """Against all distances, by repeated relaxation."""
    rng = random.Random(seed)
    size = rng.randint(2, 12)
    pairs = sorted(
        {(a, b) for b in range(size) for a in range(b) if rng.random() < 0.3}
    )
    graph = make_graph([""] * size, pairs)
    far = [[0 if a == b else 99 for b in range(size)] for a in range(size)]
    reach = [[a == b for b in range(size)] for a in range(size)]
    for _ in range(size):
        for a, b in pairs:
            for to in range(size):
                far[to][b] = min(far[to][b], far[to][a] + 1)
                far[to][a] = min(far[to][a], far[to][b] + 1)
                reach[to][b] |= reach[to][a]
    one, other, radius = rng.randrange(size), rng.randrange(size), rng.randint(0, 3)

    near = neighborhood.around(graph, 100 - one, radius)

    assert places(near) == [at for at in range(size) if far[one][at] <= radius]
    first, last = sorted((one, other))
    way = [at for at in range(size) if reach[first][at] and reach[at][last]]
    if way:
        found = neighborhood.between(graph, 100 - one, 100 - other)
        assert places(found) == way
        assert found.omitted == size - len(way)
    else:
        with pytest.raises(NotInPictureError):
            neighborhood.between(graph, 100 - one, 100 - other)


@pytest.fixture
def marked(net):
    """The chain is critical but for what is between 1 and 4; two ways lead there."""
    nodes = tuple(
        msgspec.structs.replace(node, is_critical=place not in {3, 6}, slack_ns=place)
        for place, node in enumerate(net.nodes)
    )
    return msgspec.structs.replace(net, nodes=nodes)


def test_only_the_critical_path_is_kept_if_that_is_wanted(marked):
    graph = neighborhood.only_critical(marked)

    assert places(graph) == [0, 1, 2, 4, 5]
    assert graph.notes == ("only the critical path",)


def test_the_path_takes_edges_between_its_nodes(marked):
    edges = [pairs_of(marked)[at] for at in critical_edges(marked)]

    assert sorted(edges) == [(0, 1), (1, 2), (4, 5)]


def test_of_several_edges_the_path_takes_that_of_the_last_to_run():
    graph = make_graph([""] * 3, [(0, 2), (1, 2)])
    nodes = tuple(msgspec.structs.replace(one, is_critical=True) for one in graph.nodes)

    assert critical_edges(msgspec.structs.replace(graph, nodes=nodes)) == {1}


def test_slack_is_that_of_the_critical_path(story):
    """Two branches on threads of their own: the long one holds up the last node."""
    last = story.node(1, None)
    slow, quick = story.node(2, last), story.node(3, last)
    root = story.node(4, slow, quick)
    story.begin(0, [root, quick, slow, last], at=0)
    story.take(0, root, at=(1, 2, 3), until=10)
    story.take(0, slow, at=(11, 12, 13), until=500)
    story.take(0, last, at=(501, 502, 503), until=600)
    trace = story.trace()

    graph = neighborhood.mark_critical(
        build_graph(trace, 0), find_critical_path(trace, 0)
    )

    marks = {node.id: (node.is_critical, node.slack_ns) for node in graph.nodes}
    costs = {one.node: one for one in find_critical_path(trace, 0).nodes}
    assert marks[3] == (False, None)  # it never ran
    for node, cost in costs.items():
        assert marks[node] == (cost.on_path_ns > 0, cost.slack_ns)
    assert [node for node, (is_critical, _) in marks.items() if is_critical] == [
        4,
        2,
        1,
    ]


def test_that_a_path_is_of_a_lossy_trace_is_said(net, story):
    story.begin(0, [story.node(1, None)], at=0)
    path = find_critical_path(story.trace(), 0)

    lossy = msgspec.structs.replace(path, is_whole=False)
    whole = msgspec.structs.replace(path, is_whole=True)

    assert neighborhood.mark_critical(net, whole).notes == ()
    (note,) = neighborhood.mark_critical(net, lossy).notes
    assert note == "the critical path is of what the trace has left"
