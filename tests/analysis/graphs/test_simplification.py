import pytest

from gradviz.analysis.graphs.backward_graph import Graph, GraphEdge, GraphNode
from gradviz.analysis.graphs.simplification import (
    as_one,
    contract_chains,
    limit_nodes,
    split_shared_leaves,
)


def make_node(place, **changes):
    fields = {
        "id": place,
        "name": f"Op{place}",
        "device": "cpu",
        "sequence_nr": place,
        "topological_nr": 0,
        "inputs": (),
        "location": "main.py:7",
        "order": place,
        "thread": 0,
        "start_ns": 10 * place,
        "end_ns": 10 * place + 5,
        "waited_ns": 1,
        "status": "completed",
    }
    return GraphNode(**(fields | changes))


def make_graph(num_nodes, pairs, **nodes):
    made = tuple(nodes.get(f"n{i}") or make_node(i) for i in range(num_nodes))
    return Graph(task=0, nodes=made, edges=tuple(GraphEdge(a, b, 0) for a, b in pairs))


def ids(nodes):
    return [node.id for node in nodes]


def pairs_of(graph):
    return [(edge.producer, edge.consumer) for edge in graph.edges]


@pytest.fixture
def chain_with_hub():
    """0 -> 1 -> 2 -> 3 -> 4 -> 5, and a leaf, 6, that 0, 3 and 5 use."""
    chain = [(index, index + 1) for index in range(5)]
    return make_graph(7, [*chain, (0, 6), (3, 6), (5, 6)])


def test_a_leaf_used_far_apart_is_drawn_once_for_each_use(chain_with_hub):
    split = split_shared_leaves(chain_with_hub)

    assert [node.id for node in split.nodes] == [0, 1, 2, 3, 4, 5, 6, 6, 6]
    assert [node.copies for node in split.nodes] == [1, 1, 1, 1, 1, 1, 3, 3, 3]
    assert pairs_of(split)[5:] == [(0, 6), (3, 7), (5, 8)]


def test_a_leaf_used_nearby_is_left_alone():
    chain = [(index, index + 1) for index in range(4)]
    graph = make_graph(6, [*chain, (0, 5), (3, 5)])

    assert split_shared_leaves(graph) == graph


def test_a_node_that_is_no_leaf_is_never_split():
    chain = [(index, index + 1) for index in range(6)]
    graph = make_graph(7, [*chain, (0, 5)])

    assert split_shared_leaves(graph) == graph


def test_a_chain_becomes_one_node():
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3)])

    contracted = contract_chains(graph)

    (node,) = contracted.nodes
    assert node.members == graph.nodes
    assert (node.name, node.num_nodes) == ("Op0 → … → Op3", 4)
    assert (node.start_ns, node.end_ns, node.waited_ns) == (0, 35, None)
    assert (contracted.edges, contracted.num_nodes) == ((), 4)


def test_a_chain_has_a_location_if_all_of_it_was_made_there():
    here = make_graph(2, [(0, 1)])
    there = make_graph(2, [(0, 1)], n1=make_node(1, location="main.py:8"))

    locations = [contract_chains(one).nodes[0].location for one in (here, there)]

    assert locations == ["main.py:7", ""]


def test_a_chain_of_what_stands_for_several_nodes_stands_for_all_of_them():
    nodes = [make_node(place) for place in range(4)]
    part = as_one(nodes[1:3], name="part", module="")
    graph = Graph(
        task=0,
        nodes=(nodes[0], part, nodes[3]),
        edges=(GraphEdge(0, 1, 0), GraphEdge(1, 2, 0)),
    )

    (node,) = contract_chains(graph).nodes

    assert node.members == tuple(nodes)


def test_chains_end_where_the_graph_branches():
    graph = make_graph(5, [(0, 1), (1, 2), (1, 3), (3, 4)])

    contracted = contract_chains(graph)

    assert [ids(node.members) for node in contracted.nodes] == [[0, 1], [], [3, 4]]
    assert pairs_of(contracted) == [(0, 1), (0, 2)]


