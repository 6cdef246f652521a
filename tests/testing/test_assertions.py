import pytest

from gradviz.capture.session import record
from gradviz.engine import AccumulateGrad, Edge, Engine
from gradviz.testing import EventList, Expected, assert_lifecycle, assert_sequence
from gradviz.trace.events import Event, NodeCompleted, NodeStarted, TaskBegun
from gradviz.trace.probe import Role
from tests.engine.nodes import Leaf, Pass


def started(*nodes):
    """Nodes that started, in this order."""
    return [
        NodeStarted(seq=seq, t_ns=seq, thread=0, task=1, node=node)
        for seq, node in enumerate(nodes)
    ]


def starts(node):
    return Expected(NodeStarted, node=node)


def test_anything_may_happen_between_two_steps():
    assert_sequence(started(1, 2, 3, 4), starts(1), starts(3))


def test_no_step_is_always_there():
    assert_sequence([])


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (1, 3, 2, 4), (9, 1, 3, 9, 2, 4)])
def test_the_events_of_a_set_may_come_in_any_order(order):
    assert_sequence(started(*order), starts(1), {starts(2), starts(3)}, starts(4))


@pytest.mark.parametrize(
    ("order", "step"),
    [((3, 1), 2), ((1,), 2), ((), 1)],
    ids=["too early", "missing", "nothing at all"],
)
def test_a_step_that_does_not_come_after_the_one_before_is_missing(order, step):
    with pytest.raises(AssertionError, match=rf"^step {step} of 2 is missing"):
        assert_sequence(started(*order), starts(1), starts(3))


@pytest.mark.parametrize("order", [(2, 1, 3, 4), (1, 2, 4, 3), (1, 2, 4)])
def test_all_of_a_set_come_after_the_step_before_and_before_the_next(order):
    with pytest.raises(AssertionError):
        assert_sequence(started(*order), starts(1), {starts(2), starts(3)}, starts(4))


def test_an_event_counts_once():
    assert_sequence(started(1, 1), {starts(1), starts(1)})
    with pytest.raises(AssertionError):
        assert_sequence(started(1), {starts(1), starts(1)})
    with pytest.raises(AssertionError):
        assert_sequence(started(1), starts(1), starts(1))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_an_event_that_fits_twice_leaves_the_other_what_only_that_can_take(order):
    anyone = Expected(Event)

    assert_sequence(started(*order), {anyone, starts(1)})
    assert_sequence(started(*order), {anyone, starts(2)})


def test_an_event_has_the_kind_and_the_values_that_are_expected():
    (event,) = started(3)

    assert Expected(NodeStarted, node=3, task=1).fits(event)
    assert not Expected(NodeStarted, node=3, task=2).fits(event)
    assert not Expected(NodeCompleted, node=3).fits(event)


def test_a_message_says_what_is_missing_after_what_and_what_there_was():
    with pytest.raises(AssertionError) as caught:
        assert_sequence(started(1, 2), starts(1), starts(7))

    assert str(caught.value).splitlines() == [
        "step 2 of 2 is missing: [NodeStarted(node=7)]",
        "after: NodeStarted(seq=0, t_ns=0, thread=0, task=1, node=1)",
        "of its kind were there:",
        "  NodeStarted(seq=0, t_ns=0, thread=0, task=1, node=1)",
        "  NodeStarted(seq=1, t_ns=1, thread=0, task=1, node=2)",
    ]


def test_a_field_that_such_events_do_not_have_is_an_error():
    with pytest.raises(TypeError, match="NodeStarted has no field nod, only seq, t_ns"):
        Expected(NodeStarted, nod=3)


def test_a_recorded_trace_is_taken_as_well():
    root = Pass(AccumulateGrad(Leaf()))

    with record() as recording:
        Engine().execute([Edge(root)], [1.0])

    assert_lifecycle(recording.trace.events())
    assert_sequence(recording.trace.events(), Expected(TaskBegun), starts(root.id))


def test_events_that_break_a_rule_of_the_lifecycle_are_named():
    events = EventList(lambda: 0)
    events.thread_started(-1, Role.CALLER)
    events.node_started(1, 2)

    with pytest.raises(AssertionError, match="event 1, node_started"):
        assert_lifecycle(events.events)
