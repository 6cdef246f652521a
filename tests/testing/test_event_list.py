import pytest

from gradviz.testing.event_list import EventList
from gradviz.trace.events import NodeStarted, TaskPushed
from gradviz.trace.probe import METHODS, Push


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

    assert set(METHODS) - heard == {
        *("call_returned", "model_defined", "node_created", "nodes_defined"),
        *("nodes_placed", "queue_defined", "rows_reported"),
    }
