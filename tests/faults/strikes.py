"""A program: one pass after the other, each struck a little later (F04, F11, F15).

Run as ``python -m tests.faults.strikes WHAT WHERE FIRST STEP [RECORDING]``; prints a
`Report`. WHAT and WHERE are

* ``interrupt small``, ``big`` or ``first``: Ctrl-C strikes the thread that called, in a
  pass on that thread only, in one that uses all there is, or in the first one of an
  engine, which starts all there is;
* ``call small``, ``big`` or ``first``: a signal whose handler calls backward instead;
* ``throw device``, ``pool`` or ``waiting``: an error is thrown into a thread of the
  engine, or into a device's that waits for one of the pool.

FIRST and STEP say which bytecodes of the engine are struck. With RECORDING 1 each pass
is recorded, so that the recorder is struck too, and its history must be possible.
"""

import contextlib
import faulthandler
import json
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gradviz.backends.device import CPU
from gradviz.capture.session import Recording, record
from gradviz.engine import AccumulateGrad, Engine
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.errors import EngineError
from gradviz.trace.checking.lifecycle import judge
from tests.faults.programs import HANG_SECONDS
from tests.faults.scene import (
    DEVICES,
    MAX_DEPTH,
    Call,
    Leaf,
    Scene,
    assert_devices_idle,
    assert_works,
    assert_works_here,
    calling,
    new_engine,
    nothing,
    run,
    run_at,
    run_nested,
)
from tests.faults.striking import Strike, asynchronous, interrupting


class Struck(Exception):  # noqa: N818 - what happened, and no error of anybody's
    """Thrown into a thread from outside."""


@dataclass
class Report:
    """Result of a campaign.

    Attributes:
        num_strikes: How many bytecodes were struck.
        num_raised: How many of the passes that were struck raised.
        failures: What went wrong, with the bytecode and the place that was struck.
    """

    num_strikes: int = 0
    num_raised: int = 0
    failures: list[str] = field(default_factory=list)

    def check(
        self, nth: int, strike: Strike, test: Callable[..., None], *arguments: object
    ) -> None:
        """Note whether `test` passes for a pass that was struck."""
        try:
            test(*arguments)
        except Exception as error:  # noqa: BLE001 - the campaign goes on
            what = f"{type(error).__name__}: {error}"
            self.failures.append(f"bytecode {nth}, {strike.place}: {what}")


def main() -> None:
    what, where, first, step, *recording = sys.argv[1:]
    campaign = {"interrupt": interrupt, "call": call, "throw": throw}[what]
    bytecodes = range(int(first), sys.maxsize, int(step))
    report = campaign(where, bytecodes, is_recording=recording == ["1"])
    json.dump(vars(report), sys.stdout)


def interrupt(where: str, bytecodes: Iterable[int], *, is_recording: bool) -> Report:
    """Interrupt a pass at each of `bytecodes`, until one ends before it is struck."""
    return _signal_passes(
        where,
        bytecodes,
        lambda engine: signal.default_int_handler,
        _check_interrupted,
        is_recording=is_recording,
    )


def call(where: str, bytecodes: Iterable[int], *, is_recording: bool) -> Report:
    """Run `call` with a handler that calls backward, on a device, and returns."""

    def calling_back(engine: Engine) -> Any:
        def handler(number: int, frame: object) -> None:
            leaf = Leaf()
            device = CPU if where == "small" else DEVICES[2]
            try:
                run(engine, Call(nothing, AccumulateGrad(leaf), device=device), 2)
            except EngineError:
                return
            assert leaf.grad == 2

        return handler

    return _signal_passes(
        where, bytecodes, calling_back, _check_finished, is_recording=is_recording
    )


def _signal_passes(
    where: str,
    bytecodes: Iterable[int],
    handler_for: Callable[[Engine], Any],
    check: Callable[[Engine, Scene, BaseException | None], None],
    *,
    is_recording: bool,
) -> Report:
    report = Report()
    engine = new_engine()
    for nth in bytecodes:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        signal.signal(signal.SIGINT, handler_for(engine))
        scene = Scene(engine, is_small=where == "small")
        strike = Strike(nth, interrupting)
        with _recorded(is_recording) as recording:
            error = _signalled(strike, scene)
        if not strike.place:
            break
        report.num_strikes += 1
        report.num_raised += error is not None
        report.check(nth, strike, check, engine, scene, error)
        report.check(nth, strike, _check_history, recording)
        if where == "first":
            engine.stop()
            engine = new_engine()
    if not report.failures:
        assert_works(engine)
        engine.stop()
    return report


