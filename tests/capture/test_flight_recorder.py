"""A recording of what happened last, and the reasons to write it down."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import gradviz
from gradviz.capture.session import record
from gradviz.engine import Edge, Engine, Node
from gradviz.errors import UserError
from gradviz.program_hooks import after_standstill
from gradviz.trace.checking.lifecycle import judge
from gradviz.trace.reading.reader import load_trace
from tests.faults.striking import Strike, interrupting


class Pass(Node):
    def apply(self, grad):
        return (grad,) * len(self.next_edges)


class Fail(Node):
    def apply(self, grad):
        raise ValueError("boom")


def backward(length=3, last=Pass):
    node = last()
    for _ in range(length - 1):
        node = Pass([Edge(node)])
    Engine().execute([Edge(node)], [np.ones(2)])


def many(number):
    for _ in range(number):
        backward()


def status(trace):
    """Return the numbers of passes of a trace that succeeded and that failed."""
    columns = trace.columns
    return columns["task_completed"].num_rows, columns["task_failed"].num_rows


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.gvt"


class TestRing:
    def test_a_short_recording_is_there_as_a_whole(self):
        with record(ring="1 MB") as recording:
            many(3)

        assert len(recording.trace.tasks) == 3
        assert recording.trace.losses.is_complete
        assert recording.trace.header.scope.ring_bytes == 10**6

    def test_of_a_long_one_the_end_is_there_and_says_so(self):
        with record(ring="20 kB") as recording:
            many(600)

        trace = recording.trace
        assert trace.tasks[-1] - trace.tasks[0] + 1 == len(trace.tasks) < 600
        assert trace.losses.overwritten == recording.counts.events - trace.num_events
        assert judge(trace).violations == ()

    def test_nothing_is_on_disk_before_there_is_a_reason(self, path):
        with record(path, ring="1 MB"):
            backward()
            assert not path.exists()

    def test_at_the_end_it_is_written(self, path):
        with record(path, ring="1 MB"):
            backward()

        assert load_trace(path).losses.is_complete

    def test_a_file_that_is_there_is_refused_at_once(self, path):
        path.write_text("mine")
        with pytest.raises(UserError, match="exists and is not overwritten"):
            record(path, ring="1 MB")

        assert path.read_text() == "mine"
        with record(path, ring="1 MB", force=True):
            assert path.read_text() == "mine"
        assert load_trace(path)

    def test_a_folder_that_is_not_there_is_refused_at_once(self, tmp_path):
        with pytest.raises(UserError, match="there is no such folder"):
            record(tmp_path / "no" / "x.gvt", ring="1 MB")

    @pytest.mark.parametrize("size", ["0", "x", "-1", "64 XB", 0, ""])
    def test_a_size_that_is_none_is_refused(self, size):
        with pytest.raises(UserError, match="not a size in bytes such as 64MB"):
            record(ring=size)

    def test_a_schedule_and_a_ring_go_together(self):
        from gradviz import schedule

        with record(ring="1 MB", schedule=schedule(wait=1, active=1)) as recording:
            for _ in range(6):
                backward()
                recording.step()

        assert len(recording.trace.tasks) == 3


class TestDump:
    def test_a_call_writes_what_there_is_and_goes_on(self, path, tmp_path):
        with record(path, ring="1 MB") as recording:
            backward()
            assert recording.dump() == path
            first = load_trace(path)
            backward()
            assert recording.dump(tmp_path / "y.gvt") == tmp_path / "y.gvt"
            backward()

        assert len(first.tasks) == 1
        assert len(load_trace(tmp_path / "y.gvt").tasks) == 2
        assert len(load_trace(path).tasks) == 1  # the end wrote nothing any more
        assert len(recording.trace.tasks) == 3

    def test_a_file_that_is_there_is_not_overwritten(self, path):
        path.write_text("mine")
        recording = record(ring="1 MB")
        with recording, pytest.raises(UserError, match="is not overwritten"):
            recording.dump(path)

        assert path.read_text() == "mine"

    def test_without_a_file_one_must_be_named(self):
        recording = record(ring="1 MB")
        with recording, pytest.raises(UserError, match="name one"):
            recording.dump()

    def test_a_recording_without_a_ring_has_nothing_to_dump(self):
        with record() as recording, pytest.raises(UserError, match="with a ring"):
            recording.dump()

    def test_a_pass_under_way_is_there_as_far_as_it_went(self, path):
        class Dumps(Node):
            def apply(self, grad):
                recording.dump(path)
                return ()

        with record(ring="1 MB") as recording:
            backward(3, Dumps)

        trace = load_trace(path)
        assert len(trace.tasks) == 1
        assert status(trace) == (0, 0)
        assert trace.losses.is_complete

    def test_one_that_fails_is_the_callers_error_and_harms_nothing(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        with record(folder / "x.gvt", ring="1 MB", dump_on=()) as recording:
            folder.rmdir()
            with pytest.raises(UserError, match="cannot write a trace to"):
                recording.dump()
            backward()

        assert len(recording.trace.tasks) == 1


class TestReasons:
    def test_an_error_that_leaves_a_backward_is_one(self, path):
        with record(path, ring="1 MB", dump_on=["exception"]):
            backward()
            with pytest.raises(ValueError, match="boom"):
                backward(2, Fail)
            assert status(load_trace(path)) == (1, 1)
            many(3)

        assert status(load_trace(path)) == (1, 1)

    def test_an_error_that_leaves_the_block_is_one(self, path):
        def work():
            with record(path, ring="1 MB", dump_on=["exception"]):
                backward()
                raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            work()

        assert status(load_trace(path)) == (1, 0)

    def test_a_block_without_errors_writes_no_file(self, path):
        with record(path, ring="1 MB", dump_on=["exception", "signal", "timeout"]):
            backward()

        assert not path.exists()

    def test_the_end_does_not_replace_what_an_error_left(self, path):
        with record(path, ring="1 MB"):
            with pytest.raises(ValueError, match="boom"):
                backward(2, Fail)
            many(3)

        assert status(load_trace(path)) == (0, 1)

    def test_a_standstill_is_one(self, path):
        with record(path, ring="1 MB"):
            backward()
            for call in after_standstill:
                call()
            assert status(load_trace(path)) == (1, 0)
        assert after_standstill == []

    def test_a_reason_that_is_none_is_refused(self, path):
        with pytest.raises(UserError, match="dump_on has 'exit', expected some of"):
            record(path, ring="1 MB", dump_on=["exit"])

    def test_a_dump_that_fails_is_a_warning_and_the_error_goes_on(self, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        with record(folder / "x.gvt", ring="1 MB", dump_on=["exception"]):
            folder.rmdir()
            with (
                pytest.warns(RuntimeWarning, match="cannot write a trace to"),
                pytest.raises(ValueError, match="boom"),
            ):
                backward(2, Fail)
            backward()


class TestSignal:
    @pytest.fixture(autouse=True)
    def handler_before(self):
        calls = []
        before = signal.signal(signal.SIGUSR1, lambda *_: calls.append(1))
        yield calls
        signal.signal(signal.SIGUSR1, before)

    def test_it_is_a_reason_and_what_was_called_before_still_is(
        self, path, handler_before
    ):
        with record(path, ring="1 MB"):
            backward()
            signal.raise_signal(signal.SIGUSR1)
            assert status(load_trace(path)) == (1, 0)

        assert handler_before == [1]
        signal.raise_signal(signal.SIGUSR1)
        assert handler_before == [1, 1]

    def test_recordings_that_end_in_any_order_leave_no_handler(
        self, tmp_path, handler_before
    ):
        first = record(tmp_path / "1.gvt", ring="1 MB", dump_on=["signal"])
        second = record(tmp_path / "2.gvt", ring="1 MB", dump_on=["signal"])
        backward()
        first.close()
        backward()
        signal.raise_signal(signal.SIGUSR1)
        second.close()

        assert not (tmp_path / "1.gvt").exists()
        assert status(load_trace(tmp_path / "2.gvt")) == (2, 0)
        assert handler_before == [1]

    def test_another_thread_may_record_and_hears_no_signal(self, path, handler_before):
        def work():
            with record(path, ring="1 MB"):
                backward()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

        assert status(load_trace(path)) == (1, 0)


def names_of_modules(folder):
    """The files of a part of the package; which are compiled, changes with the core."""
    return {path.name for path in (Path(gradviz.__path__[0]) / folder).rglob("*.py")}


def test_a_dump_may_strike_between_any_two_bytecodes(tmp_path):
    """Ctrl-C comes where gradviz runs or writes, and its handler dumps the ring."""
    dumped, places = [], set()

    def handler(*_):
        dumped.append(recording.dump(tmp_path / f"{len(dumped)}.gvt"))

    before = signal.signal(signal.SIGINT, handler)
    try:
        with record(ring="1 MB") as recording:
            for nth in range(1, 8000, 149):
                strike = Strike(nth, interrupting)
                strike.arm()
                try:
                    backward()
                    recording.flush()
                finally:
                    strike.disarm()
                places.add(strike.place.partition(":")[0])
    finally:
        signal.signal(signal.SIGINT, before)

    assert names_of_modules("engine") & places
    assert names_of_modules("trace") & places
    assert len(dumped) > 15
    for path in dumped:
        trace = load_trace(path)
        assert trace.losses.is_complete
        assert judge(trace).violations == ()


def test_a_child_of_a_fork_leaves_the_file_to_its_parent(path):
    program = textwrap.dedent("""
        import os, sys, warnings
        import numpy as np
        import gradviz as gv
        warnings.simplefilter("ignore", DeprecationWarning)

        x = gv.tensor([1.0], requires_grad=True)
        with gv.record(sys.argv[1], ring="1 MB") as recording:
            (x * x).sum().backward()
            child = os.fork()
            if child:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                assert status == 7 and not os.path.exists(sys.argv[1])
            else:
                (x * x).sum().backward()
        if not child:
            sys.exit(7)
    """)
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(load_trace(path).tasks) == 1
