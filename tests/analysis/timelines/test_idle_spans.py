import random

import pytest

from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.trace import events as e
from tests.analysis.random_passes import random_trace


def idle(lane):
    return [
        (one.kind, one.task, one.start_ns, one.end_ns)
        for one in lane.spans
        if one.kind not in {"node", "kernel"}
    ]


def test_a_pass_is_set_up_until_its_first_node_is_queued_and_ends_after_its_last(pair):
    story, _, _ = pair

    (lane,) = build_timeline(story.trace(), [7]).lanes

    assert idle(lane) == [("setup", 7, 0, 10), ("finish", 7, 95, 100)]


def test_the_end_of_a_pass_begins_when_its_caller_has_woken_up(story, device):
    root = story.node(1, device="sim:0")
    story.begin(0, [root], at=0)
    story.push(0, root, at=10, queue=2)
    device(lambda: story.ran(0, root, at=20, until=50))
    story.waited(40, until=70)
    story.end(0, at=80)

    main, _ = build_timeline(story.trace(), [0]).lanes

    assert idle(main) == [
        ("setup", 0, 0, 10),
        ("wait", -1, 30, 70),
        ("finish", 0, 70, 80),
    ]


def test_a_caller_that_was_told_of_the_end_in_its_sleep_has_none_of_its_own(
    story, device
):
    root = story.node(1, device="sim:0")
    story.begin(0, [root], at=0)
    story.push(0, root, at=10, queue=2)
    device(lambda: story.ran(0, root, at=20, until=50))
    device(lambda: story.end(0, at=60))
    story.waited(40, until=70)

    main, _ = build_timeline(story.trace(), [0]).lanes

    assert idle(main) == [("setup", 0, 0, 10), ("wait", -1, 30, 60)]


def test_a_pass_that_failed_or_has_no_end_is_not_said_to_end(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.fail(0, root, "ValueError: no", at=25)
    story.begin(1, [root], at=30)
    story.ran(1, root, at=40, until=50)

    (lane,) = build_timeline(story.trace(), [0, 1]).lanes

    assert [one for one in idle(lane) if one[0] != "backward"] == [
        ("setup", 0, 0, 10),
        ("setup", 1, 30, 40),
    ]


def test_a_pass_in_which_nothing_happened_is_all_set_up(story):
    story.begin(0, [], at=0)
    story.end(0, at=40)

    (lane,) = build_timeline(story.trace(), [0]).lanes

    assert idle(lane) == [("setup", 0, 0, 40)]


def test_a_stream_is_blocked_from_the_launch_to_the_end_of_what_it_waits_for(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.kernel(1, "sim:0/0", at=11, ran=(20, 60))
    story.record(5, "sim:0/0")
    story.wait(5, "sim:0/1")
    story.kernel(2, "sim:0/1", at=30, ran=(65, 70))
    story.complete(0, root, at=80)
    story.end(0, at=90)

    lane = build_timeline(story.trace(), [0]).lanes[2]

    assert [(one.kind, one.name, one.start_ns, one.end_ns) for one in lane.spans] == [
        ("blocked", "sim:0/0", 30, 60),
        ("kernel", "mul", 65, 70),
    ]
    assert (lane.num_kernels, lane.busy_ns) == (1, 5)


def test_a_stream_that_has_other_work_is_not_blocked_until_it_is_done(story):
    root = story.node(1)
    story.begin(0, [root], at=0)
    story.start(0, root, at=10)
    story.kernel(1, "sim:0/0", at=11, ran=(20, 60))
    story.kernel(2, "sim:0/1", at=13, ran=(20, 50))
    story.record(5, "sim:0/0")
    story.wait(5, "sim:0/1")
    story.kernel(3, "sim:0/1", at=30, ran=(65, 70))
    story.complete(0, root, at=80)
    story.end(0, at=90)

    lane = build_timeline(story.trace(), [0]).lanes[2]

    blocked = [one for one in lane.spans if one.kind == "blocked"]
    assert [(one.start_ns, one.end_ns) for one in blocked] == [(50, 60)]


@pytest.mark.parametrize("seed", range(4))
def test_threads_are_asleep_as_long_as_their_events_say(seed):
    trace = random_trace(seed, num_devices=1 + random.Random(seed).randrange(4))

    timeline = build_timeline(trace, [trace.tasks[0]])

    begin, end = timeline.origin_ns, timeline.origin_ns + timeline.duration_ns
    slept = {lane.thread: 0 for lane in timeline.lanes}
    for event in trace.events():
        if isinstance(event, e.QueueWaited) and event.thread in slept:
            since = max(event.t_ns - event.waited_ns, begin)
            slept[event.thread] += max(min(event.t_ns, end) - since, 0)
    for lane in timeline.lanes:
        told = [one for one in lane.spans if one.kind == "wait"]
        assert sum(one.end_ns - one.start_ns for one in told) == slept[lane.thread]
