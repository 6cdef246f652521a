import itertools
import sys
import threading

import msgspec
import pytest

from gradviz.analysis.findings.check import check_document, check_trace
from gradviz.analysis.races.race_reports import StreamOrigin
from gradviz.analysis.races.stream_order import (
    MAX_S,
    stream_order,
)
from gradviz.trace.probe import Role
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink

A, B = "sim:0/0", "sim:0/1"
WHOLE = "0;8;8;8"


class Written:
    """A trace that is being written."""

    def __init__(self):
        self._sink = MemorySink()
        self.recorder = Recorder(self._sink, flush_every_s=None)

    def launch(self, kernel, stream, memory, *, writes):
        self.recorder.kernel_launched(kernel, stream, f"kernel{kernel}")
        self.recorder.array_accessed(kernel, memory, WHOLE, writes)

    def trace(self):
        self.recorder.close()
        return parse_trace(self._sink.contents())

    def races(self):
        return [
            (race.first.action, race.second.action)
            for race, _ in stream_order(self.trace()).races
        ]


@pytest.fixture
def written():
    return Written()


RACE = [("kernel1", "kernel2")]


def race(written):
    written.launch(1, A, 1, writes=True)
    written.launch(2, B, 1, writes=True)


def test_a_trace_without_streams_is_in_order(written):
    written.recorder.mark("nothing")

    findings = stream_order(written.trace())
    assert (findings.races, findings.num_kernels) == ((), 0)


def test_a_race_is_found_in_a_trace(written):
    race(written)

    assert written.races() == RACE


@pytest.mark.parametrize(
    "report",
    [
        ("stream_waited", -1, -1, B, 7, -1),
        ("event_synchronized", 7),
        ("stream_synchronized", A),
        ("device_synchronized", "sim:0"),
    ],
    ids=lambda report: report[0],
)
def test_every_wait_of_a_trace_orders(written, report):
    method, *arguments = report
    written.launch(1, A, 1, writes=True)
    written.recorder.event_recorded(-1, -1, A, 7)
    getattr(written.recorder, method)(*arguments)
    written.launch(2, B, 1, writes=True)

    assert written.races() == []


def test_the_end_of_a_pass_is_told_for_people_and_orders_nothing(written):
    """The wait reported with it orders the work."""
    written.launch(1, A, 1, writes=True)
    written.recorder.event_recorded(0, -1, A, 7)
    written.recorder.leaf_stream_synced(0, A, B, 7)
    written.launch(2, B, 1, writes=True)

    assert written.races() == RACE


def test_the_life_of_memory_is_found_in_a_trace(written):
    written.recorder.memory_allocated(1, A, 64)
    written.launch(1, B, 1, writes=True)
    written.recorder.event_recorded(-1, -1, B, 7)
    written.recorder.stream_waited(-1, -1, A, 7, -1)
    written.launch(2, A, 1, writes=True)
    written.recorder.event_recorded(-1, -1, A, 8)
    written.recorder.stream_waited(-1, -1, B, 8, -1)
    written.launch(3, B, 1, writes=True)
    written.launch(4, "sim:0/2", 2, writes=True)
    written.recorder.memory_shared(2, "sim:0/2")
    written.recorder.memory_freed(1, A)
    written.recorder.memory_freed(2, A)

    assert written.races() == [("allocation", "kernel1"), ("kernel3", "free")]


def test_a_race_in_a_trace_says_who_and_where(written):
    node = FakeNode(4)
    written.recorder.node_created(node)
    made = sys._getframe().f_lineno - 1
    written.recorder.nodes_defined([node])
    written.recorder.node_started(3, 4)
    written.launch(1, A, 1, writes=True)
    written.recorder.node_completed(3, 4)
    written.launch(2, B, 1, writes=True)

    ((found, _),) = stream_order(written.trace()).races
    assert (found.first.task, found.first.node) == (3, 4)
    assert found.first.origin.name == "MulBackward0"
    assert " in #0 MulBackward0 of net.0 (id " in str(found.first)
    assert found.first.origin.module == "net.0"
    assert found.first.origin.location == f"{__file__}:{made}"
    assert found.first.location.startswith(f"{__file__}:")
    assert (found.second.task, found.second.node) == (-1, -1)


def test_a_node_whose_definition_is_lost_is_a_number(written):
    written.recorder.node_started(3, 4)
    race(written)
    written.recorder.node_failed(3, 4, "boom")

    ((found, _),) = stream_order(written.trace()).races
    assert str(found.first) == (
        f"kernel1 on sim:0/0 writes it in #0 of its pass (id 4 of task 3), at "
        f"{found.first.location}"
    )


def test_a_thread_that_exits_is_inside_no_node(written):
    written.recorder.node_started(3, 4)
    written.recorder.thread_exited(-1, Role.CALLER)
    race(written)

    ((found, _),) = stream_order(written.trace()).races
    assert found.first.node == -1


class FakeNode:
    """A node, as far as a recorder looks at it."""

    sequence_nr = topological_nr = 0
    next_edges = input_metadata = ()
    runs_on = device = "sim:0"
    module_path = module = "net.0"

    def __init__(self, number):
        self.id = number

    def name(self):
        return "MulBackward0"


# --- all that can be wrong ------------------------------------------------------------


