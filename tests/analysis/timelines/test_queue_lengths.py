import pytest

from gradviz.analysis.timelines.queue_traffic import queue_lengths
from gradviz.trace import events as e
from tests.analysis.random_passes import random_trace


def test_a_queue_is_as_long_as_what_was_pushed_and_not_yet_popped(pair):
    story, _, _ = pair

    (queue,) = queue_lengths(story.trace(), 1_000, 1_100, 10)

    assert queue.lengths == ((10, 1), (15, 0), (70, 1), (82, 0))
    assert (queue.queue, queue.thread, queue.longest) == (1, 0, 1)


def test_tasks_already_waiting_count_from_the_start_of_the_time_range(pair):
    story, _, _ = pair

    (queue,) = queue_lengths(story.trace(), 1_012, 1_080, 10)

    assert queue.lengths == ((0, 1), (3, 0), (58, 1))


def test_a_queue_in_which_nothing_lay_meanwhile_is_not_told(pair):
    story, _, _ = pair

    assert queue_lengths(story.trace(), 1_020, 1_060, 10) == ()


def test_a_task_that_an_error_left_behind_waits_until_the_next_pass_starts(story):
    root, other = story.node(1), story.node(2)
    story.begin(0, [root, other], at=0)
    story.push(0, other, at=10)
    story.start(0, root, at=20)
    story.fail(0, root, "ValueError: no", at=30)
    story.begin(1, [root], at=50)

    (queue,) = queue_lengths(story.trace(), 1_000, 1_100, 10)

    assert queue.lengths == ((10, 1), (50, 0))
    assert queue.thread == -1


@pytest.mark.parametrize("seed", range(4))
def test_lengths_are_those_that_a_loop_over_all_events_counts(seed):
    trace = random_trace(seed, num_devices=1 + seed)
    events = list(trace.events())
    length, takers, changes = {}, {}, {}
    for event in events:
        if isinstance(event, e.TaskPushed | e.TaskPopped):
            step = 1 if isinstance(event, e.TaskPushed) else -1
            length[event.queue] = length.get(event.queue, 0) + step
            changes.setdefault(event.queue, {})[event.t_ns] = length[event.queue]
            if step < 0:
                takers.setdefault(event.queue, []).append(event.thread)
    begin = events[0].t_ns

    found = queue_lengths(trace, begin, events[-1].t_ns + 1, 10)

    assert {one.queue for one in found} == set(changes)
    for one in found:
        expected = [(t - begin, num) for t, num in changes[one.queue].items()]
        assert list(one.lengths) == expected
        assert one.longest == max(num for _, num in expected)
        own = takers[one.queue]
        assert own.count(one.thread) == max(map(own.count, own))
