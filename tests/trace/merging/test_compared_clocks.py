"""Traces of workers whose clocks are skewed and drift, beside the time that is true."""

import itertools
import random
from typing import NamedTuple

import pytest

from gradviz.errors import UserError
from gradviz.trace.events import BufferFreed, MessageReceived, MessageSent, TensorSaved
from gradviz.trace.format.clock import ClockPair
from gradviz.trace.merging.placement import place
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.trace.merging.test_merged_file import merge, of

US, SECOND = 1_000, 1_000_000_000


class Skewed(NamedTuple):
    """A clock: where it was at the beginning, and how much too fast it is."""

    ahead_ns: int
    drift: float

    def at(self, true_ns):
        return round(self.ahead_ns + true_ns * (1 + self.drift))


class Run:
    """Workers on machines of their own, written in the order of the true time."""

    def __init__(self, clocks, rng):
        self.rng = rng
        self.clocks = clocks
        self.now = 0
        self.sinks = [MemorySink() for _ in clocks]
        self.recorders = [
            Recorder(sink, clock=self.clock_of(rank), flush_every_s=None)
            for rank, sink in enumerate(self.sinks)
        ]
        self.messages = {}
        for rank, recorder in enumerate(self.recorders):
            recorder.worker_began(rank, len(clocks), f"worker{rank}")

    def clock_of(self, rank):
        return lambda: self.clocks[rank].at(self.now)

    def compare(self, asker):
        """A worker asks all others for their clocks; ways there and back differ."""
        for peer, clock in enumerate(self.clocks):
            for _ in range(5 * (peer != asker)):
                asked = self.now
                self.now += self.rng.randint(20 * US, 2_000 * US)
                said = clock.at(self.now)
                self.now += self.rng.randint(20 * US, 2_000 * US)
                round_trip = self.now - asked
                self.now += self.rng.randint(1 * US, 50 * US)
                self.recorders[asker].clock_compared(asker, peer, said, round_trip)

    def send(self, worker, peer, latency_ns):
        message = len(self.messages)
        self.recorders[worker].message_sent(-1, -1, worker, peer, message, 1, -1, 4)
        sent, self.now = self.now, self.now + latency_ns
        args = (-1, -1, peer, worker, message, 1, -1, 4)
        self.recorders[peer].message_received(*args)
        self.messages[message] = (sent, self.now)

    def traces(self, hosts=None):
        for recorder in self.recorders:
            recorder.close()
        traces = []
        for rank, sink in enumerate(self.sinks):
            own = parse_trace(bytes(sink.contents()))
            host = hosts[rank] if hosts else f"host{rank}"
            began = (ClockPair(monotonic_ns=self.clocks[rank].at(0), wall_ns=rank),)
            traces.append(of(own, pid=rank, rank=rank, host=host, clocks=began))
        return traces


