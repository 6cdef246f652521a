import numpy as np

import gradviz as gv
from gradviz.analysis.graphs.backward_graph import build_graph
from gradviz.analysis.tables.saved_bytes import saved_bytes
from gradviz.capture.session import Recording


def program() -> Recording:
    with gv.record() as recording:
        (gv.ones(4, requires_grad=True).exp() + 1).sum().backward()
    return recording


def by_name(recording: Recording) -> dict[str, int | None]:
    (task,) = recording.trace.tasks
    graph = build_graph(recording.trace, task)
    return {node.name: node.saved_bytes for node in graph.nodes}


def test_a_node_that_was_seen_to_save_nothing_saved_nothing():
    assert by_name(program()) == {
        "SumBackward0": 0,
        "AddBackward0": 0,
        "ExpBackward0": 16,
        "AccumulateGrad": 0,
    }


def test_of_nodes_that_nobody_saw_being_made_it_is_unknown():
    loss = gv.ones(4, requires_grad=True).exp().sum()
    with gv.record() as recording:
        loss.backward()

    assert by_name(recording) == {
        "SumBackward0": None,
        "ExpBackward0": None,
        "AccumulateGrad": 0,
    }


def test_it_is_unknown_where_it_was_not_to_be_recorded():
    with gv.record(events=["!tensor_saved"]) as recording:
        gv.ones(4, requires_grad=True).exp().sum().backward()

    assert by_name(recording)["ExpBackward0"] is None


def test_a_tensor_of_unknown_size_makes_the_sum_unknown(story):
    nodes = [story.node(number) for number in (1, 2)]
    for node, size_bytes in ((nodes[0], 8), (nodes[0], 4), (nodes[1], 8)):
        story.recorder.tensor_saved(node.id, size_bytes)
    story.recorder.tensor_saved(nodes[1].id, -1)
    story.begin(0, nodes, at=0)
    for at, node in enumerate(nodes):
        story.ran(0, node, at=10 * at, until=10 * at + 5)

    sizes = saved_bytes(story.trace(), np.array([1, 2, 3]))

    assert sizes.tolist() == [12, -1, -1]
