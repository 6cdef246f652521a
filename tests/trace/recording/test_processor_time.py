"""Running times of the threads of nodes, by clocks that the test moves."""

import itertools
import random
import threading

import numpy as np
import pytest

from gradviz.trace.events import NodeCompleted, NodeFailed
from gradviz.trace.format.clock import SHORT_NS
from gradviz.trace.reading.assembly import known_rows
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.processor_time import ThreadTime
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink


class Clocks:
    """Elapsed time, and the running time of the thread."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.ran = 500
        self.readings = 0

    def runs(self, nanoseconds: int) -> None:
        self.now += nanoseconds
        self.ran += nanoseconds

    def waits(self, nanoseconds: int) -> None:
        self.now += nanoseconds

    def thread_clock(self) -> int:
        self.readings += 1
        return self.ran


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
def time(clocks) -> ThreadTime:
    return ThreadTime(clocks.thread_clock)


def test_a_long_node_is_told_how_long_its_thread_was_running(clocks, time):
    time.start(clocks.now)
    clocks.runs(200_000)
    clocks.waits(5_000_000)

    assert time.end(clocks.now) == 200_000


def test_a_node_of_a_thread_that_ran_all_the_time_has_all_of_it(clocks, time):
    time.start(clocks.now)
    clocks.runs(SHORT_NS)

    assert time.end(clocks.now) == SHORT_NS


def test_waits_between_nodes_belong_to_no_node(clocks, time):
    time.start(clocks.now)
    clocks.runs(100_000)
    time.end(clocks.now)
    clocks.waits(900_000)
    time.start(clocks.now)
    clocks.runs(100_000)

    assert time.end(clocks.now) == 100_000


def test_a_short_node_counts_as_running_and_reads_no_clock(clocks, time):
    time.start(clocks.now)
    readings = clocks.readings
    clocks.waits(SHORT_NS - 1)

    assert time.end(clocks.now) == SHORT_NS - 1
    assert clocks.readings == readings


def test_no_two_readings_are_close(clocks, time):
    began = clocks.now
    for _ in range(1_000):
        time.start(clocks.now)
        clocks.runs(4_000)
        time.end(clocks.now)
        clocks.runs(1_000)

    assert clocks.readings <= 2 + (clocks.now - began) // SHORT_NS


def test_a_nested_backward_belongs_to_the_node_that_called_it(clocks, time):
    time.start(clocks.now)
    clocks.runs(100_000)
    for _ in range(2):
        time.enter()
        time.start(clocks.now)
        clocks.runs(300_000)
        clocks.waits(700_000)
        assert time.end(clocks.now) == 300_000
        time.leave()
        clocks.runs(10_000)
    clocks.waits(60_000)

    assert time.end(clocks.now) == 100_000 + 2 * 300_000 + 2 * 10_000
    time.start(clocks.now)
    clocks.waits(SHORT_NS)
    assert time.end(clocks.now) == 0


def test_nested_backwards_of_any_depth_are_told_apart(clocks, time):
    def node(depth):
        own = 0
        time.start(clocks.now)
        for _ in range(random.Random(depth).randrange(1, 4)):
            clocks.runs(100_000)
            clocks.waits(300_000)
            own += 100_000
            if depth:
                time.enter()
                own += node(depth - 1)
                time.leave()
        assert time.end(clocks.now) == own
        return own

    assert node(5) > 0


def test_to_leave_what_was_never_entered_changes_nothing(clocks, time):
    time.start(clocks.now)
    time.leave()
    clocks.runs(100_000)

    assert time.end(clocks.now) == 100_000


def test_without_a_clock_nobody_knows(clocks):
    time = ThreadTime(None)
    time.start(clocks.now)
    clocks.runs(1)
    short = time.end(clocks.now)
    clocks.runs(10 * SHORT_NS)

    assert (short, time.end(clocks.now)) == (-1, -1)


def test_the_end_of_a_node_that_never_started_has_no_time(clocks, time):
    assert time.end(clocks.now) == -1


@pytest.mark.parametrize("seed", range(20))
def test_the_time_of_a_node_is_wrong_by_no_more_than_that_of_a_short_node(seed):
    draw, clocks = random.Random(seed), Clocks()
    time = ThreadTime(clocks.thread_clock)
    for _ in range(200):
        (clocks.runs if draw.random() < 0.5 else clocks.waits)(draw.randrange(90_000))
        time.start(clocks.now)
        began, ran = clocks.now, clocks.ran
        for _ in range(draw.randrange(1, 4)):
            (clocks.runs if draw.random() < 0.5 else clocks.waits)(
                draw.choice([100, 20_000, 400_000])
            )
        told = time.end(clocks.now)
        assert abs(told - (clocks.ran - ran)) <= SHORT_NS
        assert 0 <= told <= clocks.now - began


def recorded(clocks, tell, **more):
    sink = MemorySink()
    recorder = Recorder(sink, clock=lambda: clocks.now, flush_every_s=None, **more)
    tell(recorder)
    recorder.close()
    return parse_trace(sink.contents())


def test_every_way_to_report_the_end_of_a_node_tells_its_time(clocks):
    def tell(recorder):
        here = recorder.for_this_thread()
        for node, end in enumerate(
            [
                lambda node: here.node_passed_on(0, node, *itertools.repeat(0, 9)),
                lambda node: recorder.node_completed(0, node),
                lambda node: recorder.node_failed(0, node, "no"),
            ]
        ):
            here.node_taken(0, node, 0, 0)
            clocks.runs(100_000 * (node + 1))
            clocks.waits(7_000_000)
            end(node)

    trace = recorded(clocks, tell, thread_clock=clocks.thread_clock)

    completed, failed = trace.columns["node_completed"], trace.columns["node_failed"]
    assert completed["thread_time_ns"].tolist() == pytest.approx(
        [100_000, 200_000], abs=9
    )
    assert failed["thread_time_ns"].tolist() == pytest.approx([300_000], abs=9)


def test_another_clock_without_one_of_threads_leaves_it_unknown(clocks):
    def tell(recorder):
        recorder.node_started(0, 1)
        recorder.node_completed(0, 1)

    (event,) = (
        e for e in recorded(clocks, tell).events() if isinstance(e, NodeCompleted)
    )
    assert event.thread_time_ns == -1


def test_each_thread_has_a_time_of_its_own(clocks):
    def tell(recorder):
        recorder.node_started(0, 1)
        clocks.runs(100_000)

        def other():
            recorder.node_started(0, 2)
            clocks.runs(400_000)
            recorder.node_completed(0, 2)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        recorder.node_completed(0, 1)

    trace = recorded(clocks, tell, thread_clock=clocks.thread_clock)

    rows = trace.columns["node_completed"].rows("node", "thread_time_ns")
    assert {node: round(time, -4) for node, time in rows} == {1: 500_000, 2: 400_000}


@pytest.mark.parametrize(("kind", "own"), [(NodeCompleted, 0), (NodeFailed, 1)])
def test_a_trace_from_before_does_not_know_it(kind, own):
    old = np.arange(3 + own, dtype=np.int64)[:, np.newaxis]

    assert known_rows(kind, old)[-1].tolist() == [-1]
