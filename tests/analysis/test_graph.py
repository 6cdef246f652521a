import msgspec
import pytest

from gradviz.analysis.graph import (
    Graph,
    GraphEdge,
    GraphNode,
    build_graph,
    contract_chains,
    limit_nodes,
    split_shared_leaves,
)


def make_node(id, name="MulBackward0", device="cpu", status="completed"):  # noqa: A002
    return GraphNode(
        id=id,
        name=name,
        device=device,
        sequence_nr=id,
        topological_nr=0,
        inputs=(),
        location="",
        order=id,
        thread=0,
        start_ns=10 * id,
        end_ns=10 * id + 5,
        waited_ns=None,
        status=status,
    )


def make_graph(num_nodes, pairs, **nodes):
    made = tuple(nodes.get(f"n{i}") or make_node(i) for i in range(num_nodes))
    return Graph(task=0, nodes=made, edges=tuple(GraphEdge(a, b, 0) for a, b in pairs))


def pairs_of(graph):
    return [(edge.producer, edge.consumer) for edge in graph.edges]


@pytest.fixture
def chain_with_hub():
    """0 -> 1 -> 2 -> 3 -> 4 -> 5, and a leaf, 6, that 0, 3 and 5 use."""
    chain = [(index, index + 1) for index in range(5)]
    return make_graph(7, [*chain, (0, 6), (3, 6), (5, 6)])


# --- building -------------------------------------------------------------------


def test_nodes_come_in_the_order_in_which_they_ran_with_their_times(pair):
    story, root, leaf = pair

    graph = build_graph(story.trace(), 7)

    assert [node.id for node in graph.nodes] == [root.id, leaf.id]
    assert [node.order for node in graph.nodes] == [0, 1]
    assert [(node.start_ns, node.end_ns) for node in graph.nodes] == [(0, 60), (70, 75)]
    assert [node.waited_ns for node in graph.nodes] == [5, 12]
    assert graph.nodes[0].inputs[0].shape == (3, 2)
    assert pairs_of(graph) == [(0, 1)]


def test_an_edge_to_nowhere_is_left_out(story):
    root = story.node(1, None)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=2, until=3)
    story.end(0, at=4)

    assert build_graph(story.trace(), 0).edges == ()


def test_an_edge_says_which_input_it_leads_to(story):
    leaf = story.node(1)
    root = story.node(2, leaf, input_nr=3)
    story.begin(0, [root, leaf], at=0)
    story.ran(0, root, at=2, until=3)
    story.end(0, at=4)

    assert build_graph(story.trace(), 0).edges == (GraphEdge(0, 1, 3),)


def test_what_was_reached_but_did_not_run_is_there_and_marked(story):
    leaf = story.node(1)
    middle = story.node(2, leaf)
    root = story.node(3, middle)
    story.begin(0, [root, middle, leaf], at=0)
    story.ran(0, root, at=2, until=3)
    story.start(0, middle, at=4)
    story.fail(0, middle, "ValueError: no", at=5)

    nodes = build_graph(story.trace(), 0).nodes

    assert [node.id for node in nodes] == [3, 2, 1]
    assert [node.status for node in nodes] == ["completed", "failed", None]
    assert (nodes[2].order, nodes[2].start_ns, nodes[2].thread) == (None, None, None)


def test_an_edge_to_a_node_whose_definition_is_lost_leads_to_a_stand_in(story):
    lost = story.node(1)
    root = story.node(2, lost)
    story.begin(0, [root], at=0)
    story.ran(0, root, at=2, until=3)
    trace = story.trace()
    trace.nodes = {2: trace.nodes[2]}

    graph = build_graph(trace, 0)

    assert [node.name for node in graph.nodes] == ["MulBackward0", "?"]


def test_a_pass_in_which_nothing_ran_is_an_empty_graph(story):
    story.begin(0, [story.node(1)], at=0)

    assert build_graph(story.trace(), 0) == Graph(task=0, nodes=(), edges=())


# --- transforms -----------------------------------------------------------------


def test_a_leaf_used_far_apart_is_drawn_once_for_each_use(chain_with_hub):
    split = split_shared_leaves(chain_with_hub)

    assert [node.id for node in split.nodes] == [0, 1, 2, 3, 4, 5, 6, 6, 6]
    assert [node.copies for node in split.nodes] == [1, 1, 1, 1, 1, 1, 3, 3, 3]
    assert pairs_of(split)[5:] == [(0, 6), (3, 7), (5, 8)]


def test_a_leaf_used_nearby_is_left_alone(chain_with_hub):
    assert split_shared_leaves(chain_with_hub, near=5) == chain_with_hub


def test_a_node_that_is_no_leaf_is_never_split():
    chain = [(index, index + 1) for index in range(6)]
    graph = make_graph(7, [*chain, (0, 5)])

    assert split_shared_leaves(graph) == graph


def test_a_chain_becomes_one_node():
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3)])

    contracted = contract_chains(graph)

    (node,) = contracted.nodes
    assert node.members == (0, 1, 2, 3)
    assert node.name == "MulBackward0 → … → MulBackward0"
    assert (node.start_ns, node.end_ns) == (0, 35)
    assert contracted.edges == ()


def test_chains_end_where_the_graph_branches():
    graph = make_graph(5, [(0, 1), (1, 2), (1, 3), (3, 4)])

    contracted = contract_chains(graph)

    assert [node.members for node in contracted.nodes] == [(0, 1), (), (3, 4)]
    assert pairs_of(contracted) == [(0, 1), (0, 2)]


def test_chains_end_where_the_device_changes():
    graph = make_graph(2, [(0, 1)], n1=make_node(1, device="sim:0"))

    assert contract_chains(graph) == graph


def test_a_ring_of_a_damaged_trace_is_contracted_and_does_not_hang():
    graph = make_graph(3, [(0, 1), (1, 2), (2, 0)])

    assert [node.members for node in contract_chains(graph).nodes] == [(0, 1, 2)]


def test_a_limit_keeps_what_ran_first_and_counts_the_rest():
    graph = make_graph(4, [(0, 1), (1, 2), (2, 3)])

    limited = limit_nodes(limit_nodes(graph, 3), 2)

    assert [node.id for node in limited.nodes] == [0, 1]
    assert pairs_of(limited) == [(0, 1)]
    assert limited.omitted == 2


def test_a_limit_that_is_not_reached_changes_nothing():
    graph = make_graph(2, [(0, 1)])

    assert limit_nodes(graph, 2) is graph


def test_a_graph_is_plain_data():
    graph = make_graph(2, [(0, 1)])

    assert msgspec.convert(msgspec.to_builtins(graph), Graph) == graph
