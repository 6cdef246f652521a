import pytest

from gradviz.analysis.nodes.rpc_edges import RpcEdge
from gradviz.render.words.rpc_edge_text import arrival_of, departure_of

NO_TIMES = dict.fromkeys(("sent_ns", "received_ns", "start_ns"))
NO_GRADIENT = {**NO_TIMES, "size_bytes": None}


def make(end, **changes):
    fields = {
        "end": end,
        "worker": 1,
        "peer": 2,
        "message": 9,
        "node": 7,
        "name": "RecvRpcBackward" if end == "send" else "SendRpcBackward",
        "size_bytes": 12,
        "sent_ns": -40_000,
        "received_ns": -10_000,
        "start_ns": 2_000,
    }
    return RpcEdge(**(fields | changes))


def test_of_a_send_it_is_said_whence_and_when_its_gradient_came():
    assert arrival_of(make("send")).text == (
        "Its gradient came from worker 2, sent by RecvRpcBackward (7) 40 µs before the "
        "pass began (message 9, 12 B); it took 30 µs to arrive, and waited 12 µs until "
        "this ran."
    )


def test_of_a_receive_it_is_said_where_its_gradient_went_and_what_ran_for_it():
    times = {"sent_ns": 40_000, "received_ns": 60_000, "start_ns": 61_000}

    assert departure_of(make("receive", **times)).text == (
        "It sent its gradient to worker 2, to SendRpcBackward (7), 40 µs after the "
        "pass began (message 9, 12 B); it took 20 µs to arrive, and waited 1 µs until "
        "that ran."
    )


def test_each_end_has_one_of_both_sentences():
    assert departure_of(make("send")) is None
    assert arrival_of(make("receive")) is None


def test_of_a_gradient_that_never_left_both_ends_say_so():
    assert arrival_of(make("send", **NO_GRADIENT)).text == (
        "Its gradient never came: worker 2, which has what it sent as RecvRpcBackward "
        "(7) (message 9), is not recorded as having sent one back."
    )
    assert departure_of(make("receive", **NO_GRADIENT)).text == (
        "Its gradient is for worker 2, to SendRpcBackward (7) (message 9), and no "
        "departure is recorded."
    )


def test_of_a_gradient_that_left_and_never_came_both_ends_say_so():
    lost = {"received_ns": None, "start_ns": None}

    assert arrival_of(make("send", **lost)).text == (
        "Its gradient never came: worker 2 sent it 40 µs before the pass began, from "
        "RecvRpcBackward (7) (message 9, 12 B), and no arrival is "
        "recorded."
    )
    assert departure_of(make("receive", **lost)).text.endswith(
        "; no arrival is recorded."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peer": 1}, "Its gradient came from its own worker 1, sent by"),
        ({"node": -1, "name": ""}, "Its gradient came from worker 2 40 µs before the"),
        (
            {"sent_ns": None},
            "its send time is not recorded; it arrived 10 µs before the pass",
        ),
        (
            {"received_ns": -90_000, "contradicts": True},
            "; the clocks disagree: it arrived 50 µs before it left, and waited",
        ),
        ({"start_ns": None}, "to arrive, and nothing ran for it."),
    ],
)
def test_an_arrival_mentions_each_special_circumstance(changes, words):
    assert words in arrival_of(make("send", **changes)).text


def test_the_name_of_a_node_is_data():
    assert "\x1b" not in arrival_of(make("send", name="\x1b[2JRecv")).text
