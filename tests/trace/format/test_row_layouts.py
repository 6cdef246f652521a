"""Rows that stand for several events, from the report to what a reader sees."""

import itertools
import time

import pytest

import gradviz as gv
from gradviz.backends.device import CPU
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Node
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.node_reports import JOINED
from gradviz.trace.probe import Guard, How, Probe
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink

#: A report each: the method and its arguments.
REPORTS = [
    ("node_recorded", (Node((), (), CPU), 48)),
    ("node_recorded", (AccumulateGrad(gv.ones(2)), 0)),
    ("node_taken", (3, 4, 5, 6)),
    ("node_readied", (3, 4, 9, 1, 48, How.FIRST, 5, 2, 17, 6, 7)),
    ("node_readied", (3, 4, 9, 1, 0, How.UNDEFINED, 5, 2, MAX_SEQUENCE_NR, 6, 7)),
    ("node_passed_on", (3, 4, 80, 9, 1, 48, 5, 2, 17, 6, 7)),
    ("node_passed_on", (3, 4, 80, 9, 1, 48, 5, 2, MAX_SEQUENCE_NR, 6, 7)),
]


def test_all_joined_reports_are_here():
    assert {method for method, _ in REPORTS} == JOINED.keys()


class Simple(Probe):
    """Hands on what it hears, and knows nothing of events that are reported at once."""

    __slots__ = ("__dict__",)

    def __init__(self, listener: Probe) -> None:
        for name in ("task_popped", "node_started", "buffer_freed", "node_completed"):
            setattr(self, name, getattr(listener, name))
        self.node_created = listener.node_created
        self.tensor_saved = listener.tensor_saved
        self.gradient_buffered = listener.gradient_buffered
        self.task_pushed = listener.task_pushed


def report(probe, method, arguments):
    getattr(probe.for_this_thread(), method)(*arguments)


def without_time(events):
    return [
        {
            name: getattr(event, name)
            for name in event.__struct_fields__
            if name != "t_ns"
        }
        | {"kind": type(event)}
        for event in events
    ]


@pytest.mark.parametrize(("method", "arguments"), REPORTS)
def test_events_reported_at_once_read_like_events_reported_one_by_one(
    make_bench, method, arguments
):
    at_once, one_by_one = make_bench(), make_bench()
    for _ in range(3):
        report(at_once.recorder, method, arguments)
        report(Simple(one_by_one.recorder), method, arguments)

    assert without_time(at_once.events()) == without_time(one_by_one.events())


def test_a_listener_that_knows_nothing_of_it_hears_each_event(make_bench):
    at_once, guarded = make_bench(), make_bench()
    for method, arguments in REPORTS:
        report(at_once.recorder, method, arguments)
        report(Guard(guarded.recorder), method, arguments)

    assert without_time(guarded.events()) == without_time(at_once.events())


@pytest.mark.parametrize("clock", [time.perf_counter_ns, lambda: 5])
def test_the_events_of_a_row_come_after_those_before_it_and_before_those_after(clock):
    sink = MemorySink()
    recorder = Recorder(sink, clock=clock, flush_every_s=None)
    for number in range(100):
        here = recorder.for_this_thread()
        here.node_taken(0, number, 0, 0)
        here.node_passed_on(0, number, 8, number + 1, 0, 8, 0, 0, 1, 1, 1)
    recorder.close()

    trace = parse_trace(sink.contents())
    events = list(trace.events())
    assert all(a.t_ns < b.t_ns for a, b in itertools.pairwise(events))
    popped = trace.columns["task_popped"]["seq"]
    completed = trace.columns["node_completed"]["seq"]
    assert popped.tolist() == list(range(0, 600, 6))
    assert completed.tolist() == list(range(5, 600, 6))


def test_a_row_counts_as_the_events_it_stands_for(bench):
    for method, arguments in REPORTS:
        report(bench.recorder, method, arguments)

    trace = bench.trace()
    assert trace.num_events == bench.recorder.counts.events == 18
    assert trace.losses.is_complete
