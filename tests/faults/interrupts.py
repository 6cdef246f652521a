"""A program: signals at random moments, passes that must be exact all the same (F04).

Run as ``python -m tests.faults.interrupts WHAT COUNT RECORDING [SEED]``. WHAT is

* ``interrupt``: a signal whose handler raises KeyboardInterrupt, COUNT times, each at
  some moment of a pass, and in every fifth pass another one right after it;
* ``tensors``: the same in a program of ops, custom functions, hooks and inference mode;
  what surrounds it must be as it was;
* ``alarms``: a thousand signals a second, until COUNT have come; the handler returns.

The timer's signal stands for Ctrl-C: to Python all signals are alike. It comes from
the kernel at microseconds, wherever the main thread is: in a node, a hook, a callback,
the engine's own code, or asleep while devices and the pool work.
"""

import contextlib
import faulthandler
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType

from gradviz.capture.session import record
from gradviz.engine import Engine
from gradviz.engine.tasks import outcome
from gradviz.trace.checking.lifecycle import judge
from tests.faults.programs import HANG_SECONDS
from tests.faults.scene import Scene, assert_works, assert_works_here, new_engine
from tests.faults.surroundings import (
    check,
    functions,
    inference_blocks,
    ops,
    passes,
    surroundings,
)


class Report:
    """Result of a campaign; `where` counts the places that were interrupted."""

    def __init__(self) -> None:
        self.delivered = 0
        self.where: Counter[str] = Counter()
        self.failures: list[str] = []

    def note(self, what: str, error: Exception) -> None:
        self.failures.append(f"{what}: {type(error).__name__}: {error}")


def main() -> None:
    what, count, is_recording = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    outcome.QUIESCE_NS = 10**18  # who waits for a node that has ended, hangs
    engine, report = new_engine(), Report()
    assert_works(engine)
    campaign = {"interrupt": interrupt, "tensors": tensors, "alarms": alarms}[what]
    with record() if is_recording else contextlib.nullcontext() as recording:
        campaign(engine, count, random.Random(seed), report)
    if recording is not None:
        losses = recording.trace.losses
        report.failures += [f"trace: {problem}" for problem in losses.problems]
        report.failures += map(str, judge(recording.trace).violations)
    if not report.failures:
        assert_works(engine)
        engine.stop()
    json.dump(vars(report), sys.stdout)


def interrupt(
    engine: Engine, count: int, moments: random.Random, report: Report
) -> None:
    timer = Timer()
    seconds = _seconds_of(lambda: Scene(engine).run())
    while report.delivered < count:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        scene = Scene(engine)
        first = max(1e-6, moments.uniform(0, seconds))
        interval = moments.uniform(1e-5, 1e-4) if moments.random() < 0.2 else 0
        error = timer.interrupted(scene.run, first, interval)
        if error is None:
            scene.check()
            continue
        report.delivered += 1
        report.where[_place(error.__traceback__)] += 1
        try:
            assert_works_here(engine)
        except Exception as wrong:  # noqa: BLE001 - the campaign goes on
            report.note(_place(error.__traceback__), wrong)
            engine = new_engine()
            assert_works(engine)


def tensors(engine: Engine, count: int, moments: random.Random, report: Report) -> None:
    timer, works = Timer(), (ops, functions, inference_blocks, passes)
    seconds = [_seconds_of(work) for work in works]
    before = surroundings()  # after what is set at the first use
    while report.delivered < count:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        nth = moments.randrange(len(works))
        error = timer.interrupted(works[nth], moments.uniform(1e-6, seconds[nth]), 0)
        if error is None:
            continue
        report.delivered += 1
        place = _place(error.__traceback__)
        report.where[place] += 1
        error.__traceback__ = None  # its frames hold the blocks that it has left
        try:
            check(before)
            works[nth]()
        except Exception as wrong:  # noqa: BLE001 - the campaign goes on
            report.note(place, wrong)
            return


class Timer:
    """Interrupts passes, and nothing else."""

    def __init__(self) -> None:
        self._is_armed = False
        signal.signal(signal.SIGALRM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_armed:
            raise KeyboardInterrupt

    def interrupted(
        self, work: Callable[[], None], first: float, interval: float
    ) -> KeyboardInterrupt | None:
        """Do it with an interrupt on its way, and more if `interval` is not 0."""
        interrupted = None
        self._is_armed = True
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, first, interval)
                work()
            finally:
                self._is_armed = False  # a store: no signal is noticed before it
        except KeyboardInterrupt as error:
            interrupted = error
        signal.setitimer(signal.ITIMER_REAL, 0)
        return interrupted


def _seconds_of(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    for _ in range(100):
        work()
    return (time.perf_counter() - began) / 100


def alarms(engine: Engine, count: int, moments: random.Random, report: Report) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        report.delivered += 1

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    while report.delivered < count:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        try:
            assert_works_here(engine)
        except Exception as wrong:  # noqa: BLE001 - the campaign goes on
            report.note("alarm", wrong)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _place(traceback: TracebackType | None) -> str:
    """Return the module in which a signal was noticed: that of the frame."""
    return list(_files(traceback))[-2]  # the last one is our handler


def _files(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        yield traceback.tb_frame.f_code.co_filename.rpartition("/")[2]
        traceback = traceback.tb_next


if __name__ == "__main__":
    main()
