import pytest

from gradviz.analysis.timelines.queue_traffic import pushes_across
from gradviz.trace import events as e
from tests.analysis.random_passes import random_trace


def test_a_node_that_runs_where_it_was_pushed_goes_across_no_threads(pair):
    story, _, _ = pair

    assert pushes_across(story.trace(), [7], 10) == ((), 0)


def test_a_node_that_another_thread_runs_is_told_with_who_pushed_it(story, device):
    leaf = story.node(1, device="sim:0")
    root = story.node(2, leaf)
    story.begin(0, [root, leaf], at=0)
    story.start(0, root, at=10)
    story.push(0, leaf, at=20, queue=2, pushed_by=root)
    device(lambda: story.pop(0, leaf, at=25, queue=2))
    device(lambda: story.start(0, leaf, at=30))
    story.complete(0, root, at=40)

    (one,), num = pushes_across(story.trace(), [0], 10)

    assert (one.task, one.node, one.pushed_by) == (0, 1, 2)
    assert (one.from_thread, one.pushed_ns) == (0, 1_020)
    assert (one.to_thread, one.start_ns) == (1, 1_030)
    assert num == 1


def test_a_push_of_a_node_that_never_ran_is_left_out(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.push(0, root, at=20)

    assert pushes_across(story.trace(), [0], 10) == ((), 0)


@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_that_a_loop_over_all_events_finds(seed):
    trace = random_trace(seed, num_devices=1 + seed)
    pushed, expected = {}, []
    for event in trace.events():
        key = event.task, event.node
        if isinstance(event, e.TaskPushed):
            pushed[key] = event
        elif isinstance(event, e.NodeStarted) and key in pushed:
            by = pushed.pop(key)
            if by.thread != event.thread:
                expected.append(
                    (*key, by.pushed_by, by.thread, by.t_ns, event.thread, event.t_ns)
                )

    told, num = pushes_across(trace, trace.tasks, 10_000)
    first, same = pushes_across(trace, trace.tasks, 3)

    found = [
        tuple(getattr(one, name) for name in one.__struct_fields__) for one in told
    ]
    assert found == sorted(expected, key=lambda one: one[4])
    assert (num, same) == (len(expected), len(expected))
    assert first == told[:3]