def test_a_trace_is_checked_for_both(written):
    race(written)
    written.recorder.kernel_launched(2, A, "again")

    check = check_trace(written.trace())
    assert not check.is_fine
    assert [one.reason for one in check.violations] == ["its kernel was used before"]
    assert len(check.streams.races) == 1


def test_a_needless_wait_is_no_mistake(written):
    written.launch(1, A, 1, writes=True)
    written.recorder.event_recorded(-1, -1, A, 7)
    written.recorder.event_synchronized(7)
    written.recorder.stream_waited(-1, -1, B, 7, -1)

    check = check_trace(written.trace())
    assert check.is_fine
    assert len(check.streams.needless_waits) == 1


def test_the_document_says_all_of_it(written):
    race(written)
    written.recorder.kernel_launched(2, A, "again")

    trace = written.trace()
    document = check_document(check_trace(trace))
    (violation,) = document.pop("violations")
    (found,) = document.pop("races")
    assert document == {
        "schema": "gradviz.check",
        "version": 1,
        "fine": False,
        "empty": False,
        "left_out": [],
        "streams_looked_at": True,
        "passes": 0,
        "violations_not_listed": 0,
        "events_not_looked_at": 0,
        "failed": [],
        "failed_not_listed": 0,
        "unexplained": [],
        "unexplained_not_listed": 0,
        "parts_apart": 0,
        "not_finite": [],
        "not_finite_not_listed": 0,
        "finite_checked": False,
        "losses": msgspec.to_builtins(trace.losses),
        "kernels": 3,
        "races_not_listed": 0,
        "needless_waits": [],
        "unreached_parameters": [],
        "unreached_parameters_not_listed": 0,
        "parameters_of_some_ranks": [],
        "parameters_of_some_ranks_not_listed": 0,
    }
    assert violation["kind"] == "kernel_launched"
    assert violation["event"] == trace.num_events - 1
    assert (found["memory"], found["times"]) == (1, 1)
    assert found["first"]["stream"] == A
    assert found["remedy"].startswith("sim:0/1 must wait for sim:0/0")


def test_the_text_lists_races_and_the_programs_needless_waits(written):
    written.launch(1, A, 1, writes=True)
    written.recorder.event_recorded(-1, -1, A, 7)
    written.recorder.event_synchronized(7)
    for task in (-1, -1, 3):
        written.recorder.stream_waited(task, -1, B, 7, -1)
    written.launch(2, A, 2, writes=True)
    written.launch(3, B, 2, writes=True)

    lines = str(stream_order(written.trace())).splitlines()
    assert lines[:2] == [
        "races between streams: 1",
        "1. memory 2 is used by two streams in no order:",
    ]
    assert lines[-2] == "waits that were not needed: 1"
    assert lines[-1].startswith("- sim:0/1 need not wait for sim:0/0 at ")
    assert lines[-1].endswith(": it does already (2 times)")


def test_a_race_has_the_names_of_streams_that_were_recorded(written):
    written.recorder.stream_named(A, "", "train.py:3")
    written.recorder.stream_named(A, "self.copies", "train.py:3")
    race(written)

    ((found, _),) = stream_order(written.trace()).races
    assert found.first.stream_origin == StreamOrigin(
        name="self.copies", location="train.py:3"
    )
    assert found.remedy.endswith("s1.wait_stream(self.copies)")


def work_of_two_threads(written, *, handover):
    """Another thread writes, and waits; then this one writes."""
    listener = written.recorder
    listener.handovers_heard()
    listener.program_thread_begun(1)

    def work():
        listener.program_thread_entered(1)
        written.launch(1, A, 1, writes=True)
        listener.stream_synchronized(A)
        if handover:
            listener.handed_over(100)
        listener.program_thread_left(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if handover:
        listener.taken_over(100)
    written.launch(2, B, 1, writes=True)


@pytest.mark.parametrize("handover", [False, True])
def test_threads_are_told_apart_where_their_handovers_are_recorded(written, handover):
    work_of_two_threads(written, handover=handover)
    assert written.races() == ([] if handover else RACE)


def test_kernels_beyond_the_time_limit_are_left_out_and_counted(written, monkeypatch):
    looks = "gradviz.analysis.races.stream_order._EVENTS_PER_LOOK"
    monkeypatch.setattr(looks, 1)
    for number in range(30):
        written.recorder.kernel_launched(number, A, "mul")
    trace = written.trace()

    assert stream_order(trace).num_unseen == 0
    ticks = itertools.count(0, MAX_S / 16).__next__
    found = stream_order(trace, clock=ticks)
    assert (found.num_kernels, found.num_unseen) == (16, 14)


def test_the_knowledge_of_threads_about_each_other_is_bounded(written, monkeypatch):
    monkeypatch.setattr("gradviz.analysis.races.stream_order.MAX_KNOWN", 55)
    written.recorder.kernel_launched(1, A, "mul")
    for _ in range(30):
        thread = threading.Thread(target=written.recorder.handed_over, args=(1,))
        thread.start()
        thread.join()

    # Of two streams, A and none, and of one thread more each time.
    assert stream_order(written.trace()).num_unseen == 22


def test_the_knowledge_about_many_streams_is_bounded(written, monkeypatch):
    monkeypatch.setattr("gradviz.analysis.races.stream_order.MAX_KNOWN", 55)
    for number in range(30):
        written.recorder.kernel_launched(number, f"sim:0/{number}", "mul")

    assert stream_order(written.trace()).num_unseen == 20
