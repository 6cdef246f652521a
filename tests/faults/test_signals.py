"""Signals: handlers that raise, that call backward, and many of them (F04, F15).

Those that strike at each of the engine's bytecodes are in `test_strikes.py`.
"""

import textwrap

import pytest

from tests.faults.programs import Ended, run_campaign, run_program


def run_signaled(source: str) -> Ended:
    """Run Python source that needs `tests.faults.signaling`."""
    preamble = "from tests.faults.signaling import *\nengine = new_engine()\n"
    ending = "assert_works(engine)\nengine.stop()\n"
    return run_program(preamble + textwrap.dedent(source) + ending)


def test_a_handler_that_interrupts_the_engine_is_told_so():
    """F15: the caller sleeps in the engine while a device works."""
    ended = run_signaled(
        """
        refusals = []
        def call():
            try:
                run(engine, Call(nothing))
            except EngineError as error:
                refusals.append(str(error))

        interrupt = calling(signal_main, lambda: refusals)
        with Handler(call):
            run(engine, Call(interrupt, device=DEVICES[0]))
        print(refusals[0])
        """
    )

    assert (ended.exit_code, ended.errors) == (0, "")
    assert "interrupted the engine" in ended.output
    assert "call backward from the program itself" in ended.output


def test_a_handler_that_interrupts_a_node_may_call_backward():
    """F15."""
    ended = run_signaled(
        """
        called = Call(lambda: print("called"))
        with Handler(lambda: run(engine, called)):
            run_at(engine, "caller", calling(signal.raise_signal, signal.SIGUSR1))
        """
    )

    assert ended == Ended(0, "called", "")


def test_an_error_from_a_signal_handler_ends_the_wait_for_a_device():
    """F04: the device's node ends as well, and then the call raises."""
    ended = run_signaled(
        """
        def work():
            task = engine.current_graph_task
            signal_main(lambda: task.outcome.has_error.value)
            print("the node ended")

        try:
            with Handler(once(raising(TimeoutError("took too long")))):
                run(engine, Call(work, device=DEVICES[0]))
        except TimeoutError as error:
            print(error)
        """
    )

    assert ended == Ended(0, "the node ended\ntook too long", "")


def test_a_second_interrupt_ends_the_wait_for_a_node_that_does_not_end():
    """F04: the first Ctrl-C waits for it for long, the second one does not."""
    ended = run_signaled(
        """
        from gradviz.engine.tasks import outcome
        outcome.QUIESCE_NS = 10**18
        has_raised = threading.Event()

        try:
            with Handler(raising(KeyboardInterrupt())):
                hang = calling(signal_main, has_raised.is_set)
                run(engine, Call(hang, device=DEVICES[0]))
        except KeyboardInterrupt:
            print("raised")
        has_raised.set()
        """
    )

    assert ended == Ended(0, "raised", "")


@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_a_ctrl_c_from_outside_interrupts_a_backward(place: str):
    """F04: the signal comes from another process, while a node is busy."""
    ended = run_program(
        f"""
        import subprocess
        engine = new_engine()
        def hold():
            task = engine.current_graph_task
            with subprocess.Popen(["kill", "-INT", str(os.getpid())]):
                wait_until(lambda: task.outcome.has_error.value)
        try:
            run_at(engine, {place!r}, hold)
        except KeyboardInterrupt:
            print("interrupted")
        assert_works(engine)
        """
    )

    assert (ended.exit_code, ended.output, ended.errors) == (0, "interrupted", "")


@pytest.mark.parametrize("is_recording", [False, True], ids=["", "recording"])
def test_interrupts_at_random_moments_never_hang_nor_harm_what_follows(
    is_recording: bool,
):
    """F04: a sample; `tests/stress/test_interrupts.py` has many more."""
    report = run_campaign("interrupts", "interrupt", 50, int(is_recording))

    assert report["failures"] == []
    assert report["delivered"] == 50


@pytest.mark.parametrize("is_recording", [False, True], ids=["", "recording"])
def test_interrupts_in_a_program_of_tensors_leave_no_mode_switched(is_recording: bool):
    """F04: in ops, custom functions, hooks and inference mode."""
    report = run_campaign("interrupts", "tensors", 100, int(is_recording))

    assert report["failures"] == []
    assert report["delivered"] == 100


def test_a_thousand_signals_a_second_do_no_harm():
    """F15: for a moment; for longer in `tests/stress/test_interrupts.py`."""
    report = run_campaign("interrupts", "alarms", 300, 0)

    assert report["failures"] == []
    assert report["delivered"] >= 300