@pytest.mark.parametrize(
    "other",
    [
        {"device": "sim:0"},
        {"module": "encoder"},
        {"status": "failed"},
        {"status": None, "order": None},
    ],
)
def test_chains_end_where_nodes_differ_in_what_a_picture_shows(other):
    graph = make_graph(2, [(0, 1)], n1=make_node(1, **other))

    assert contract_chains(graph) == graph


def test_edges_of_a_contracted_graph_are_sorted_by_producer():
    ways = [(0, 1), (0, 2), (1, 4), (2, 3), (2, 5), (4, 6), (4, 7)]

    contracted = contract_chains(make_graph(8, ways))

    assert ids(contracted.nodes) == [0, 1, 2, 3, 5, 6, 7]
    assert pairs_of(contracted) == [(0, 1), (0, 2), (1, 5), (1, 6), (2, 3), (2, 4)]


def test_a_ring_of_a_damaged_trace_is_contracted_and_does_not_hang():
    graph = make_graph(3, [(0, 1), (1, 2), (2, 0)])

    (node,) = contract_chains(graph).nodes

    assert ids(node.members) == [0, 1, 2]


def test_a_limit_keeps_what_ran_first_and_counts_the_rest():
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3)])

    limited = limit_nodes(limit_nodes(graph, 3), 2)

    assert [node.id for node in limited.nodes] == [0, 1]
    assert pairs_of(limited) == [(0, 1)]
    assert limited.omitted == 2


def test_a_limit_that_is_not_reached_changes_nothing():
    graph = make_graph(2, [(0, 1)])

    assert limit_nodes(graph, 2) is graph


def test_a_node_says_how_many_of_its_edges_a_limit_cut():
    graph = make_graph(4, [(0, 1), (0, 2), (0, 3), (1, 2)])

    limited = limit_nodes(limit_nodes(graph, 3), 2)

    assert [node.omitted_edges for node in limited.nodes] == [2, 1]
    assert limited.omitted_edges == 3


def test_a_limit_counts_every_node_of_what_it_leaves_out():
    graph = contract_chains(make_graph(6, [(0, 1), (0, 2), (2, 3), (3, 4)]))

    limited = limit_nodes(graph, 2)

    assert (limited.num_nodes, limited.omitted) == (2, 4)


def test_a_node_whose_edges_a_limit_cut_is_neither_a_leaf_nor_the_end_of_a_chain(
    chain_with_hub,
):
    edges = (*chain_with_hub.edges, GraphEdge(6, 7, 0), GraphEdge(5, 7, 0))
    nodes = (*chain_with_hub.nodes, make_node(7))
    graph = Graph(task=0, nodes=nodes, edges=edges)

    limited = limit_nodes(graph, 7)

    assert split_shared_leaves(limited) == limited
    cut = limit_nodes(make_graph(4, [(0, 1), (0, 2), (0, 3)]), 2)
    assert contract_chains(cut) == cut


def test_several_nodes_as_one_have_their_worst_fate_and_the_span_of_their_times():
    nodes = [
        make_node(0, status=None, order=None, start_ns=None, end_ns=None),
        make_node(1),
        make_node(2, status="failed", error="ValueError: no", omitted_edges=3),
    ]

    one = as_one(nodes, name="part", module="model.0")

    assert (one.name, one.module, one.order) == ("part", "model.0", 1)
    assert (one.status, one.error) == ("failed", "ValueError: no")
    assert (one.start_ns, one.took_ns, one.omitted_edges) == (10, 15, 3)


def test_of_very_many_edges_the_first_are_kept_and_the_rest_counted():
    graph = make_graph(2, [(0, 1)] * 40_003)

    limited = limit_nodes(graph, 2)

    assert (len(limited.edges), limited.omitted_edges) == (40_000, 3)
    assert [node.omitted_edges for node in limited.nodes] == [3, 0]
