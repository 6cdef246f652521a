import pytest

from gradviz.analysis.nodes.predicted_order import (
    Divergence,
    PredictedOrder,
    PredictedRow,
)
from gradviz.render.terminal.prediction import print_prediction


def row(index, **changes):
    fields = {
        "index": index,
        "node": 10 + index,
        "name": "MulBackward0",
        "device": "cpu",
        "queue": 0,
        "reason": "made last",
        "num_ready": 2,
        "ran": index,
    }
    return PredictedRow(**(fields | changes))


def divergence(**changes):
    fields = {
        "queue": 0,
        "queue_name": "caller 0",
        "index": 1,
        "predicted": 11,
        "predicted_name": "MulBackward0",
        "actual": 12,
        "actual_name": "AddBackward0",
        "why": "policy",
    }
    return Divergence(**(fields | changes))


def make_order(*divergences, **changes):
    rows = (row(0, reason="alone"), row(1, ran=2), row(2, reason="leaf", ran=None))
    fields = {
        "task": 7,
        "rows": rows,
        "divergences": divergences,
        "num_predicted": 3,
        "num_queues": 1,
        "num_ran": 3,
    }
    return PredictedOrder(**(fields | changes))


def said(order, shown, width=80):
    return " ".join(
        " ".join(shown(lambda to: print_prediction(order, to), width)).split()
    )


def test_each_node_says_why_it_comes_there_and_where_it_ran(shown):
    lines = shown(lambda to: print_prediction(make_order(), to))

    assert lines[0] == "Backward pass 7: 3 nodes in the predicted order"
    assert lines[2].split() == [
        *["0", "0", "10", "MulBackward0", "cpu", "nothing", "else", "was", "ready"]
    ]
    assert lines[3].split()[:3] == ["1", "2", "11"]
    assert lines[4].split()[:3] == ["2", "-", "12"]
    assert lines[-1] == "It ran as predicted, in 1 queue."


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"why": "late", "by": 3, "by_name": "Sin", "thread": 2, "off_ns": 60},
            (
                "The former became ready 60 ns after the latter had left, by Sin (3) "
                "on thread 2."
            ),
        ),
        (
            {"why": "early", "by": 3, "by_name": "Sin", "thread": 2},
            "ready before its turn",
        ),
        ({"why": "crossed", "thread": 2, "off_ns": 7}, "by thread 2 only 7 ns before"),
        ({"why": "shared"}, "tasks of another pass"),
        ({"why": "tied"}, "what other threads pushed"),
        ({"why": "policy"}, "left the order after 1 node: MulBackward0 (11) was next"),
        ({"why": "policy"}, "another order than PyTorch's is in force."),
        (
            {"why": "failed", "actual": -1, "error": "no\x1b[31m"},
            "the pass failed (no).",
        ),
        (
            {"why": "unfinished", "actual": -1},
            "ended after 1 node, before MulBackward0",
        ),
        ({"why": "not run"}, "MulBackward0 did not run"),
        (
            {"why": "not foreseen", "predicted": -1},
            "behind its 1 predicted nodes: it is",
        ),
        ({"why": "unknown"}, "lacks the events"),
    ],
)
def test_every_reason_is_a_sentence(changes, words, width, shown):
    order = make_order(divergence(**changes))

    assert words in said(order, shown, width)
    assert "\x1b" not in said(order, shown, width)
    assert max(map(len, shown(lambda to: print_prediction(order, to), width))) <= width


def test_lost_definitions_and_left_out_nodes_are_reported(shown):
    order = make_order(num_lost=2, num_predicted=9)

    assert "3 nodes of 9 in the predicted order" in said(order, shown)
    assert "The definitions of 2 nodes are lost" in said(order, shown)
    assert "does not have the node with which the pass began" in said(
        make_order(rows=(), num_predicted=0), shown
    )
