import errno
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from gradviz.capture import flight_recorder, session
from gradviz.capture.session import (
    Recording,
    record,
    start_from_environment,
    start_recording,
)
from gradviz.engine import Edge, Engine, Node
from gradviz.errors import TraceError, UserError
from gradviz.trace import probe
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.events import Mark, NodeStarted, StepBegun
from gradviz.trace.reading.reader import load_trace
from gradviz.trace.recording.sink import FileSink


class Double(Node):
    def apply(self, grad):
        return (2 * grad,)


class Stop(Node):
    def apply(self, grad):
        return ()


class Fail(Node):
    def apply(self, grad):
        raise ValueError("boom")


def backward(length=2, last=Stop, engine=None):
    node = last()
    for _ in range(length - 1):
        node = Double([Edge(node)])
    (engine or Engine()).execute([Edge(node)], [np.ones(2)])


def names(trace):
    """The names of the nodes in the order in which they started."""
    return [
        trace.nodes[event.node].name
        for event in trace.events()
        if isinstance(event, NodeStarted)
    ]


def test_a_recording_in_memory_holds_what_happened():
    with record() as recording:
        backward()

    assert names(recording.trace) == ["Double", "Stop"]
    assert recording.trace.path is None
    assert recording.trace.losses.is_complete


def test_a_recording_in_a_file_can_be_loaded(tmp_path):
    with record(tmp_path / "x.gvt") as recording:
        backward()

    trace = load_trace(tmp_path / "x.gvt")
    assert names(trace) == ["Double", "Stop"]
    assert recording.path == trace.path == tmp_path / "x.gvt"
    assert list(recording.events()) == list(trace.events())


def test_a_path_may_be_text(tmp_path):
    with record(str(tmp_path / "x.gvt")):
        backward()

    assert load_trace(str(tmp_path / "x.gvt")).tasks


def test_nodes_say_which_line_made_them():
    with record() as recording:
        node = Stop()
        line = sys._getframe().f_lineno - 1
        Engine().execute([Edge(node)], [np.ones(2)])

    assert recording.trace.nodes[node.id].location == f"{__file__}:{line}"


def test_passes_outside_of_a_recording_are_not_recorded():
    backward(5)
    with record() as recording:
        backward(2)
    backward(5)

    assert len(recording.trace.tasks) == 1


def test_nothing_listens_after_the_block():
    with record():
        assert probe.current is not None

    assert probe.current is None


def test_a_program_that_raises_leaves_its_trace(tmp_path):
    with pytest.raises(ValueError, match="boom"), record(tmp_path / "x.gvt"):
        backward(3, Fail)

    trace = load_trace(tmp_path / "x.gvt")
    assert names(trace) == ["Double", "Double", "Fail"]
    assert trace.losses.is_complete


def test_recordings_may_be_nested():
    with record() as outer:
        backward(1)
        with record() as inner:
            backward(2)
        backward(3)

    assert [len(one.trace.tasks) for one in (outer, inner)] == [3, 1]
    assert names(inner.trace) == ["Double", "Stop"]


def test_recordings_may_overlap():
    first = record()
    backward(1)
    second = record()
    backward(2)
    first.close()
    backward(3)
    second.close()

    assert [len(names(one.trace)) for one in (first, second)] == [3, 5]


