"""The forward order of PyTorch's nodes: in ids, folds, and graphs drawn before."""

import random
from itertools import pairwise
from typing import Any

import pytest

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphNode, build_graph
from gradviz.analysis.graphs.repetition import fold_repeats
from tests.parity.pytorch_recordings import leaf, recorded

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def last_graph(recording: Any) -> Graph:
    return build_graph(recording.trace, [*recording.trace.tasks][-1])


def in_forward_order(graph: Graph) -> list[GraphNode]:
    return sorted(graph.nodes, key=lambda node: node.forward_nr)


def names(nodes: list[GraphNode]) -> list[str]:
    return [node.name.removesuffix("Backward0") for node in nodes]


def test_ids_of_a_new_graph_follow_its_forward():
    a, b, shared = leaf(), leaf(), leaf()

    graph = last_graph(
        recorded(lambda: ((a * shared).exp() + b * shared).sum().backward())
    )

    by_id = sorted(graph.nodes, key=lambda node: node.id)
    others = [node.sequence_nr for node in by_id if node.name != LEAF]
    assert others == sorted(others)
    assert names(by_id) == [LEAF, LEAF, "Mul", "Exp", LEAF, "Mul", "Add", "Sum"]


def test_a_branch_that_an_earlier_pass_has_read_keeps_its_place():
    def program() -> None:
        x = leaf()
        first, second = x.sin(), x.cos()
        torch.autograd.grad(second.sum(), x, retain_graph=True)
        (first * second).sum().backward()

    graph = last_graph(recorded(program))

    assert names(in_forward_order(graph)) == [LEAF, "Sin", "Cos", "Mul", "Sum"]
    assert names(sorted(graph.nodes, key=lambda node: node.id)) != [
        LEAF,
        *("Sin", "Cos", "Mul", "Sum"),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_gradients_flow_from_later_nodes_to_earlier_ones(seed):
    chooser = random.Random(seed)
    known = [leaf() for _ in range(3)]
    for _ in range(30):
        one, other = chooser.choices(known, k=2)
        known.append(chooser.choice([torch.add, torch.mul, torch.maximum])(one, other))
    total = sum(known[-5:])

    graph = last_graph(recorded(total.sum().backward))

    for edge in graph.edges:
        producer, consumer = graph.nodes[edge.producer], graph.nodes[edge.consumer]
        assert producer.forward_nr > consumer.forward_nr
    others = [node for node in in_forward_order(graph) if node.name != LEAF]
    assert all(one.sequence_nr < next_.sequence_nr for one, next_ in pairwise(others))


def test_layers_that_repeat_are_folded_recorded_or_drawn_before():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 5)
    loss = model(torch.ones(2, 3, 8)).sum()

    drawn = fold_repeats(gv.pytorch.graph(loss))
    graph = last_graph(recorded(loss.backward))
    folded = fold_repeats(graph)

    # The first layer is another one: nobody wants the gradient of its input.
    assert max(node.repeats for node in folded.nodes) == 4
    assert len(folded.nodes) < len(graph.nodes) / 2
    assert [node.repeats for node in drawn.nodes] == [
        node.repeats for node in folded.nodes
    ]
