import errno
from collections import Counter

import pytest

from gradviz.trace.format.frames import FrameType
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink


def types(frames):
    return [FrameType(frame.type) for frame in frames]


def test_a_recording_of_nothing_is_a_whole_trace(bench, frames_of):
    data = bench.data()

    assert types(frames_of(data))[0] is FrameType.HEADER
    assert types(frames_of(data))[-1] is FrameType.CLOSED
    assert parse_trace(data).losses.is_complete


def test_nothing_is_written_when_nothing_happened(bench):
    bench.recorder.flush()
    written = bench.sink.contents()
    bench.recorder.flush()

    assert bench.sink.contents() == written


def test_definitions_are_written_before_what_refers_to_them(bench, frames_of):
    bench.engine.backward()
    written = types(frames_of(bench.data()))

    assert written.index(FrameType.DEFINITIONS) < written.index(FrameType.EVENTS)


def test_every_prefix_of_frames_explains_itself(bench, frames_of):
    for task in range(3):
        bench.engine.backward(task, first_id=3 * task)
        bench.recorder.mark(f"step {task}")
        bench.recorder.flush()
    data = bench.data()
    for frame in frames_of(data)[1:]:
        trace = parse_trace(data[: frame.offset])
        for event in trace.events():
            assert event.node == -1 or event.task == -1 or event.node in trace.nodes
            assert getattr(event, "text", "") != trace.strings[-1]
            assert event.thread in trace.threads


def test_a_nodes_definition_is_written_once(bench, make_node):
    for _ in range(3):
        bench.recorder.nodes_defined([make_node(1), make_node(2)])
        bench.recorder.flush()

    assert bench.recorder.counts.nodes == 2


def test_clocks_are_read_again_after_a_while(make_bench, frames_of, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.writer._ANCHOR_EVERY_NS", 5)
    bench = make_bench()
    for node in range(10):
        bench.recorder.node_started(0, node)
        bench.recorder.flush()

    counts = Counter(types(frames_of(bench.data())))
    assert 1 < counts[FrameType.ANCHOR] < counts[FrameType.EVENTS]


def test_clocks_are_read_at_the_first_round_after_their_time(frames_of, monkeypatch):
    monkeypatch.setattr("gradviz.trace.recording.writer._ANCHOR_EVERY_NS", 1_000)
    sink, times, anchors = MemorySink(), [0], []
    recorder = Recorder(sink, clock=lambda: times[-1], flush_every_s=None)
    for now in (900, 1_100, 2_000, 2_200, 3_000, 5_000, 5_900):
        times.append(now)
        recorder.flush()
        anchors.append(types(frames_of(sink.contents())).count(FrameType.ANCHOR))
    recorder.close()

    assert anchors == [0, 1, 1, 2, 2, 3, 3]
    last = types(frames_of(sink.contents()))[-2:]
    assert last == [FrameType.ANCHOR, FrameType.CLOSED]


def test_an_event_takes_few_bytes(bench):
    for task in range(40):
        bench.engine.backward(task, length=50, first_id=50 * task)
    data = bench.data()

    assert len(data) / parse_trace(data).num_events < 6


def test_frames_are_of_bounded_size(bench, frames_of):
    for node in range(100_000):
        bench.recorder.node_started(node * 2**40, node * 7919 % 104729)

    assert max(len(frame.payload) for frame in frames_of(bench.data())) < 600_000


def test_a_mark_reported_while_definitions_are_taken_is_written_with_its_text_later(
    bench,
):
    """A thread defines a text and refers to it between two steps of the writer."""
    strings = bench.recorder._strings
    take = strings.take

    def interrupted():
        taken = take()
        strings.take = take
        bench.recorder.mark("late")
        return taken

    strings.take = interrupted
    bench.recorder.mark("early")
    bench.recorder.flush()
    texts = [event.text for event in parse_trace(bench.sink.contents()).events()]
    assert texts == ["early"]

    assert [event.text for event in bench.events()] == ["early", "late"]


def test_a_writer_that_has_given_up_lets_threads_keep_nothing(bench):
    class Full(MemorySink):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    recorder = bench.recorder
    recorder._writer._sink = Full()
    recorder.node_started(0, 1)
    with pytest.warns(RuntimeWarning, match="No space left"):
        recorder.flush()
    for node in range(10):
        recorder.node_started(0, node)

    (taken,) = recorder._buffers.take()
    assert (taken.rows, taken.num_dropped) == ({}, 0)


def test_only_who_holds_the_lock_writes_frames(bench, monkeypatch):
    """Or the frames of two rounds would mix."""
    writer, held = bench.recorder._writer, []
    write = bench.sink.write

    def asked(data):
        held.append(writer._lock._is_owned())
        write(data)

    monkeypatch.setattr(bench.sink, "write", asked)
    bench.engine.backward()
    bench.recorder.flush()
    bench.engine.backward(1, first_id=10)
    bench.recorder.close()

    assert len(held) > 4
    assert all(held)
    assert not writer._lock._is_owned()
