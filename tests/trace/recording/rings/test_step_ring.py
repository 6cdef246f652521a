"""A ring of steps: odd ones are in its file as a whole, the others are not."""

import pytest

from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.format.kept_events import scope_of
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink


class Steps:
    """A recorder of a small engine whose steps take as long as the test says."""

    def __init__(self, engine, **asked):
        self.now = 0
        scope = scope_of(**asked)
        self.recorder = Recorder(
            MemorySink(), scope=scope, flush_every_s=None, clock=self.clock
        )
        self.engine = engine(self.recorder)
        self.number = 0
        self.recorder.step_begun(0)

    def clock(self):
        self.now += 1
        return self.now

    def end(self, duration=0):
        self.now += duration
        self.recorder.end_step()
        self.number += 1
        self.recorder.step_begun(self.number)

    def run(self, durations, *, flush_every=1, length=20):
        for duration in durations:
            self.engine.backward(self.number, length, first_id=1000 * self.number)
            self.end(duration)
            if self.number % flush_every == 0:
                self.recorder.flush()

    def trace(self):
        frames = []
        self.recorder.save(frames.extend)
        return parse_trace(b"".join(frames))


@pytest.fixture
def make_steps(bench):
    made = []

    def make(**asked):
        made.append(Steps(type(bench.engine), **asked))
        return made[-1]

    yield make
    for one in made:
        one.recorder.close()


def undefined(trace):
    """Nodes of events in passes that have no definition."""
    return {
        event.node
        for event in trace.events()
        if event.task >= 0 and event.node >= 0 and event.node not in trace.nodes
    }


@pytest.mark.parametrize("flush_every", [1, 2, 7, 1000])
def test_odd_steps_are_whole_and_the_trace_is_sound(make_steps, flush_every):
    steps = make_steps(keep_odd=2)
    durations = [10_000] * 60
    durations[17], durations[44] = 90_000, 0
    steps.run(durations, flush_every=flush_every)
    trace = steps.trace()

    assert {0, 17, 44} <= set(trace.tasks)
    assert len(trace.tasks) <= 5
    assert judge(trace).violations == ()
    assert undefined(trace) == set()
    assert trace.losses.is_complete
    assert set(trace.columns["step_begun"]["step"].tolist()) == {*trace.tasks, 60}
    assert len(trace.nodes) == 20 * len(trace.tasks)


def test_the_file_says_how_many_steps_it_left_out(make_steps):
    steps = make_steps(keep_odd=1)
    steps.run([10_000_000] * 50)
    trace = steps.trace()

    told = trace.header.scope.kept_steps
    assert (told.keep, told.total, told.kept) == (1, 50, len(trace.tasks))
    assert told.median_ns == pytest.approx(10_000_000, rel=0.01)
    (words,) = trace.header.scope.in_words()
    assert words.startswith(f"only {told.kept} of 50 steps that ended: the 1 farthest")


def test_the_step_that_goes_on_is_there(make_steps):
    steps = make_steps(keep_odd=1)
    steps.run([10] * 30)
    steps.engine.backward(30, 5, first_id=30_000)
    trace = steps.trace()

    assert trace.tasks[-1] == 30
    assert undefined(trace) == set()


def test_a_pass_that_a_step_ends_inside_of_is_not_torn(make_steps):
    steps = make_steps(keep_odd=1)
    steps.run([10] * 20)
    push = steps.engine._push

    def end_within(task, node, pushed_by):
        push(task, node, pushed_by)
        if node.sequence_nr == 4:
            steps.end(90_000)
            steps.recorder.flush()

    steps.engine._push = end_within
    steps.engine.backward(20, 8, first_id=20_000)
    steps.engine._push = push
    steps.end(10)
    steps.run([10] * 20)
    trace = steps.trace()

    assert 20 in trace.tasks
    assert judge(trace).violations == ()
    assert undefined(trace) == set()
    assert {20, 21} <= set(trace.columns["step_begun"]["step"].tolist())


def test_space_is_bounded_and_the_oddest_step_outlives_the_others(make_steps):
    steps = make_steps(keep_odd=50, ring="40 kB")
    durations = [10_000 + number for number in range(400)]
    durations[99] = 900_000
    steps.run(durations)
    frames = []
    steps.recorder.save(frames.extend)
    data = b"".join(frames)

    assert len(data) < 60_000
    assert 99 in parse_trace(data).tasks
    assert judge(parse_trace(data)).violations == ()
