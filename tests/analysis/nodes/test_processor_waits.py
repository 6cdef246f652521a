"""Nodes that waited for the processor, and those that waited for something known."""

import random
from collections import defaultdict

import pytest

from gradviz.analysis.nodes.processor_waits import LEAST_NS, processor_waits
from gradviz.analysis.tables.executions import execution_columns
from gradviz.trace import events as e
from tests.analysis.conftest import MS, TimedStory


def waits(timed: TimedStory) -> dict[tuple[int, int], int]:
    trace = timed.trace()
    runs = execution_columns(trace)
    keys = zip(runs.task.tolist(), runs.node.tolist(), strict=True)
    return dict(zip(keys, processor_waits(trace, runs).tolist(), strict=True))


@pytest.fixture(autouse=True)
def outer_pass(timed: TimedStory) -> None:
    timed.begin(0, [], at=timed.now)


def near(time: float) -> object:
    return pytest.approx(time * MS, abs=1_000)


def test_a_node_whose_thread_was_not_running_waited_for_the_processor(timed):
    timed.started(0, 1)
    timed.runs(0.2)
    timed.loses(48.8)
    timed.recorder.node_completed(0, 1)

    assert waits(timed) == {(0, 1): near(48.8)}


@pytest.mark.parametrize(("ran", "lost"), [(0.1, 0.19), (10, 1), (3, 0)])
def test_a_wait_that_is_short_or_a_small_part_of_the_run_does_not_count(
    timed, ran, lost
):
    timed.started(0, 1)
    timed.runs(ran)
    timed.loses(lost)
    timed.recorder.node_completed(0, 1)

    assert waits(timed) == {(0, 1): 0}


@pytest.mark.parametrize(
    "report",
    [
        lambda recorder: recorder.stream_synchronized("sim:0/0"),
        lambda recorder: recorder.device_synchronized("sim:0"),
        lambda recorder: recorder.event_synchronized(7),
        lambda recorder: recorder.taken_over(7),
    ],
)
def test_a_node_known_to_have_waited_for_something_counts_no_processor_wait(
    timed, report
):
    for node in (1, 2):
        timed.started(0, node)
        timed.runs(0.3)
        timed.loses(5)
        if node == 1:
            report(timed.recorder)
        timed.recorder.node_completed(0, node)

    assert waits(timed) == {(0, 1): 0, (0, 2): near(5)}


def test_time_that_a_nested_backward_lost_is_not_its_callers(timed):
    timed.started(0, 1)
    timed.nested(1, 0)
    timed.loses(20)  # asleep on its queue
    timed.started(1, 5)
    timed.runs(2)
    timed.loses(30)
    timed.recorder.node_completed(1, 5)
    timed.left(1)
    timed.runs(1)
    timed.recorder.node_completed(0, 1)

    assert waits(timed) == {(0, 1): 0, (1, 5): near(30)}


def test_time_that_a_caller_lost_itself_counts_beside_a_nested_backward(timed):
    timed.started(0, 1)
    timed.loses(7)
    timed.nested(1, 0)
    timed.started(1, 5)
    timed.runs(2)
    timed.recorder.node_completed(1, 5)
    timed.left(1)
    timed.recorder.node_completed(0, 1)

    assert waits(timed) == {(0, 1): pytest.approx(7 * MS, abs=0.1 * MS), (1, 5): 0}


def test_a_nested_backward_on_another_thread_is_not_a_wait_for_the_processor(timed):
    timed.started(0, 1)
    timed.nested(1, 0)

    def help():  # noqa: A001
        timed.started(1, 5)
        timed.runs(2)
        timed.recorder.node_completed(1, 5)

    timed.on_thread("pool", help)
    timed.loses(9)
    timed.left(1)
    timed.recorder.node_completed(0, 1)

    assert waits(timed)[0, 1] == 0


def test_without_processor_time_nobody_waited(story):
    story.begin(0, [], at=0)
    story.ran(0, story.node(1), at=10, until=90 * MS)
    trace = story.trace()
    runs = execution_columns(trace)

    assert runs.thread_time_ns.tolist() == [-1]
    assert processor_waits(trace, runs).tolist() == [0]


def brute_force(trace):  # noqa: C901 - a case for each kind
    """Event by event: a stack of what goes on in each thread."""
    stacks, found = defaultdict(list), {}
    for event in trace.events():
        stack = stacks[event.thread]
        match event:
            case e.NodeStarted():
                stack.append({"at": event.t_ns, "explained": 0, "known": False})
            case e.ReentrantEntered():
                stack.append({"at": event.t_ns, "ran": 0})
            case e.StreamSynchronized():
                for one in stack:
                    one["known"] = True
            case e.ReentrantLeft():
                call = stack.pop()
                stack[-1]["explained"] += max(event.t_ns - call["at"] - call["ran"], 0)
            case e.NodeCompleted():
                node = stack.pop()
                took = event.t_ns - node["at"]
                ran = min(event.thread_time_ns, took)
                if stack:
                    stack[-1]["ran"] += ran
                lost = took - ran
                for explained in (0, node["explained"]):
                    lost -= explained
                    if lost < LEAST_NS or lost < took // 10:
                        lost = 0
                found[event.task, event.node] = 0 if node["known"] else lost
    return found


@pytest.mark.parametrize("seed", range(25))
def test_random_stories_are_told_as_by_looking_at_each_event(seed, timed):
    draw = random.Random(seed)
    tasks, nodes = iter(range(1, 10_000)), iter(range(10_000))

    def passes_time():
        (timed.runs if draw.random() < 0.5 else timed.loses)(draw.choice([0, 0.04, 3]))
        if draw.random() < 0.05:
            timed.recorder.stream_synchronized("sim:0/0")

    def run(task, depth):
        for _ in range(draw.randrange(1, 4)):
            node = next(nodes)
            timed.started(task, node)
            passes_time()
            while depth < 3 and draw.random() < 0.4:
                inner = next(tasks)
                timed.nested(inner, task)
                passes_time()
                run(inner, depth + 1)
                timed.left(inner)
                passes_time()
            timed.recorder.node_completed(task, node)
            passes_time()

    run(0, 0)
    trace = timed.trace()
    runs = execution_columns(trace)
    keys = zip(runs.task.tolist(), runs.node.tolist(), strict=True)

    found = dict(zip(keys, processor_waits(trace, runs).tolist(), strict=True))
    assert found == brute_force(trace)
