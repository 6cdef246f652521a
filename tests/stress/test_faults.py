"""The faults of `tests/faults`, over and over."""

import sys
from pathlib import Path

import pytest

from tests.faults.exiting import LOOPS, assert_whole, looping
from tests.faults.leaking import NOISE
from tests.faults.programs import Ended, run_campaign, run_program

pytestmark = pytest.mark.stress


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="from then on Python itself crashes of some"
)
@pytest.mark.parametrize("recording", [0, 1])
@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_every_allocation_of_a_pass_fails_once(place: str, recording: int):
    """F08: what is recorded of it is possible."""
    pytest.importorskip("_testcapi", reason="the interpreter cannot be made to fail")

    report = run_campaign("allocations", place, 1, 1, recording)

    assert report["failures"] == []
    assert report["failed"] > 100


def test_twenty_thousand_passes_leave_nothing_behind():
    """F23: 11,428 that succeed and 8,571 that fail, without the collector."""
    ended = run_program(
        """
        import gc
        from tests.faults.leaking import *
        gc.disable()
        print(growth(new_engine(), ok_and_failing, 20_000 // 7))
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    assert int(ended.output) <= NOISE


@pytest.mark.parametrize("is_recording", [False, True])
@pytest.mark.parametrize("where", LOOPS)
def test_twenty_programs_end_in_silence_whatever_their_daemon_threads_do(
    where: str, is_recording: bool, tmp_path: Path
):
    """F14: the interpreter goes away wherever they happen to be."""
    for number in range(20):
        path = tmp_path / f"{number}.gvt" if is_recording else None
        program = looping(LOOPS[where], LOOPS[where], at_exit="None", path=path)
        assert run_program(program) == Ended(0, "", "")
        if path is not None:
            assert_whole(path)


@pytest.mark.parametrize("batch", range(10))
def test_two_hundred_programs_that_exit_right_after_their_threads_have_started(
    batch: int,
):
    """F14."""
    ended = run_program(
        """
        faulthandler.cancel_dump_traceback_later()  # a fork would wait for its thread
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                run_at(new_engine(), "device", nothing)
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        """
    )

    assert (ended.output.split(), ended.errors) == (["7"] * 20, "")


def test_five_hundred_forks_while_another_thread_runs_backwards():
    """F13, G14: whatever lock that thread holds at the time, the child works."""
    ended = run_program(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        engine = new_engine()
        is_over = threading.Event()
        def work():
            while not is_over.is_set():
                run(engine, Call(nothing, Call(nothing)))
        threading.Thread(target=work, daemon=True).start()
        outcomes = set()
        for _ in range(500):
            pid = os.fork()
            if pid == 0:
                signal.alarm(10)
                run(engine, Call(nothing))
                os._exit(7)
            outcomes.add(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        is_over.set()
        print(outcomes)
        """
    )

    assert (ended.output, ended.errors) == ("{7}", "")


def test_a_thousand_engines_leave_no_thread_behind():
    """L13, F23."""
    ended = run_program(
        """
        from tests.faults.leaking import *
        before = num_system_threads()
        for _ in range(1_000):
            engine = new_engine()
            ok_and_failing(engine)
            engine.stop()
        print(num_system_threads() - before)
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    assert int(ended.output) <= NOISE