def test_every_thread_is_heard():
    with record() as recording:
        threads = [threading.Thread(target=backward) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(recording.trace.tasks) == 3
    assert len({event.thread for event in recording.events() if event.task >= 0}) == 3


def test_a_recording_begun_inside_a_backward_hears_the_backwards_inside_it():
    class Nest(Node):
        def apply(self, grad):
            with record() as self.recording:
                backward(2)
            return ()

    with record() as outer:
        nest = Nest()
        Engine().execute([Edge(nest)], [np.ones(2)])

    assert names(nest.recording.trace) == ["Double", "Stop"]
    assert names(outer.trace) == ["Nest", "Double", "Stop"]


def test_a_recording_closed_inside_a_backward_is_cut_off_there():
    recording = record()

    class Close(Node):
        def apply(self, grad):
            recording.close()
            return ()

    Engine().execute([Edge(Close())], [np.ones(2)])

    assert names(recording.trace) == ["Close"]
    assert judge(recording.trace).violations == ()


def test_marks_and_steps_are_where_they_were_made():
    with record() as recording:
        recording.step()
        backward()
        recording.mark("half way")
        recording.step()
        backward()

    notes = [one for one in recording.events() if isinstance(one, Mark | StepBegun)]
    assert [getattr(one, "step", None) for one in notes] == [0, None, 1]
    assert notes[1].text == "half way"


def test_marks_after_the_end_go_to_nobody():
    with record() as recording:
        pass
    recording.mark("late")
    recording.step()

    assert recording.trace.num_events == 0


def test_counts_say_how_much_was_recorded():
    with record() as recording:
        backward(3)
        backward(2)

    counts = recording.counts
    assert counts == (2, 5, recording.trace.num_events, 0)


def test_a_recording_of_nothing_is_a_whole_trace(tmp_path):
    with record(tmp_path / "x.gvt") as recording:
        pass

    assert recording.counts == (0, 0, 0, 0)
    assert load_trace(tmp_path / "x.gvt").losses.is_complete


def test_a_trace_is_there_when_the_recording_is_over():
    with record() as recording, pytest.raises(RuntimeError, match="goes on"):
        _ = recording.trace

    assert recording.trace is recording.trace


def test_flushed_events_are_in_the_file_before_the_recording_ends(tmp_path):
    with record(tmp_path / "x.gvt") as recording:
        backward()
        recording.flush()
        assert names(load_trace(tmp_path / "x.gvt")) == ["Double", "Stop"]


def test_an_existing_file_is_refused_and_nothing_is_installed(tmp_path):
    (tmp_path / "x.gvt").write_text("precious")

    with pytest.raises(UserError, match="exists"):
        record(tmp_path / "x.gvt")
    assert (tmp_path / "x.gvt").read_text() == "precious"
    assert probe.current is None


def test_a_disk_that_takes_no_header_is_told(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FileSink, "write", full)

    with pytest.raises(UserError, match="No space left"):
        record(tmp_path / "x.gvt")
    assert probe.current is None


def test_force_replaces_a_file(tmp_path):
    (tmp_path / "x.gvt").write_text("old")
    with record(tmp_path / "x.gvt", force=True):
        backward()

    assert load_trace(tmp_path / "x.gvt").tasks


def test_a_recording_that_was_replaced_says_so(tmp_path):
    path = tmp_path / "x.gvt"
    with record(path) as first:
        backward()
    with record(path, force=True) as second:
        backward()
        backward()

    with pytest.raises(TraceError, match="holds another recording by now"):
        first.events()
    assert len(second.trace.tasks) == 2


def test_a_recording_whose_file_is_removed_says_so_and_the_program_goes_on(tmp_path):
    path = tmp_path / "x.gvt"
    recording = start_recording(path)
    path.unlink()
    with pytest.warns(RuntimeWarning, match="removed or replaced"):
        recording.close()

    assert isinstance(recording.failure, FileNotFoundError)


def test_recordings_of_many_threads_hear_their_passes_and_leave_nobody(tmp_path):
    start = threading.Barrier(8)
    found = []

    def work():
        start.wait(30)
        for _ in range(8):
            with record() as recording:
                backward()
            found.append(len(recording.trace.tasks))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(found) == 64
    assert min(found) >= 1
    assert probe.current is None


def test_closing_twice_is_closing_once():
    recording = record()
    recording.close()
    recording.close()

    assert recording.trace.losses.is_complete


def test_a_listener_for_closed_recordings_hears_of_each_once():
    heard = []
    session.after_close.append(heard.append)
    try:
        with record() as recording:
            pass
        recording.close()
    finally:
        session.after_close.remove(heard.append)

    assert heard == [recording]


def test_a_recording_says_what_it_is(tmp_path):
    with record(tmp_path / "x.gvt") as recording:
        assert repr(recording) == f"<Recording {str(tmp_path / 'x.gvt')!r}: open>"

    assert repr(recording).endswith("closed>")
    assert isinstance(recording, Recording)


@pytest.mark.parametrize("value", ["", "0"])
def test_the_environment_asks_for_nothing(monkeypatch, value):
    monkeypatch.setenv("GRADVIZ_TRACE", value)

    assert start_from_environment() is None


def test_the_environment_names_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("GRADVIZ_TRACE", str(tmp_path / "x.gvt"))
    with start_from_environment():
        backward()

    assert load_trace(tmp_path / "x.gvt").tasks


def test_the_environment_asks_for_a_file_named_after_the_program(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["/somewhere/my train.py"])
    monkeypatch.setenv("GRADVIZ_TRACE", "1")
    with start_from_environment():
        backward()

    assert load_trace(f"gradviz-my_train.{os.getpid()}.gvt").tasks


def test_a_path_in_the_environment_that_cannot_be_written_warns(monkeypatch, tmp_path):
    monkeypatch.setenv("GRADVIZ_TRACE", str(tmp_path / "no" / "x.gvt"))

    with pytest.warns(RuntimeWarning, match="GRADVIZ_TRACE=.*No such file"):
        assert start_from_environment() is None


@pytest.mark.breaks_lifecycle
def test_the_fixture_of_all_tests_looks_at_this_recording(request):
    with record() as recording:
        probe.current.node_started(0, 1)

    assert judge(recording.trace).violations


def test_reading_a_trace_needs_no_engine(tmp_path):
    with record(tmp_path / "x.gvt"):
        backward()
    program = """
        import sys
        from gradviz.trace.reading.reader import load_trace
        assert load_trace(sys.argv[1]).tasks
        parts = ("engine", "tensors", "ops", "backends", "capture")
        print([part for part in parts if f"gradviz.{part}" in sys.modules])
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), tmp_path / "x.gvt"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_a_program_may_change_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with record("x.gvt") as plain, record("ring.gvt", ring="1 MB") as ring:
        os.chdir(elsewhere)
        Engine().execute([Edge(Stop())], [np.ones(2)])

    assert (plain.path, ring.path) == (tmp_path / "x.gvt", tmp_path / "ring.gvt")
    assert plain.path.exists()
    assert ring.path.exists()
    assert not list(elsewhere.iterdir())
    assert len(plain.trace.tasks) == 1


def test_a_full_disk_leaves_no_empty_file(tmp_path, monkeypatch):
    def full(sink, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FileSink, "write", full)

    with pytest.raises(UserError, match="No space left"):
        record(tmp_path / "x.gvt")
    assert not list(tmp_path.iterdir())


def test_a_ring_that_a_full_disk_does_not_take_says_so(tmp_path, monkeypatch):
    def full(*args, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(flight_recorder, "write_whole", full)

    with (
        pytest.warns(RuntimeWarning, match="No space left"),
        record(tmp_path / "x.gvt", ring="1 MB") as recording,
    ):
        pass
    assert "No space left" in str(recording.failure)
