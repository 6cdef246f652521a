import pytest

from gradviz.testing import EventList
from gradviz.trace.probe import Push, Role, Skip
from tests.interleavings.event_rules import broken_rules
from tests.trace.reports import begin_pass


@pytest.fixture
def probe():
    return EventList(lambda: 3)


def begin(probe):
    probe.thread_started(-1, Role.CALLER)
    begin_pass(probe, 1)
    probe.dependencies_counted(1, 1, 0)


def test_a_push_to_a_device_whose_thread_does_not_run_is_noticed(probe):
    begin(probe)
    probe.task_pushed(1, 2, 5, 0, 9, 1, 1, -1, Push.ROOT)

    (broken,) = broken_rules(probe.events, devices={5: 0})

    assert "went to a thread that does not run" in broken


def test_a_node_that_starts_although_its_pass_had_failed_is_noticed(probe):
    begin(probe)
    probe.task_pushed(1, 2, 5, 0, 9, 1, 1, -1, Push.ROOT)
    probe.task_failed(1, 7, "ValueError")
    probe.task_popped(1, 2, 5, 0)
    probe.node_started(1, 2)

    (broken,) = broken_rules(probe.events, devices={})

    assert "NodeStarted" in broken
    assert "although its pass had failed" in broken


def test_a_thread_that_had_just_asked_may_start_one_node_of_a_failed_pass():
    thread = 1
    probe = EventList(lambda: thread)
    begin(probe)
    for node in (2, 3):
        probe.task_pushed(1, node, 5, 0, 9, 1, 2, -1, Push.ROOT)
    probe.task_failed(1, 7, "ValueError")
    thread = 2
    for node in (2, 3):
        probe.task_popped(1, node, 5, 0)
        probe.node_started(1, node)

    (broken,) = broken_rules(probe.events, devices={})

    assert "node=3) although its pass had failed" in broken


def test_a_node_that_is_skipped_after_a_failure_is_fine(probe):
    begin(probe)
    probe.task_pushed(1, 2, 5, 0, 9, 1, 1, -1, Push.ROOT)
    probe.task_failed(1, 7, "ValueError")
    probe.task_popped(1, 2, 5, 0)
    probe.node_skipped(1, 2, Skip.ERROR)

    assert list(broken_rules(probe.events, devices={})) == []
