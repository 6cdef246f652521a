import pytest

from gradviz.testing.event_list import EventList
from gradviz.testing.event_rules import broken_rules
from gradviz.trace.events import NodeStarted, TaskPushed
from gradviz.trace.probe import METHODS, Push, Role, Skip


@pytest.fixture
def probe():
    return EventList(lambda: 3)


def test_events_are_kept_in_order_with_their_thread_and_fields(probe):
    probe.node_started(1, 2)
    probe.task_pushed(1, 2, 5, 0, 9, 1, 1, -1, Push.ROOT)

    assert probe.events == [
        NodeStarted(seq=0, t_ns=0, thread=3, task=1, node=2),
        TaskPushed(
            seq=1,
            t_ns=1,
            thread=3,
            task=1,
            node=2,
            queue=5,
            reentrant_depth=0,
            sequence_nr=9,
            queue_length=1,
            outstanding=1,
            pushed_by=-1,
            what=Push.ROOT,
        ),
    ]


def test_every_method_that_is_an_event_is_heard(probe):
    heard = set(vars(probe))

    assert set(METHODS) - heard == {"node_created", "nodes_defined", "queue_defined"}


def begin(probe):
    probe.thread_started(-1, Role.CALLER)
    probe.task_begun(
        1,
        parent=-1,
        reentrant_depth=0,
        owner=-1,
        num_roots=1,
        num_outputs=0,
        keep_graph=False,
        create_graph=False,
    )
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
