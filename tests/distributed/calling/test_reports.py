"""Reports about workers and their messages in a trace."""

from collections import Counter

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.calling.reports import _signed
from gradviz.distributed.messaging.ids import MAX_WORKER, Ids
from gradviz.distributed.transport.faulty import Faults, FaultyTransport
from gradviz.testing.scheduler import sleep
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import (
    ClockCompared,
    MessageReceived,
    MessageSent,
    NodeStarted,
    WorkerBegan,
    WorkerEnded,
)
from tests.distributed.called import double, leaf
from tests.distributed.company import Company, idle
from tests.distributed.connected import Connected


def of(trace, kind):
    return [event for event in trace.events() if isinstance(event, kind)]


def recorded(*programs):
    with gv.record() as recording:
        Connected("inproc").run(*programs)
    assert not judge(recording.trace).violations
    return recording.trace


def one_call():
    x = leaf(1, 2, 3)
    with dist_autograd.context() as context_id:
        y = rpc.rpc_sync("worker1", double, (x,))
        dist_autograd.backward(context_id, [y.sum()])


def test_each_message_of_a_forward_is_received_once_with_the_same_numbers():
    trace = recorded(one_call, idle)
    sent = [one for one in of(trace, MessageSent) if one.pass_id < 0]
    received = [one for one in of(trace, MessageReceived) if one.pass_id < 0]

    assert [(one.worker, one.peer, one.size_bytes) for one in sent] == [
        (0, 1, 12),
        (1, 0, 12),
    ]
    assert [(one.peer, one.worker, one.size_bytes) for one in received] == [
        (0, 1, 12),
        (1, 0, 12),
    ]
    for here, there in zip(sent, received, strict=True):
        assert (here.message, here.context) == (there.message, there.context)
        assert trace.nodes[here.node].name == "SendRpcBackward"
        assert trace.nodes[there.node].name == "RecvRpcBackward"
        assert here.seq < there.seq


def test_gradients_go_back_from_the_receive_that_runs_to_the_send():
    trace = recorded(one_call, idle)
    forward = {one.message: one for one in of(trace, MessageSent) if one.pass_id < 0}
    came = {one.message: one for one in of(trace, MessageReceived) if one.pass_id < 0}
    sent = [one for one in of(trace, MessageSent) if one.pass_id >= 0]
    received = {
        one.message: one for one in of(trace, MessageReceived) if one.pass_id >= 0
    }
    started = {(one.task, one.node) for one in of(trace, NodeStarted)}

    assert len(sent) == len(received) == 2
    assert len({one.pass_id for one in (*sent, *received.values())}) == 1
    for one in sent:
        assert one.node == came[one.message].node
        assert (one.task, one.node) in started
        assert received[one.message].node == forward[one.message].node
        assert received[one.message].worker == one.peer


def test_a_message_without_gradients_in_a_context_has_no_node():
    def program():
        with dist_autograd.context():
            rpc.rpc_sync("worker1", double, (gv.tensor([1.0]),))

    (sent,) = of(recorded(program, idle), MessageSent)

    assert (sent.node, sent.task, sent.pass_id, sent.size_bytes) == (-1, -1, -1, 4)


def test_a_message_outside_of_all_contexts_is_not_reported():
    trace = recorded(lambda: rpc.rpc_sync("worker1", double, (leaf(1),)), idle)

    assert not of(trace, MessageSent)
    assert not of(trace, MessageReceived)


def test_workers_say_who_they_are_and_compare_their_clocks_first_and_last():
    trace = recorded(idle, idle)

    began = sorted((e.worker, e.world_size, e.name) for e in of(trace, WorkerBegan))
    assert began == [(0, 2, "worker0"), (1, 2, "worker1")]
    assert sorted(one.worker for one in of(trace, WorkerEnded)) == [0, 1]
    compared = of(trace, ClockCompared)
    assert {(one.worker, one.peer) for one in compared} == {(0, 1), (1, 0)}
    assert len(compared) == 20
    assert all(one.round_trip_ns >= 0 for one in compared)


def test_workers_compare_their_clocks_every_ten_seconds_for_they_drift():
    company = Company(0, lambda inner: FaultyTransport(inner, Faults(), 0))

    with gv.record() as recording:
        company.run(lambda: sleep(35), idle)

    assert not judge(recording.trace).violations
    compared = Counter(one.worker for one in of(recording.trace, ClockCompared))
    assert compared == {0: 5 * 5, 1: 5 * 5}  # first, last and three times between


def test_nobody_is_asked_for_a_clock_while_nobody_listens():
    company = Company(0, lambda inner: FaultyTransport(inner, Faults(), 0))

    def program():
        sleep(15)
        asked.append(company.transports[0].num_sent)

    asked = []
    company.run(program, idle)
    pings = 15
    assert asked[0] <= pings + 1  # and the greeting


def test_ids_of_the_last_worker_fit_into_a_column_and_stay_different():
    ids = Ids(MAX_WORKER)
    first, second = _signed(ids.next()), _signed(ids.next())

    assert -(2**63) <= first < second < 0
    assert _signed(5) == 5
