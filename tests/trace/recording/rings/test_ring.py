"""Events that a ring forgets, and definitions that it keeps for the others."""

import itertools

import numpy as np
import pytest

from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import Mark, NodeStarted, TaskBegun
from gradviz.trace.format.frames import FrameType
from gradviz.trace.format.kept_events import scope_of
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.probe import Model, ModelParameter
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.buffer import Taken
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.rings.ring_writer import in_slices
from gradviz.trace.recording.sink import MemorySink
from tests.trace.reports import begin_pass


class RingBench:
    """A flight recorder of a small engine; it writes a round when it is told to."""

    def __init__(self, engine, ring, **asked):
        scope = scope_of(ring=ring, **asked)
        self.recorder = Recorder(MemorySink(), scope=scope, flush_every_s=None)
        self.engine = engine(self.recorder)

    def data(self):
        frames = []
        self.recorder.save(frames.extend)
        return b"".join(frames)

    def trace(self):
        return parse_trace(self.data())


@pytest.fixture
def make_ring(bench):
    rings = []

    def make(ring, **asked):
        rings.append(RingBench(type(bench.engine), ring, **asked))
        return rings[-1]

    yield make
    for one in rings:
        one.recorder.close()


def passes(ring, tasks, *, length=20, flush_every=1):
    for task in tasks:
        ring.engine.backward(task, length, first_id=1000 * task)
        if task % flush_every == 0:
            ring.recorder.flush()


def flush_often(ring):
    for _ in range(3):
        ring.recorder.flush()


def undefined(trace):
    """Nodes of events in passes that have no definition."""
    return {
        event.node
        for event in trace.events()
        if event.task >= 0 and event.node >= 0 and event.node not in trace.nodes
    }


def test_a_ring_with_room_for_all_events_holds_a_whole_trace(make_ring):
    ring = make_ring("1 MB")
    passes(ring, range(5))
    trace = ring.trace()

    assert trace.tasks == (0, 1, 2, 3, 4)
    assert trace.losses.is_complete
    assert judge(trace).violations == ()
    assert trace.num_events == ring.recorder.counts.events


@pytest.mark.parametrize("flush_every", [1, 7, 1000])
def test_a_full_ring_drops_the_oldest_passes(make_ring, flush_every):
    ring = make_ring("20 kB")
    passes(ring, range(150), flush_every=flush_every)
    data = ring.data()
    trace = parse_trace(data)

    assert 10_000 < len(data) < 24_000
    assert trace.tasks == tuple(range(150 - len(trace.tasks), 150))
    assert len(trace.tasks) > 10
    assert judge(trace).violations == ()
    assert undefined(trace) == set()


def test_it_says_how_much_was_overwritten(make_ring):
    ring = make_ring("20 kB")
    passes(ring, range(200))
    trace = ring.trace()

    assert not trace.losses.is_complete
    assert trace.losses.problems == ()
    assert trace.num_events + trace.losses.overwritten == ring.recorder.counts.events