def a_run(seed, *, num_workers=3, is_killed=False):
    rng = random.Random(seed)
    clocks = [
        Skewed(rng.randint(10, 90) * SECOND, rng.uniform(-90e-6, 90e-6))
        for _ in range(num_workers)
    ]
    run = Run(clocks, rng)
    for rank in range(num_workers):
        run.compare(rank)
    for _ in range(150):
        run.now += rng.randint(0, SECOND // 4)
        run.send(*rng.sample(range(num_workers), 2), rng.randint(5 * US, 900 * US))
    for rank in range(0 if is_killed else num_workers):
        run.compare(rank)
    return run


def ends_of_messages(trace):
    both = (MessageSent, MessageReceived)
    return [event for event in trace.events() if isinstance(event, both)]


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_uncertainty_contains_the_truth_and_early_messages_are_told(seed, is_killed):
    run = a_run(seed, num_workers=2 + seed % 3, is_killed=is_killed)
    placed = place(run.traces())
    whole = merge(*run.traces())
    may_be_off = [one.clock.uncertainty_ns + 2 for one in placed]
    sent = {}
    for event in ends_of_messages(whole):
        has_come = isinstance(event, MessageReceived)
        true_ns = run.clocks[0].at(run.messages[event.message][has_come])
        assert abs(event.t_ns - true_ns) <= may_be_off[event.worker]
        if not has_come:
            sent[event.message] = event.t_ns
    early = [
        sent[event.message] - event.t_ns
        for event in ends_of_messages(whole)
        if isinstance(event, MessageReceived) and event.t_ns < sent[event.message]
    ]

    assert not any(one.doubt for one in placed)
    assert 0 == placed[0].clock.uncertainty_ns < placed[1].clock.uncertainty_ns
    assert [one.clock_uncertainty_ns for one in whole.processes] == [
        one.clock.uncertainty_ns for one in placed
    ]
    told = [one for one in whole.losses.problems if "before they left" in one]
    assert len(told) == len(whole.losses.problems) == bool(early)
    if early:
        assert f"left: {len(early)}, by up to {max(early) / 1e3:,.3g} us" in told[0]


def test_a_second_comparison_corrects_what_clocks_drift():
    run = Run([Skewed(0, 0.0), Skewed(5 * SECOND, 90e-6)], random.Random(1))
    run.compare(0)
    run.now += 100 * SECOND
    run.compare(0)
    _, late = place(run.traces())

    assert late.clock.uncertainty_ns < 2_100 * US
    assert late.clock.shift_ns[0] - late.clock.shift_ns[1] > 5_000 * US


def test_messages_that_take_longer_than_the_uncertainty_never_seem_early():
    run = a_run(5)
    for _ in range(50):
        run.send(*run.rng.sample(range(3), 2), 10_000 * US)
    last = {message for message in run.messages if message >= 150}
    times = {}
    for event in ends_of_messages(merge(*run.traces())):
        if event.message in last:
            times.setdefault(event.message, []).append(type(event))

    assert set(map(tuple, times.values())) == {(MessageSent, MessageReceived)}


def test_workers_of_one_machine_keep_their_times_beside_each_other():
    clock = Skewed(7 * SECOND, 50e-6)
    run = Run([Skewed(0, 0.0), clock, clock], random.Random(3))
    run.compare(0)
    run.compare(2)
    run.now += 10 * SECOND
    run.compare(1)
    _, one, other = place(run.traces(["here", "there", "there"]))

    assert one.clock == other.clock
    assert len(one.clock.at_ns) == 2


def test_events_of_a_thread_stay_in_order_where_its_clock_is_slowed_down():
    run = Run([Skewed(0, 0.0), Skewed(SECOND, 150e-6)], random.Random(2))
    run.compare(0)
    run.now += SECOND
    recorder = run.recorders[1]
    for number in range(20_000):
        run.now += 1
        report = recorder.buffer_freed if number % 3 else recorder.tensor_saved
        report(*(-1, 1)[number % 3 == 0 :], number)
    run.now += SECOND
    run.compare(0)
    whole = merge(*run.traces())

    kinds = (BufferFreed, TensorSaved)
    events = [event for event in whole.events() if isinstance(event, kinds)]
    assert [one.size_bytes for one in events] == list(range(20_000))
    assert all(a.t_ns < b.t_ns for a, b in itertools.pairwise(events))


def test_answers_that_no_clock_gives_are_not_believed():
    run = Run([Skewed(0, 0.0), Skewed(SECOND, 0.0)], random.Random(2))
    run.compare(0)
    run.clocks[1] = Skewed(3 * SECOND, 0.0)
    run.now += SECOND
    run.compare(0)
    _, other = place(run.traces())

    assert "where the time of day says" in other.doubt


@pytest.mark.parametrize("said", [2**63 - 1, -(2**63)])
def test_answers_that_are_damaged_are_not_looked_at(said):
    run = Run([Skewed(0, 0.0), Skewed(SECOND, 0.0)], random.Random(2))
    for _ in range(3):
        run.now += SECOND // 10
        run.recorders[0].clock_compared(0, 1, said, 5)
    _, other = place(run.traces())

    assert "where the time of day says" in other.doubt


def test_two_traces_of_one_worker_are_refused():
    a, b = (a_run(seed).traces() for seed in (1, 2))

    with pytest.raises(UserError, match="are both of worker 1: merge one trace of"):
        place([a[0], a[1], of(b[1], pid=9, recording=9)])


def test_workers_of_different_runs_are_refused():
    first, second = a_run(1).traces()[:2]
    runs = [of(first, run_id="a" * 32), of(second, run_id="b" * 32)]

    with pytest.raises(UserError, match=r"is of run a{12}, .* of run b{12}: merge"):
        place(runs)
    assert len(place([runs[0], second])) == 2  # nobody knows of which one that is


def test_workers_of_runs_of_different_sizes_are_refused():
    a, b = (a_run(1, num_workers=size).traces() for size in (2, 3))

    with pytest.raises(UserError, match=r"is of a run of 2 workers, .* one of 3: "):
        place([a[0], of(b[1], recording=9)])