def _recorded(
    is_recording: bool,
) -> contextlib.AbstractContextManager[Recording | None]:
    return record() if is_recording else contextlib.nullcontext()


def _check_history(recording: Recording | None) -> None:
    """Check that the recording of a pass that was struck follows the rules."""
    if recording is not None:
        assert recording.trace.losses.is_complete, recording.trace.losses
        violations = judge(recording.trace).violations
        assert not violations, f"impossible: {violations[0]}"


def _signalled(strike: Strike, scene: Scene) -> BaseException | None:
    try:
        try:
            strike.arm()
            scene.run()
        finally:
            strike.disarm()
    except BaseException as error:  # noqa: BLE001 - the campaign looks at it
        return error
    return None


def _check_interrupted(
    engine: Engine, scene: Scene, error: BaseException | None
) -> None:
    """Called while the error still holds the frames that it went through."""
    assert error is None or type(error) is KeyboardInterrupt, f"raised {error!r}"
    assert_works_here(engine)


def _check_finished(engine: Engine, scene: Scene, error: BaseException | None) -> None:
    assert error is None, f"raised {error!r}"
    scene.check()
    assert_works_here(engine)


def throw(where: str, bytecodes: Iterable[int], *, is_recording: bool) -> Report:
    """Throw an error into an engine thread at each of these bytecodes of its own.

    Stops at the pass that ends without its thread having been struck.
    """
    report = Report()
    engine = new_engine()
    for nth in bytecodes:
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        strike = Strike(nth, lambda: asynchronous(Struck))
        with _recorded(is_recording) as recording:
            outcome = _struck(engine, where, strike)
        if not strike.place:
            _settle(engine, where, strike)
            break
        report.num_strikes += 1
        report.num_raised += outcome.error is not None
        report.check(nth, strike, _check_struck, engine, where, strike, outcome)
        report.check(nth, strike, _check_history, recording)
    if not report.failures:
        assert_works(engine)
        engine.stop()
    return report


def _kind(place: str) -> str:
    return "device" if place == "waiting" else place


@dataclass
class _Outcome:
    passes: list[GraphTask] = field(default_factory=list)
    error: BaseException | None = None


def _struck(engine: Engine, place: str, strike: Strike) -> _Outcome:
    """A pass whose thread is struck at some time after its first node has begun.

    Two more nodes, one of which calls `execute`, and a leaf run on that thread.
    """
    outcome = _Outcome()
    device = CPU if place == "pool" else DEVICES[0]
    leaf = AccumulateGrad(Leaf(), device=device)
    last = Call(nothing, leaf, device=device)
    inner = Call(nothing, device=device)
    reenter = calling(run, engine, inner)
    if place == "waiting":
        reenter = calling(run_nested, engine, MAX_DEPTH, nothing, inner)
    middle = Call(reenter, last, device=device)

    def begin() -> None:
        if graph_task := engine.current_graph_task:
            outcome.passes.append(graph_task)
        strike.arm()

    try:
        run_at(engine, _kind(place), begin, middle)
    except BaseException as error:  # noqa: BLE001 - the campaign looks at it
        outcome.error = error
    return outcome


def _check_struck(
    engine: Engine, place: str, strike: Strike, outcome: _Outcome
) -> None:
    error = outcome.error
    if error is None:
        _settle(engine, place, strike)
    assert error is None or isinstance(error, Struck | EngineError), f"raised {error!r}"
    helping = [one for one in outcome.passes if one.outcome.helpers]
    assert not helping, "a thread counts as running a node that it does not run"
    assert_devices_idle(engine)
    assert_works_here(engine)


def _settle(engine: Engine, place: str, strike: Strike) -> None:
    """Let an error land that waits for a thread which sleeps; fails one pass at most.

    Until it has landed the interpreter looks for it all the time, and 3.11 does nothing
    else on a thread that is traced.
    """
    with contextlib.suppress(Struck, EngineError):
        run_at(engine, _kind(place), strike.disarm)
    run_at(engine, _kind(place), strike.disarm)


if __name__ == "__main__":
    main()
