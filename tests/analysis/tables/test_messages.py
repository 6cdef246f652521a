import gradviz as gv
from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.tables.messages import messages
from gradviz.analysis.tables.passes import passes as passes_of
from gradviz.analysis.tables.passes import select_task, with_descendants
from gradviz.analysis.tables.worker_parts import with_parts, worker_parts
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.trace import events as e
from tests.analysis.conftest import START_NS
from tests.analysis.sent_messages import crossing, received, sent
from tests.distributed.called import leaf
from tests.distributed.company import idle
from tests.distributed.connected import Connected


def test_a_message_of_a_forward_has_both_ends_and_no_passes(story, device):
    forward, _ = messages(crossing(story, device))

    assert (forward.worker, forward.peer, forward.message) == (1, 0, 9)
    assert (forward.context, forward.pass_id, forward.size_bytes) == (5, -1, 16)
    assert (forward.node, forward.to_node) == (2, 1)
    assert (forward.task, forward.to_task, forward.start_ns) == (-1, -1, None)
    assert (forward.sent_ns, forward.received_ns) == (START_NS + 1, START_NS + 3)


def test_gradients_lead_from_the_pass_that_sent_them_to_the_one_they_began(
    story, device
):
    _, back = messages(crossing(story, device))

    assert (back.worker, back.peer, back.pass_id, back.size_bytes) == (0, 1, 4, 12)
    assert (back.task, back.node, back.thread) == (1, 1, 0)
    assert (back.to_task, back.to_node, back.to_thread) == (2, 2, 1)
    assert (back.sent_ns, back.received_ns) == (START_NS + 50, START_NS + 60)
    assert back.start_ns == START_NS + 80
    assert not back.contradicts
    shifted = back.after(START_NS)
    assert (shifted.sent_ns, shifted.received_ns, shifted.start_ns) == (50, 60, 80)


def test_a_message_that_came_before_it_left_is_told_as_such(story, device):
    story.begin(1, [receive := story.node(1)], at=0)
    received(story, 20, 2, (0, 1, 9), pass_id=4)
    sent(story, 50, 1, receive.id, (0, 1, 9), pass_id=4)
    (one,) = messages(story.trace())

    assert one.contradicts
    assert (one.sent_ns, one.received_ns) == (START_NS + 50, START_NS + 20)


def test_of_a_lost_end_is_told_what_the_other_one_says(story):
    sent(story, 10, -1, 3, (0, 1, 7), size=4)
    received(story, 20, 5, (2, 1, 8), size=6)
    gone, found = messages(story.trace())

    assert (gone.worker, gone.peer, gone.message, gone.size_bytes) == (0, 1, 7, 4)
    assert (gone.received_ns, gone.to_node, gone.to_thread) == (None, -1, -1)
    assert (found.worker, found.peer, found.message, found.size_bytes) == (2, 1, 8, 6)
    assert (found.sent_ns, found.node, found.to_node) == (None, -1, 5)
    assert not gone.contradicts
    assert not found.contradicts


def test_a_trace_of_one_worker_has_none(pair):
    story, _, _ = pair

    assert messages(story.trace()) == ()
    assert with_parts(story.trace(), [7]) == {7}


def test_passes_that_send_each_other_gradients_are_shown_together(story, device):
    trace = crossing(story, device)

    assert with_descendants(trace, [1]) == with_descendants(trace, [2]) == (1, 2)


@rpc.register
def through(x, left):
    return rpc.rpc_sync(left[0], through, (x * 2, left[1:])) if left else x * 3


def test_messages_match_the_sends_and_receives_that_workers_recorded():
    def program():
        x = leaf(1, 2)
        for way in ([1, 2, 0], [2, 1], [0]):
            with dist_autograd.context() as context_id:
                y = rpc.rpc_sync(way[0], through, (x, way[1:]))
                z = rpc.rpc_sync(2, through, (x, []))
                dist_autograd.backward(context_id, [(y + z).sum()], timeout=60)

    with gv.record() as recording:
        Connected("inproc").run(program, idle, idle)
    events = list(recording.events())
    found = messages(recording.trace)

    def of(kind):
        return [one for one in events if isinstance(one, kind)]

    def key(one):
        return (one.worker, one.peer, one.message, one.context, one.pass_id)

    assert sorted(map(key, found)) == sorted(map(key, of(e.MessageSent)))
    assert len(found) == 2 * 2 * (3 + 2 + 1 + 3)
    passes = {one.pass_id: set() for one in found if one.pass_id >= 0}
    for one in found:
        (there,) = [
            other
            for other in of(e.MessageReceived)
            if key(other) == (one.peer, one.worker, *key(one)[2:])
        ]
        assert (one.received_ns, one.to_node) == (there.t_ns, there.node)
        assert one.sent_ns <= one.received_ns
        if one.pass_id >= 0:
            started = next(
                other
                for other in of(e.NodeStarted)
                if other.node == one.to_node and other.seq > there.seq
            )
            assert one.start_ns == started.t_ns
            assert (one.to_task, one.to_thread) == (started.task, started.thread)
            passes[one.pass_id] |= {one.task, one.to_task}
    assert len(passes) == 3
    for tasks in passes.values():
        for task in tasks:
            assert with_parts(recording.trace, [task]) == tasks
        (begun,) = tasks & {one.task for one in passes_of(recording.trace)}
        path = find_critical_path(recording.trace, begun)
        assert sum(one.took_ns for one in path.segments) == path.duration_ns
        assert path.num_nodes == len(
            {one.node for one in of(e.NodeStarted) if one.task in tasks}
        )


def test_a_part_that_another_worker_started_is_not_the_last_pass(story, device):
    trace = crossing(story, device)

    assert [one.parts for one in passes_of(trace)] == [(1, 2)]
    assert select_task(trace, "last") == select_task(trace, "slowest") == (1,)
    assert select_task(trace, "all") == select_task(trace, "2") == (1,)


def test_passes_are_of_the_workers_that_sent_or_got_their_gradients(story, device):
    parts = worker_parts(crossing(story, device))

    assert {task: part.worker for task, part in parts.items()} == {1: 0, 2: 1}
