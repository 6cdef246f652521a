"""Two graphs as one, of random graphs whose differences the test made."""

import random

import pytest

import gradviz as gv
from gradviz import nn
from gradviz.analysis.changes.node_changes import pass_changes
from gradviz.analysis.changes.union_graph import union_graph
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.capture.session import record
from tests.analysis.changes.test_pass_comparison import (
    random_edges,
    recorded,
    run_graph,
)


def union_of(one, other):
    changes = pass_changes(*one, *other)
    graphs = build_graph(*one), build_graph(*other)
    return union_graph(*graphs, changes), changes, graphs


@pytest.mark.parametrize("seed", range(8))
def test_every_node_and_edge_of_both_graphs_is_there_once(seed) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, 14)
    less = [[to for to in own if rng.random() < 0.9] for own in edges]

    union, changes, graphs = union_of(
        recorded(run_graph, edges, range(len(edges))),
        recorded(run_graph, less, range(len(less))),
    )

    found = union.graph
    num_both = changes.comparison.num_matched
    ids = [node.id for node in found.nodes]
    assert len(ids) == len({*ids})
    assert len(ids) == sum(len(one.nodes) for one in graphs) - num_both
    names = sorted(node.name for node in found.nodes)
    only = [one.name for one in changes.comparison.appeared]
    assert names == sorted([*(node.name for node in graphs[0].nodes), *only])
    num_edges = {"before": 0, "after": 0, "both": 0}
    for owner in union.edges.values():
        num_edges[owner] += 1
    ends = [
        len({(edge.producer, edge.consumer) for edge in one.edges}) for one in graphs
    ]
    assert num_edges["both"] + num_edges["before"] == ends[0]
    assert num_edges["both"] + num_edges["after"] == ends[1]


@pytest.mark.parametrize("seed", range(8))
def test_gradients_flow_to_what_was_made_before(seed) -> None:
    rng = random.Random(seed)
    edges = random_edges(rng, 14)

    union, _, _ = union_of(
        recorded(run_graph, edges, range(len(edges))),
        recorded(run_graph, [[], *random_edges(rng, 13)[1:]], range(14)),
    )

    nodes = union.graph.nodes
    assert all(
        nodes[edge.producer].forward_nr > nodes[edge.consumer].forward_nr
        for edge in union.graph.edges
    )


def passes_of(*layers):
    with record() as recording:
        nn.Sequential(*layers)(gv.ones(2, 4)).sum().backward()
    return recording.trace, recording.trace.tasks[-1]


def test_a_layer_put_in_is_a_part_of_its_own() -> None:
    one = passes_of(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    other = passes_of(nn.Linear(4, 4), nn.Tanh(), nn.ReLU(), nn.Linear(4, 4))

    union, _, _ = union_of(one, other)

    modules = {node.name: node.module for node in union.graph.nodes}
    (root,) = {path.partition(".")[0] for path in modules.values() if path}
    assert modules["ReluBackward0"] == f"{root}.1"
    assert modules["TanhBackward0"] == f"{root}.1 (B)"


def test_a_pass_and_itself_have_nothing_of_their_own() -> None:
    one = passes_of(nn.Linear(4, 4), nn.ReLU())

    union, _, (graph, _) = union_of(one, one)

    assert not union.ids
    assert [node.id for node in union.graph.nodes] == [node.id for node in graph.nodes]
    assert {change.kinds for change in union.changes.values()} == {("same",)}
    assert {*union.edges.values()} == {"both"}
