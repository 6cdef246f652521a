"""Frames of a replay, against the list of events of the same passes."""

from collections import defaultdict

import pytest

from gradviz.analysis.moments.event_replay import NothingToReplayError, Replay
from gradviz.analysis.moments.story import Filter
from gradviz.analysis.nodes.addresses import NoSuchNodeError
from gradviz.trace import events as e
from gradviz.trace.probe import Push
from tests.analysis.random_passes import random_trace


def strength(push):
    """Q2: a wake-up goes before nodes; its depth does not count, there is no node."""
    if push.what == Push.WAKE_UP:
        return (True,)
    return False, push.reentrant_depth, push.sequence_nr


def who(task):
    return task.task, task.node


@pytest.fixture(params=range(3))
def trace(request):
    return random_trace(request.param, num_devices=request.param % 4 + 1)


def test_a_replay_has_the_events_of_its_passes_in_their_order(trace):
    replay = Replay(trace, Filter(tasks=trace.tasks[:1]))
    own = [one for one in trace.events() if one.task in replay.tasks]

    assert [replay.event(place) for place in range(len(replay))] == own
    assert [replay.after_ns(place) for place in range(len(replay))] == [
        one.t_ns - own[0].t_ns for one in own
    ]


def test_queues_hold_what_was_pushed_and_not_popped_the_next_one_first(trace):
    replay, lying = Replay(trace, Filter(tasks=trace.tasks)), defaultdict(list)
    for place in range(len(replay)):
        frame = replay.at(place)
        event = frame.event
        here = lying[getattr(event, "queue", None)]
        match event:
            case e.TaskPushed():
                here.append(event)
            case e.TaskPopped():
                here.remove(next(t for t in here if who(t) == who(event)))
        queues = frame.moment.queues
        assert {*queues} == {queue for queue, tasks in lying.items() if tasks}
        for queue, tasks in queues.items():
            # Wake-ups of several passes may lie in one queue.
            pushes = {who(one): one for one in lying[queue]}
            assert sorted(map(who, lying[queue])) == sorted(map(who, tasks))
            ranks = [strength(pushes[who(one)]) for one in tasks]
            assert ranks == sorted(ranks, reverse=True)


def test_nodes_that_wait_for_more_come_before_those_that_have_all(trace):
    replay = Replay(trace, Filter(tasks=trace.tasks))
    for place in range(len(replay)):
        all_of_them = replay.at(place).moment.countdowns
        few = replay.at(place, most=2).moment
        left = [one.remaining == 0 for one in all_of_them]
        assert left == sorted(left)
        assert few.countdowns == all_of_them[:2]
        assert (few.num_countdowns, few.num_waiting) == (len(left), left.count(False))


def test_the_events_about_a_node_are_those_that_name_it(trace):
    replay = Replay(trace, Filter(tasks=trace.tasks))
    events = [replay.event(place) for place in range(len(replay))]
    for task, node in {(one.task, one.node) for one in events if one.node >= 0}:
        expected = [
            place
            for place, one in enumerate(events)
            if one.task == task
            if node
            in {
                one.node,
                getattr(one, "producer", None),
                getattr(one, "pushed_by", None),
            }
        ]
        assert replay.about(task, node).tolist() == expected


def test_an_event_is_found_by_its_time_and_its_kind(pair):
    story, _, _ = pair
    replay = Replay(story.trace(), Filter(tasks=(7,)))
    times = [replay.after_ns(place) for place in range(len(replay))]

    assert [replay.place_at(one) for one in times] == list(range(len(replay)))
    assert replay.place_at(-1) == -1
    assert replay.place_at(10**12) == len(replay) - 1
    assert [replay.after_ns(place) for place in replay.of_kind("task_popped")] == [
        *(15, 82)
    ]
    assert replay.of_kind("task_failed").tolist() == []
    assert replay.duration_ns == 100


def test_a_node_is_found_in_the_pass_in_question_first_and_then_in_the_others(story):
    one, other = story.node(1, name="Sin"), story.node(2, name="Cos")
    story.begin(0, [one], at=0)
    story.ran(0, one, at=10, until=20)
    story.begin(1, [other], at=30, parent=0)
    story.ran(1, other, at=40, until=50)
    replay = Replay(story.trace(), Filter(tasks=(0,)))

    assert replay.tasks == (0, 1)
    assert replay.find("Sin", 1) == (0, 1)
    assert replay.find("Cos", 1) == (1, 2)
    with pytest.raises(NoSuchNodeError, match="Did you mean 'Sin'"):
        replay.find("Sun", 0)


@pytest.mark.parametrize("place", [-1, 10**6])
def test_an_event_that_there_is_not_is_refused(place, pair):
    story, _, _ = pair

    with pytest.raises(IndexError, match="the replay has"):
        Replay(story.trace(), Filter(tasks=(7,))).at(place)


def test_some_of_the_events_are_a_replay_too(pair):
    story, _, _ = pair
    trace = story.trace()
    replay = Replay(trace, Filter(tasks=(7,), kinds=("task_popped",), begin_ns=20))

    assert [replay.after_ns(place) for place in range(len(replay))] == [82]
    with pytest.raises(NothingToReplayError, match="of kind mark"):
        Replay(trace, Filter(tasks=(7,), kinds=("mark",)))


def test_a_node_is_looked_for_in_the_nearest_passes_only(story):
    nodes = [story.node(number, name=f"Node{number}") for number in range(20)]
    for task, node in enumerate(nodes):
        story.begin(task, [node], at=100 * task)
        story.ran(task, node, at=100 * task + 10, until=100 * task + 20)
    replay = Replay(story.trace(), Filter(tasks=tuple(range(20))))

    assert replay.find("Node9", 5) == (9, 9)
    assert replay.find("Node17", 19) == (17, 17)
    for other in ("Node4", "Node18"):
        with pytest.raises(NoSuchNodeError, match="pass 5 has no node"):
            replay.find(other, 5)
