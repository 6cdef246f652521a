import inspect

import msgspec
import pytest

from gradviz.trace.events import KINDS, AnyEvent, Event, kind_name, label, own_columns
from gradviz.trace.probe import Push
from tests.docs import trace_format


def test_every_kind_is_in_the_union_that_match_checks():
    assert AnyEvent.__args__ == tuple(KINDS.values())
    written = trace_format.written_source()
    assert trace_format.SOURCE.read_text() == written, (
        "run python -m tests.docs.trace_format"
    )


def test_every_class_of_event_has_a_code():
    assert set(Event.__subclasses__()) == set(KINDS.values())
    assert [kind.code for kind in KINDS.values()] == sorted(KINDS)


#: Kinds that were released. A new one comes here with its release.
RELEASED = {
    1: "node_created",
    2: "tensor_saved",
    10: "task_begun",
    11: "dependencies_counted",
    12: "task_completed",
    13: "task_failed",
    14: "callback_run",
    15: "capture_taken",
    20: "task_pushed",
    21: "task_popped",
    22: "queue_waited",
    30: "node_started",
    31: "node_completed",
    32: "node_failed",
    33: "node_skipped",
    34: "hook_called",
    35: "hook_returned",
    40: "gradient_buffered",
    41: "gradient_accumulated",
    42: "buffer_freed",
    45: "memory_allocated",
    46: "memory_shared",
    47: "memory_freed",
    49: "stream_named",
    50: "event_recorded",
    51: "stream_waited",
    52: "leaf_stream_synced",
    53: "event_synchronized",
    54: "stream_synchronized",
    55: "device_synchronized",
    56: "kernel_launched",
    57: "array_accessed",
    58: "kernel_ran",
    59: "host_accessed",
    60: "thread_started",
    61: "thread_exited",
    62: "reentrant_entered",
    63: "reentrant_left",
    64: "pool_thread_spawned",
    70: "handovers_heard",
    71: "program_thread_begun",
    72: "program_thread_entered",
    73: "program_thread_left",
    74: "handed_over",
    75: "taken_over",
    80: "mark",
    81: "step_begun",
    82: "forward_begun",
    83: "forward_ended",
    84: "optimizer_begun",
    85: "optimizer_ended",
    90: "worker_began",
    91: "worker_ended",
    92: "clock_compared",
    93: "message_sent",
    94: "message_received",
    95: "collective_began",
    96: "collective_ended",
    97: "gradient_bucketed",
}


def test_the_code_of_a_kind_that_was_released_is_for_ever():
    codes = {code: kind_name(kind) for code, kind in KINDS.items()}

    assert codes.items() >= RELEASED.items()


def test_two_kinds_with_one_code_are_refused(run_python):
    result = run_python("""
        from gradviz.trace import events

        class Again(events.Event, frozen=True, kw_only=True):
            code = 34

        events._by_code()
    """)

    assert "events HookCalled and Again both have the code 34" in result.stderr


@pytest.mark.parametrize("kind", KINDS.values(), ids=kind_name)
def test_own_columns_are_the_fields_that_not_every_event_has(kind):
    common = ("seq", "t_ns", "thread", "task", "node", "inferred")

    names = tuple(column.name for column in own_columns(kind))
    assert common + names == kind.__struct_fields__


@pytest.mark.parametrize(
    "kind", [Event, *KINDS.values()], ids=lambda kind: kind.__name__
)
def test_an_event_is_made_by_names_and_never_changes(kind):
    parameters = inspect.signature(kind).parameters.values()

    assert kind.__struct_config__.frozen
    assert {one.kind for one in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_an_event_survives_as_json():
    (kind,) = [kind for kind in KINDS.values() if kind_name(kind) == "task_popped"]
    event = kind(seq=1, t_ns=2, thread=3, task=4, node=5, queue=6, queue_length=7)

    assert msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent) == event


def test_an_enum_member_is_labeled_in_small_letters():
    assert label(Push.WAKE_UP) == "wake_up"
