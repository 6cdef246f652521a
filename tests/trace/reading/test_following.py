"""A file that grows, byte by byte if need be."""

import re

import pytest

from gradviz.errors import TraceError
from gradviz.trace.reading.following import GrowingTrace, follow
from gradviz.trace.reading.reader import load_trace, parse_trace
from gradviz.trace.recording.recorder import Recorder
from gradviz.trace.recording.sink import MemorySink
from tests.analysis.conftest import Story


@pytest.fixture
def contents():
    """A trace of several frames of events."""
    sink = MemorySink()
    recorder = Recorder(sink, flush_every_s=None)
    for step in range(5):
        recorder.step_begun(step)
        recorder.mark(f"step {step}")
        recorder.flush()
    recorder.close()
    return sink.contents()


class Growing:
    """A file, and a wait in which it gets its next piece."""

    def __init__(self, path, pieces):
        self.path = path
        self.pieces = iter(pieces)
        self.waits = 0
        path.write_bytes(b"")

    def wait(self):
        self.waits += 1
        piece = next(self.pieces, None)
        assert piece is not None, "it waits although there is nothing more to come"
        with self.path.open("ab") as file:
            file.write(piece)


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_file_followed_piece_by_piece_has_the_events_of_the_whole_file(
    size, contents, tmp_path
):
    growing = Growing(tmp_path / "growing.gvt", cut(contents, size))

    traces = list(follow(growing.path, growing.wait))

    assert [one for trace in traces for one in trace.events()] == list(
        parse_trace(contents).events()
    )
    assert traces[-1].losses == parse_trace(contents).losses
    assert all(not trace.losses.closed for trace in traces[:-1])


def test_a_file_that_is_done_needs_no_wait(contents, tmp_path):
    growing = Growing(tmp_path / "whole.gvt", [])
    growing.path.write_bytes(contents)

    (trace,) = follow(growing.path, growing.wait)

    assert growing.waits == 0
    assert trace.num_events == parse_trace(contents).num_events


def test_events_come_as_soon_as_their_frame_is_whole(contents, tmp_path):
    growing = Growing(tmp_path / "growing.gvt", cut(contents, 1))

    seen = [
        (growing.waits, trace.num_events)
        for trace in follow(growing.path, growing.wait)
    ]

    assert len(seen) > 5
    assert len({waits for waits, _ in seen}) == len(seen)


def test_damage_in_a_growing_file_is_reported_and_the_rest_is_read(contents, tmp_path):
    at = len(contents) // 2
    damaged = contents[:at] + b"?!" + contents[at + 2 :]
    growing = Growing(tmp_path / "damaged.gvt", cut(damaged, 9))

    traces = list(follow(growing.path, growing.wait))

    whole = parse_trace(damaged)
    assert not whole.losses.is_complete
    assert traces[-1].losses.damaged_bytes == whole.losses.damaged_bytes > 0
    assert sum(trace.num_events for trace in traces) == whole.num_events


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.unlink(), "removed"),
        (lambda path: path.write_bytes(b""), "cut"),
        (lambda path: (path.unlink(), path.write_bytes(b"")), "replaced"),
    ],
)
def test_a_file_that_goes_away_is_one_line(harm, words, contents, tmp_path):
    path = tmp_path / "gone.gvt"
    path.write_bytes(contents[: len(contents) // 2])
    kept = path.open("rb")  # so that its number is not used again

    with kept, pytest.raises(TraceError, match=f"{words}.* while it was followed"):
        list(follow(path, lambda: harm(path)))


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    path = tmp_path / "poem.txt"
    path.write_text("Two roads diverged")

    with pytest.raises(TraceError, match="is not a gradviz trace"):
        list(follow(path, pytest.fail))


def test_another_trace_behind_it_ends_it(contents, tmp_path):
    path = tmp_path / "two.gvt"
    path.write_bytes(contents[: contents.rindex(b"\x89GVT")] + contents)

    traces = list(follow(path, pytest.fail))

    assert "another trace begins" in traces[-1].losses.problems[0]


# --- all of a file, again and again -----------------------------------------------


def assert_same(one, other):
    assert list(one.events()) == list(other.events())
    assert one.losses == other.losses
    assert list(one.nodes.values()) == list(other.nodes.values())


@pytest.mark.parametrize("size", [11, 64, 10_000])
def test_a_growing_trace_is_at_any_time_what_its_file_holds(size, tmp_path):
    story, path = Story(), tmp_path / "growing.gvt"
    for task in range(3):
        node = story.node(task, name=f"Pass{task}Backward0")
        story.begin(task, [node], at=100 * task)
        story.take(task, node, at=(100 * task + 10, 100 * task + 20, 100 * task + 30))
        story.end(task, at=100 * task + 90)
        story.recorder.flush()
    contents = story.contents()
    growing = GrowingTrace(path)

    for end in range(size, len(contents) + size, size):
        path.write_bytes(contents[:end])
        try:
            whole = load_trace(path)
        except TraceError as error:
            with pytest.raises(TraceError, match=re.escape(str(error))):
                growing.read()
        else:
            assert_same(growing.read(), whole)


def test_events_that_come_late_are_put_in_the_order_of_time(tmp_path):
    sink, path = MemorySink(), tmp_path / "late.gvt"
    now = 1_000
    recorder = Recorder(sink, clock=lambda: now, flush_every_s=None)
    growing = GrowingTrace(path)
    for now in (5_000, 3_000, 4_000):
        recorder.mark(f"at {now}")
        recorder.flush()
        path.write_bytes(sink.contents())
        times = [one.t_ns for one in growing.read().events()]
        assert times == sorted(times)
        assert_same(growing.read(), load_trace(path))


def test_only_what_is_new_is_read(contents, tmp_path):
    path = tmp_path / "growing.gvt"
    path.write_bytes(contents[:-1])
    growing = GrowingTrace(path)
    before = growing.read()

    harmed = bytearray(contents)
    at = len(contents) // 2  # of what is known already
    harmed[at : at + 4] = b"????"
    path.write_bytes(harmed)
    assert list(growing.read().events()) == list(before.events())


@pytest.mark.parametrize("cut_at", [None, 200])
def test_another_file_in_its_place_is_read_from_its_begin(cut_at, contents, tmp_path):
    path = tmp_path / "growing.gvt"
    path.write_bytes(contents)
    growing = GrowingTrace(path)
    growing.read()

    other = MemorySink()
    recorder = Recorder(other, flush_every_s=None)
    for step in range(20):
        recorder.mark(f"another {step}")
        recorder.flush()
    path.write_bytes(other.contents() if cut_at is None else contents[:-cut_at])
    assert_same(growing.read(), load_trace(path))


def test_a_growing_trace_that_is_removed_and_comes_again_is_read(contents, tmp_path):
    path = tmp_path / "growing.gvt"
    path.write_bytes(contents)
    growing = GrowingTrace(path)
    growing.read()

    path.unlink()
    with pytest.raises(TraceError, match="there is no trace"):
        growing.read()
    path.write_bytes(contents)
    assert_same(growing.read(), load_trace(path))
