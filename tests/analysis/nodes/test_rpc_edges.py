import msgspec
import numpy as np
import pytest

from gradviz.analysis.moments.explanation import explain
from gradviz.analysis.nodes.rpc_edges import RpcEdge, RpcEdges
from tests.analysis.conftest import START_NS
from tests.analysis.sent_messages import crossing, received, sent

#: When the pass of `lost` began.
BEGUN_NS = START_NS + 10


def crossings(trace, *nodes):
    return RpcEdges(trace, np.array(nodes, np.int64))


def test_a_send_knows_who_sent_its_gradient_and_when(story, device):
    trace = crossing(story, device)

    assert crossings(trace, 2).of(2, 2, START_NS) == RpcEdge(
        end="send",
        worker=1,
        peer=0,
        message=9,
        node=1,
        name="RecvRpcBackward",
        size_bytes=12,
        sent_ns=50,
        received_ns=60,
        start_ns=80,
    )


def test_a_receive_knows_where_its_gradient_went_and_what_became_of_it(story, device):
    found = crossings(crossing(story, device), 1).of(1, 1, START_NS)

    assert (found.end, found.worker, found.peer) == ("receive", 0, 1)
    assert (found.node, found.name) == (2, "SendRpcBackward")
    assert (found.sent_ns, found.received_ns, found.start_ns) == (50, 60, 80)


def test_a_node_at_no_end_of_a_message_has_no_crossing(story, device):
    trace = crossing(story, device)

    assert crossings(trace, 7).of(1, 7) is None
    assert crossings(trace, 7).nodes == ()
    assert set(crossings(trace, 1, 7).nodes) == {1, 2}


def test_clocks_that_disagree_are_told(story):
    send = story.node(2, name="SendRpcBackward")
    received(story, 20, send.id, (0, 1, 9), pass_id=4)
    story.begin(2, [send], at=30)
    story.ran(2, send, at=40, until=45)
    sent(story, 50, 1, 1, (0, 1, 9), pass_id=4)

    assert crossings(story.trace(), 2).of(2, 2).contradicts


def test_gradients_of_another_pass_are_not_those_of_this_one(story, device):
    trace = crossing(story, device)

    assert crossings(trace, 1).of(7, 1).sent_ns is None


@pytest.fixture
def lost(story):
    """Pass 1 sends gradients of message 9, none of 10, and nobody gets any."""
    receive = story.node(1, name="RecvRpcBackward")
    other = story.node(2, name="SendRpcBackward")
    third = story.node(3, name="SendRpcBackward")
    sent(story, 1, -1, other.id, (1, 0, 9))
    received(story, 3, receive.id, (1, 0, 9))
    sent(story, 4, -1, third.id, (1, 0, 10))
    story.begin(1, [receive], at=10)
    story.start(1, receive, at=40)
    sent(story, 50, 1, receive.id, (0, 1, 9), pass_id=4, size=12)
    return story.trace()


def test_a_gradient_that_left_and_never_came_is_told_at_both_ends(lost):
    for node, end, other in ((1, "receive", 2), (2, "send", 1)):
        found = crossings(lost, 1, 2).of(1, node, START_NS)

        assert (found.end, found.node, found.size_bytes) == (end, other, 12)
        assert (found.sent_ns, found.received_ns, found.start_ns) == (50, None, None)


def test_of_a_gradient_that_never_left_its_message_is_told(lost):
    found = crossings(lost, 1, 3).of(1, 3)

    assert (found.end, found.peer, found.message, found.node) == ("send", 0, 10, -1)
    assert (found.size_bytes, found.sent_ns, found.received_ns) == (None, None, None)


def test_the_explanation_of_a_node_counts_from_the_begin_of_its_pass(lost):
    found = crossings(lost, 1, 2).of(1, 2, BEGUN_NS)
    numbered = msgspec.structs.replace(found, index=0)

    assert explain(lost, 1, 2).crossing == numbered
    assert explain(lost, 1, 7).crossing is None