def test_models_stay_however_long_ago_they_were_defined(make_ring, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.rings.ring._FEW", 10)
    ring = make_ring("20 kB")
    weight = ModelParameter(("Net.weight",), (2, 3), "float32", "cpu", True)
    ring.recorder.model_defined(Model("Net", (weight,), 1))
    for number in range(300):
        ring.recorder.mark(f"another text {number}")
        ring.engine.backward(number, 20, first_id=1000 * number)
        ring.recorder.flush()
    trace = ring.trace()

    assert trace.losses.overwritten
    (parameter,) = trace.models["Net"].parameters
    assert (parameter.names, parameter.dtype) == (("Net.weight",), "float32")


def test_a_ring_does_not_grow_with_the_number_of_passes(make_ring):
    ring = make_ring("20 kB")
    sizes = []
    for begin in range(0, 400, 100):
        passes(ring, range(begin, begin + 100), flush_every=5)
        sizes.append(ring.recorder._writer._ring.size)

    assert max(sizes) < 30_000


def test_a_pass_under_way_keeps_its_names_however_long_ago_it_began(make_ring):
    ring = make_ring("20 kB")
    probe = ring.recorder
    slow = ring.engine.chain(3, first_id=10**6)
    begin_pass(probe, 10**6)
    probe.nodes_defined(slow)
    passes(ring, range(100))
    probe.node_started(10**6, slow[1].id)
    trace = ring.trace()

    assert 10**6 not in trace.tasks
    assert trace.nodes[slow[1].id].name == "Node1"


def test_nodes_that_are_placed_at_the_end_of_a_long_pass_keep_their_place(make_ring):
    ring = make_ring("20 kB")
    probe = ring.recorder
    slow = ring.engine.chain(3, first_id=10**6)
    begin_pass(probe, 10**6)
    probe.nodes_defined(slow)
    passes(ring, range(100))
    flush_often(ring)  # so that no other pass keeps the definitions
    probe.nodes_placed([node._replace(module_path="Net.first") for node in slow])
    probe.flush()
    probe.node_started(10**6, slow[1].id)
    probe.task_completed(10**6)
    flush_often(ring)
    passes(ring, range(100, 102))
    trace = ring.trace()

    assert 100 in trace.tasks
    assert trace.nodes[slow[1].id].module == "Net.first"


def test_a_graph_that_runs_again_is_defined_again(make_ring):
    """Its first definition was overwritten, and a pass of its own comes much later."""
    ring = make_ring("20 kB")
    ring.engine.backward(0, 3, first_id=7)
    ring.recorder.flush()
    passes(ring, range(1, 100))
    ring.engine.backward(1000, 3, first_id=7)
    trace = ring.trace()

    assert trace.tasks[-1] == 1000
    assert undefined(trace) == set()


def test_texts_that_nothing_refers_to_are_forgotten(make_ring, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.rings.ring._FEW", 50)
    monkeypatch.setattr("gradviz.trace.format.strings._MAX_KNOWN", 20)
    ring = make_ring("2 kB")
    ring.recorder._writer._ring._num_unasked = 50
    for number in range(3000):
        ring.recorder.mark(f"number {number}")
        if number % 10 == 0:
            ring.recorder.flush()
    trace = ring.trace()

    texts = [event.text for event in trace.events() if isinstance(event, Mark)]
    assert texts == [f"number {one}" for one in range(3000 - len(texts), 3000)]
    assert len(trace.strings) < 1000


def test_events_that_were_dropped_stay_told(make_ring, monkeypatch):
    ring = make_ring("20 kB")
    ring.recorder._local.buffer.drop()
    ring.engine.backward(0)

    assert ring.trace().losses.dropped == ring.recorder.counts.dropped > 0


def test_it_goes_with_filters(make_ring):
    ring = make_ring("20 kB", only="Node3", events="node_*")
    passes(ring, range(100))
    trace = ring.trace()

    started = [one for one in trace.events() if isinstance(one, NodeStarted)]
    assert len(started) == len(trace.tasks) > 10
    assert {trace.nodes[one.node].name for one in started} == {"Node3"}


def test_slices_are_stretches_of_time_and_hold_every_row():
    random = np.random.default_rng(3)
    taken, rows = [], []
    for thread in range(3):
        kinds = {}
        for kind in (TaskBegun, NodeStarted):
            width = LAYOUTS[kind].width
            times = np.sort(random.integers(0, 10_000, 200)).tolist()
            kinds[kind] = [n for t in times for n in (t, *range(1, width))]
            rows += [(thread, kind, time) for time in times]
        taken.append(Taken(thread, kinds, 0))

    slices = [
        sorted(
            (time, one.thread, kind.__name__)
            for one in piece
            for kind in one.rows
            for time in one.rows[kind][:: LAYOUTS[kind].width]
        )
        for piece in in_slices(taken, LAYOUTS, 600)
    ]

    assert len(slices) > 5
    assert [row for piece in slices for row in piece] == sorted(
        (t, n, kind.__name__) for n, kind, t in rows
    )
    assert all(
        before[-1][0] < after[0][0] for before, after in itertools.pairwise(slices)
    )


def test_a_row_before_an_older_one_is_in_some_slice():
    taken = [Taken(0, {Mark: [n for t in (5, 1, 9, 2) for n in (t, -1, -1, 0)]}, 0)]

    times = [
        time
        for piece in in_slices(taken, LAYOUTS, 4)
        for one in piece
        for time in one.rows[Mark][::4]
    ]
    assert sorted(times) == [1, 2, 5, 9]


def test_the_frames_are_numbered_as_those_of_any_trace(make_ring, frames_of):
    ring = make_ring("20 kB")
    passes(ring, range(100))
    kinds = [frame.type for frame in frames_of(ring.data())]

    assert kinds[0] == FrameType.HEADER
    assert kinds[-2:] == [FrameType.ANCHOR, FrameType.CLOSED]
    assert kinds == sorted(kinds, key=lambda kind: kind not in (1, 2))
