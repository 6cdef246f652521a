"""Stays in queues, against stories written by hand and against single events."""

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.nodes.execution_order import execution_order
from gradviz.analysis.queues.queue_activity import build_queues
from gradviz.analysis.queues.queues_over_time import MAX_STAYS, queues_over_time
from gradviz.analysis.tables.window import NoSuchMomentError
from gradviz.trace import events as e
from tests.analysis.queues.stories import three_tasks


def test_each_task_is_told_with_the_place_it_took(story):
    (queue,) = queues_over_time(three_tasks(story).trace(), [0]).queues

    assert [
        (one.node, one.slot, one.pushed_ns, one.popped_ns) for one in queue.stays
    ] == [(0, 0, 10, 90), (1, 1, 20, 60), (2, 2, 30, 40)]
    assert queue.lengths == (
        (0, 0),
        (10, 1),
        (20, 2),
        (30, 3),
        (40, 2),
        (60, 1),
        (90, 0),
    )
    assert (queue.longest, queue.num_stays, queue.num_handed_over) == (3, 3, 0)


def test_each_task_has_the_number_that_the_order_of_the_pass_gives_its_node():
    with gv.record() as recording:
        x = gv.ones(4, requires_grad=True)
        (x * 2 + x.exp()).sum().backward()

    trace = recording.trace
    (task,) = trace.tasks
    (queue,) = queues_over_time(trace, [task]).queues
    numbers = {row.node: row.index for row in execution_order(trace, task)}
    found = {one.node: one.index for one in queue.stays if one.node in numbers}
    assert found == numbers
    assert sorted(found.values()) == list(range(len(found)))


def test_a_place_that_was_left_is_taken_again(story):
    nodes = [story.node(number) for number in range(3)]
    story.begin(0, nodes, at=0)
    story.push(0, nodes[0], at=10)
    story.push(0, nodes[1], at=20)
    story.pop(0, nodes[0], at=30)
    story.push(0, nodes[2], at=40)
    story.end(0, at=50)

    (queue,) = queues_over_time(story.trace(), [0]).queues

    assert [one.slot for one in queue.stays] == [0, 1, 0]


def test_a_part_of_the_time_begins_with_what_lies_there(story):
    found = queues_over_time(three_tasks(story).trace(), [0], 35, 70)

    (queue,) = found.queues
    assert (found.from_ns, found.until_ns, found.duration_ns) == (35, 70, 110)
    assert queue.lengths == ((35, 3), (40, 2), (60, 1))
    assert queue.longest == 3
    assert [one.node for one in queue.stays] == [0, 1, 2]


def test_an_event_after_the_end_of_a_pass_does_not_lengthen_the_pass(story):
    three_tasks(story).pop(0, story.node(3), at=200)

    found = queues_over_time(story.trace(), [0])

    assert (found.took_ns, found.duration_ns) == (110, 200)


def test_a_part_leaves_out_tasks_that_came_later_or_left_before(story):
    found = queues_over_time(three_tasks(story).trace(), [0], 45, 80)

    assert [one.node for one in found.queues[0].stays] == [0, 1]
    assert found.queues[0].longest == 2


def test_a_task_that_no_thread_took_waits_until_its_pass_ends(story):
    node = story.node(0)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    story.end(0, at=50)
    story.begin(1, [story.node(1)], at=500)
    story.end(1, at=600)

    (queue,) = queues_over_time(story.trace(), [0]).queues

    (stay,) = queue.stays
    assert (stay.popped_ns, stay.popped_by) == (None, -1)
    assert queue.lengths == ((0, 0), (10, 1), (50, 0))


def test_sleep_is_cut_to_the_part(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.waited(500, until=70)
    story.waited(10, until=90)
    story.push(0, node, at=91)
    story.pop(0, node, at=92)
    story.end(0, at=100)

    (queue,) = queues_over_time(story.trace(), [0], 20, 85).queues

    assert queue.sleeps == ((20, 70), (80, 85))
    assert queue.asleep_ns == 55


def test_a_part_after_the_end_is_refused(story):
    with pytest.raises(NoSuchMomentError, match="it ends after 110 ns"):
        queues_over_time(three_tasks(story).trace(), [0], 111)


class Told:
    """Events of one queue in a part of the time, one after the other."""

    def __init__(self, events, queue: int, begin: int, end: int) -> None:
        self.longest = self.handed_over = self.length = 0
        self.lengths = {begin: 0}
        pushers: dict[int, int] = {}
        origin = next(one.t_ns for one in events if isinstance(one, e.TaskBegun))
        for one in events:
            at = one.t_ns - origin
            if not isinstance(one, e.TaskPushed | e.TaskPopped):
                continue
            if one.queue != queue or at > end:
                continue
            if isinstance(one, e.TaskPushed):
                pushers[one.node] = one.thread
                self.length += 1
            else:
                self.handed_over += pushers.pop(one.node) != one.thread
                self.length -= 1
            self.longest = (
                self.length if at <= begin else max(self.longest, self.length)
            )
            self.lengths[max(at, begin)] = self.length


@pytest.mark.parametrize("seed", range(6))
def test_lengths_and_hand_overs_are_those_of_the_single_events(seed):
    count = sim.device_count()
    sim.set_device_count(2)
    try:
        with gv.record() as recording:
            x = gv.ones(4, requires_grad=True)
            parts = [x.to(f"sim:{(seed + nr) % 2}").sin() for nr in range(3)]
            total = sum(one.to("cpu").exp().sum() for one in parts)
            (total * x.sum()).backward()
    finally:
        sim.set_device_count(count)
    trace = recording.trace
    events = list(trace.events())
    whole = queues_over_time(trace, trace.tasks)
    part = whole.duration_ns // 3, whole.duration_ns * 3 // 4

    for found in (whole, queues_over_time(trace, trace.tasks, *part)):
        for queue in found.queues:
            told = Told(events, queue.queue, found.from_ns, found.until_ns)
            assert dict(queue.lengths) == told.lengths
            assert queue.longest == told.longest
            if found is whole:
                assert queue.num_handed_over == told.handed_over
                assert max(one.slot for one in queue.stays) + 1 == told.longest
    assert {one.queue: one.longest for one in whole.queues} == {
        one.queue: one.longest for one in build_queues(trace, trace.tasks).queues
    }


def test_of_very_many_tasks_the_first_are_told_and_all_are_counted(story, monkeypatch):
    monkeypatch.setattr("gradviz.analysis.queues.queues_over_time.MAX_STAYS", 2)

    (queue,) = queues_over_time(three_tasks(story).trace(), [0]).queues

    assert (len(queue.stays), queue.num_stays, queue.longest) == (2, 3, 3)
    assert MAX_STAYS > 1_000
