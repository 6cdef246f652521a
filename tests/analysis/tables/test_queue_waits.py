"""Queue waits: each push with its pop, or with the end of its pass."""

import pytest

from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import NEVER
from gradviz.trace import events as e
from tests.analysis.random_passes import random_trace


def test_a_wait_has_its_push_and_its_pop(story, device):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    device(lambda: story.pop(0, node, at=25))
    story.end(0, at=40)

    trace = story.trace()
    waits = queue_waits(trace)

    assert waits.pushes["node"].tolist() == [node.id]
    assert waits.waited_ns.tolist() == [15]
    assert waits.popped_by.tolist() == trace.columns["task_popped"]["thread"].tolist()
    assert waits.popped_by[0] != waits.pushes["thread"][0]
    assert waits.ended.tolist() == waits.popped.tolist()


@pytest.mark.parametrize("ends", [True, False])
def test_a_wait_without_a_pop_ends_with_its_pass_if_that_ends(story, ends):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    if ends:
        story.fail(0, node, "ValueError: it fails", at=20)

    trace = story.trace()
    waits = queue_waits(trace)

    assert waits.popped.tolist() == [NEVER]
    assert (waits.waited_ns.tolist(), waits.popped_by.tolist()) == ([-1], [-1])
    assert waits.ended.tolist() == [trace.num_events if ends else NEVER]


def test_the_waits_of_a_pass_are_those_of_its_tasks(story):
    nodes = [story.node(1), story.node(2)]
    for task, node in enumerate(nodes):
        story.begin(task, [node], at=100 * task)
        story.take(task, node, at=(100 * task + 10, 100 * task + 20, 100 * task + 30))

    (of_second,) = queue_waits(story.trace()).of_passes([1]).pushes["node"].tolist()

    assert of_second == nodes[1].id


def test_queue_waits_at_an_event_do_not_know_later_events(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    story.pop(0, node, at=25)
    story.push(0, node, at=30)
    story.end(0, at=40)
    trace = story.trace()
    first = int(trace.columns["task_pushed"]["seq"][0])

    waits = queue_waits(trace).until(trace, first)

    assert waits.pushed.tolist() == [first]
    assert (waits.popped.tolist(), waits.waited_ns.tolist()) == ([NEVER], [-1])
    assert waits.popped_by.tolist() == [-1]


def test_a_trace_is_joined_once(story):
    trace = story.trace()

    assert queue_waits(trace) is queue_waits(trace)


@pytest.mark.parametrize("fails", [False, True])
def test_of_a_random_pass_every_wait_follows_from_its_events(fails):
    trace = random_trace(11, 2, fails=fails)

    waits = queue_waits(trace)

    waiting, popped = {}, {}
    for event in trace.events():
        key = (event.task, event.node, getattr(event, "queue", None))
        if isinstance(event, e.TaskPushed):
            waiting.setdefault(key, []).append(event.seq)
        elif isinstance(event, e.TaskPopped):
            popped[waiting[key].pop(0)] = event.seq
    assert waits.popped.tolist() == [
        popped.get(seq, NEVER) for seq in waits.pushed.tolist()
    ]
