"""Campaigns of strikes: one pass after the other, each struck a little later."""

import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Engine
from gradviz.engine.graph_task import GraphTask
from gradviz.errors import EngineError
from tests.faults.scene import (
    DEVICES,
    Call,
    Leaf,
    Scene,
    assert_devices_idle,
    assert_works_here,
    calling,
    nothing,
    run,
    run_at,
)
from tests.faults.striking import Strike, asynchronous, interrupt


class Struck(Exception):  # noqa: N818 - what happened, and no error of anybody's
    """Thrown into a thread from outside."""


@dataclass
class Report:
    """What came of a campaign.

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


def interrupt_passes(
    engine: Engine, *, is_small: bool, first: int, step: int
) -> Report:
    """Interrupt a pass at its bytecode `first`, and one at every `step`-th after it.

    For the main thread. Stops at the pass that ends without having been struck.
    """
    return _signal_passes(
        engine,
        signal.default_int_handler,
        _check_interrupted,
        is_small=is_small,
        first=first,
        step=step,
    )


def call_from_handlers(
    engine: Engine, *, is_small: bool, first: int, step: int
) -> Report:
    """Likewise, with a handler that calls backward and returns."""

    def handler(number: int, frame: object) -> None:
        leaf = Leaf()
        try:
            run(engine, Call(nothing, AccumulateGrad(leaf)), 2)
        except EngineError:
            return
        assert leaf.grad == 2

    return _signal_passes(
        engine, handler, _check_finished, is_small=is_small, first=first, step=step
    )


def _signal_passes(
    engine: Engine,
    handler: Any,
    check: Callable[[Engine, Scene, BaseException | None], None],
    *,
    is_small: bool,
    first: int,
    step: int,
) -> Report:
    report = Report()
    nth = first
    outer = signal.signal(signal.SIGINT, handler)
    try:
        while True:
            scene = Scene(engine, is_small=is_small)
            strike = Strike(nth, interrupt)
            error = _signalled(strike, scene)
            if not strike.place:
                return report
            report.num_strikes += 1
            report.num_raised += error is not None
            report.check(nth, strike, check, engine, scene, error)
            nth += step
    finally:
        signal.signal(signal.SIGINT, outer)


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


def strike_threads(engine: Engine, place: str, *, first: int, step: int) -> Report:
    """Throw an error into an engine thread at every `step`-th of its bytecodes.

    Stops at the pass that ends without its thread having been struck.
    """
    report = Report()
    nth = first
    while True:
        strike = Strike(nth, lambda: asynchronous(Struck))
        outcome = _struck(engine, place, strike)
        if not strike.place:
            _settle(engine, place, strike)
            return report
        report.num_strikes += 1
        report.num_raised += outcome.error is not None
        report.check(nth, strike, _check_struck, engine, place, strike, outcome)
        nth += step


@dataclass
class _Outcome:
    passes: list[GraphTask] = field(default_factory=list)
    error: BaseException | None = None


def _struck(engine: Engine, place: str, strike: Strike) -> _Outcome:
    """A pass whose thread is struck at some time after its first node has begun.

    Two more nodes, one of which calls `execute`, and a leaf run on that thread.
    """
    outcome = _Outcome()
    device = DEVICES[0] if place == "device" else CPU
    leaf = AccumulateGrad(Leaf(), device=device)
    last = Call(nothing, leaf, device=device)
    inner = Call(nothing, device=device)
    middle = Call(calling(run, engine, inner), last, device=device)

    def begin() -> None:
        if graph_task := engine.current_graph_task:
            outcome.passes.append(graph_task)
        strike.arm()

    try:
        run_at(engine, place, begin, middle)
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
    helping = [one for one in outcome.passes if one.helpers]
    assert not helping, "a thread counts as running a node that it does not run"
    assert_devices_idle(engine)
    assert_works_here(engine)


def _settle(engine: Engine, place: str, strike: Strike) -> None:
    """Let an error land that waits for a thread which sleeps; fails one pass at most.

    Until it has landed the interpreter looks for it all the time, and 3.11 does nothing
    else on a thread that is traced.
    """
    with contextlib.suppress(Struck, EngineError):
        run_at(engine, place, strike.disarm)
    run_at(engine, place, strike.disarm)
