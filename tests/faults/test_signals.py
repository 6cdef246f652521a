"""Signals: handlers that raise, that call backward, and many of them (F04, F15)."""

import signal
import threading
from collections.abc import Callable
from typing import Self

import pytest

from gradviz.engine import Engine
from gradviz.errors import EngineError
from tests.faults.programs import run_campaign, run_program
from tests.faults.scene import DEVICES, Call, calling, nothing, run, run_at
from tests.faults.strikes import call_from_handlers


class Handler:
    """What SIGUSR1 does while a test runs the engine, and not a moment longer.

    Args:
        function: Is called for each signal.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._is_active = False

    def __enter__(self) -> Self:
        self._outer = signal.signal(signal.SIGUSR1, self._handle)
        self._is_active = True
        return self

    def __exit__(self, *error: object) -> None:
        self._is_active = False
        signal.signal(signal.SIGUSR1, self._outer)

    def _handle(self, number: int, frame: object) -> None:
        if self._is_active:
            self._function()


def signal_main(is_noticed: Callable[[], bool]) -> None:
    """Send the main thread a signal until it has noticed one.

    One that comes when the thread is about to sleep interrupts nothing: Python notices
    it when the thread wakes up.
    """
    while not is_noticed():
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        threading.Event().wait(0.002)


def raising(error: BaseException) -> Callable[[], object]:
    def function() -> None:
        raise error

    return function


@pytest.mark.parametrize("is_small", [True, False], ids=["caller only", "all threads"])
def test_a_handler_may_call_backward_anywhere_or_is_refused(
    engine: Engine, is_small: bool
):
    """F15: the pass that it interrupts goes on as if nothing had happened."""
    report = call_from_handlers(engine, is_small=is_small, first=1, step=43)

    assert report.failures == []
    assert report.num_strikes > 150


def test_a_handler_that_interrupts_the_engine_is_told_so(engine: Engine):
    """F15: the caller sleeps in the engine while a device works."""
    refusals: list[str] = []

    def call() -> None:
        try:
            run(engine, Call(nothing))
        except EngineError as error:
            refusals.append(str(error))

    interrupt = calling(signal_main, lambda: bool(refusals))
    with Handler(call):
        run(engine, Call(interrupt, device=DEVICES[0]))

    assert "interrupted the engine" in refusals[0]
    assert "call backward from the program itself" in refusals[0]


def test_a_handler_that_interrupts_a_node_may_call_backward(engine: Engine):
    """F15."""
    calls: list[str] = []

    with Handler(lambda: run(engine, Call(lambda: calls.append("called")))):
        run_at(engine, "caller", calling(signal.raise_signal, signal.SIGUSR1))

    assert calls == ["called"]


def test_what_a_handler_raises_ends_the_wait_for_a_device(engine: Engine):
    """F04: the device's node ends as well, and then the call raises."""
    log: list[str] = []
    error = TimeoutError("took too long")

    def work() -> None:
        task = engine.current_graph_task
        assert task is not None
        signal_main(lambda: task.has_error.value)
        log.append("the node ended")

    with Handler(raising(error)), pytest.raises(TimeoutError) as caught:
        run(engine, Call(work, device=DEVICES[0]))

    assert caught.value is error
    assert log == ["the node ended"]


def test_a_second_interrupt_ends_the_wait_for_a_node_that_does_not_end(engine: Engine):
    """F04: the first Ctrl-C waits for it for seconds, the second one does not."""
    has_raised = threading.Event()

    def hang() -> None:
        signal_main(has_raised.is_set)

    with Handler(raising(KeyboardInterrupt())):
        try:
            with pytest.raises(KeyboardInterrupt):
                run(engine, Call(hang, device=DEVICES[0]))
        finally:
            has_raised.set()


@pytest.mark.parametrize("place", ["caller", "device", "pool"])
def test_a_ctrl_c_from_outside_interrupts_a_backward(place: str):
    """F04: the signal comes from another process, while a node is busy."""
    ended = run_program(
        f"""
        import subprocess
        engine = new_engine()
        def hold():
            subprocess.Popen(["kill", "-INT", str(os.getpid())])
            task = engine.current_graph_task
            while not task.has_error.value:
                threading.Event().wait(0.001)
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


def test_a_thousand_signals_a_second_do_no_harm():
    """F15: for a moment; for longer in `tests/stress/test_faults.py`."""
    report = run_campaign("interrupts", "alarms", 300, 0)

    assert report["failures"] == []
    assert report["delivered"] >= 300
