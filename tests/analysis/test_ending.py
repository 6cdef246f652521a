"""The check of every recorded trace: its findings, and its exceptions."""

import pytest

from gradviz.trace.probe import Push
from tests.analysis.ending import contradictions, out_of_order


@pytest.fixture
def two(story):
    """A pass in whose queue something is to happen to nodes 5 and 9."""
    nodes = [story.node(number, name="Mul") for number in (5, 9)]
    story.begin(0, nodes, at=0)
    return story, *nodes


def test_a_task_that_was_taken_before_one_that_goes_first_is_found(two):
    story, early, late = two
    story.push(0, early, at=10)
    story.push(0, late, at=20)
    story.pop(0, early, at=30)
    story.pop(0, late, at=40)

    (found,) = out_of_order(story.trace())

    assert "node=5" in found.partition(" while ")[0]
    assert "node=9" in found.partition(" while ")[2]


def test_of_wake_ups_any_may_be_taken_first(two):
    story, *_ = two
    for task, depth in ((0, 1), (2, 3)):
        story.recorder.task_pushed(task, -1, 1, depth, 0, 1, 1, -1, Push.WAKE_UP)
    story.recorder.task_popped(0, -1, 1, 1)
    story.recorder.task_popped(2, -1, 1, 0)

    assert list(out_of_order(story.trace())) == []


def test_a_task_that_goes_first_and_is_taken_first_is_in_order(two):
    story, early, late = two
    story.push(0, early, at=10)
    story.push(0, late, at=20)
    story.pop(0, late, at=30)
    story.pop(0, early, at=40)

    assert list(out_of_order(story.trace())) == []


def test_a_task_that_another_thread_has_just_pushed_may_have_come_too_late(two):
    story, early, late = two
    story.push(0, early, at=10)
    story.on_thread("other", lambda: story.push(0, late, at=20))
    story.pop(0, early, at=30)
    story.pop(0, late, at=40)

    assert list(out_of_order(story.trace())) == []


def test_a_task_that_another_thread_pushed_before_its_next_event_was_in_the_queue(two):
    story, early, late = two

    def other():
        story.push(0, late, at=20)
        story.recorder.mark("later")

    story.push(0, early, at=10)
    story.on_thread("other", other)
    story.now = 1_030
    story.recorder.mark("the consumer is still busy")
    story.pop(0, early, at=40)
    story.pop(0, late, at=50)

    assert len(list(out_of_order(story.trace()))) == 1


def test_a_state_that_forgets_a_queued_task_contradicts_its_events(two, monkeypatch):
    story, early, late = two
    story.push(0, early, at=10)
    story.push(0, late, at=20)
    story.pop(0, late, at=30)
    trace = story.trace()
    assert list(contradictions(trace)) == []

    monkeypatch.setattr(
        "gradviz.analysis.moments.engine_state.History._queued_at", lambda self, seq: {}
    )

    assert "in the end queues are Counter()" in next(contradictions(trace))
