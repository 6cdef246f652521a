"""Garbage collection strikes in the middle of a pass and calls back (F21, F22)."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.backends.device import CPU
from gradviz.capture.session import record
from gradviz.engine import AccumulateGrad, Engine
from gradviz.errors import EngineError
from tests.faults.scene import (
    DEVICES,
    PLACES,
    Call,
    Leaf,
    Scene,
    assert_works_here,
    nothing,
    run,
    run_at,
)


@pytest.fixture(autouse=True)
def _own_collector() -> Iterator[None]:
    """The test's own threshold, and no garbage but what it makes."""
    outer = gc.get_threshold()
    gc.collect()
    yield
    gc.set_threshold(*outer)


class Cyclic:
    """Only the collector frees it; then it calls the engine."""

    def __init__(self, engine: Engine, outcomes: list[str]) -> None:
        self.itself = self
        self.engine = engine
        self.outcomes = outcomes

    def __del__(self) -> None:
        leaf = Leaf()
        try:
            run(self.engine, Call(nothing, AccumulateGrad(leaf)), 2)
        except EngineError:
            self.outcomes.append("refused")
        else:
            assert leaf.grad == 2
            self.outcomes.append("works")


@pytest.mark.parametrize("threshold", [1, 2, 3, 4, 5, 7, 11, 50])
@pytest.mark.parametrize("is_recording", [False, True], ids=["", "recording"])
def test_a_finaliser_that_calls_backward_never_hangs(
    engine: Engine, threshold: int, is_recording: bool
):
    """F21: wherever it strikes it runs or is refused, and the pass is exact."""
    outcomes: list[str] = []
    Scene(engine).run()

    def run_scenes() -> None:
        for _ in range(10):
            scene = Scene(engine, lambda name: Cyclic(engine, outcomes) and None)
            scene.run()
            scene.check()

    gc.set_threshold(threshold, 1, 1)
    if is_recording:
        with record():
            run_scenes()
    else:
        run_scenes()
    gc.set_threshold(10_000)
    gc.collect()

    assert len(outcomes) >= 10
    assert set(outcomes) <= {"works", "refused"}


SETS_VARIABLES = """
import contextvars, gc
from gradviz.modes import assign

variables = [contextvars.ContextVar(f"v{number}") for number in range(300)]


class Cyclic:
    def __init__(self):
        self.itself = self

    def __del__(self):
        for one in variables[::7]:
            one.set(object())


gc.collect()
gc.freeze()
for threshold in range(2, 7):
    gc.set_threshold(threshold, 1, 1)
    for number in range(2000):
        Cyclic()
        assign(variables[number % 300], object())
print("survived")
"""


def test_a_finaliser_may_set_what_is_just_being_set():
    """F21: up to Python 3.11 the process crashed; see Note [Contexts and collections].

    In a process of its own.
    """
    command = [sys.executable, "-c", SETS_VARIABLES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("survived\n", 0)


@pytest.mark.parametrize("threshold", [1, 3, 7])
def test_a_weak_reference_whose_callback_calls_backward_never_hangs(
    engine: Engine, threshold: int
):
    """F21."""
    outcomes: list[str] = []
    references: list[Any] = []

    def call(reference: object) -> None:
        try:
            run(engine, Call(nothing))
        except EngineError:
            outcomes.append("refused")
        else:
            outcomes.append("works")

    def touch(name: str) -> None:
        leaf = Leaf()
        leaf.grad = leaf
        references.append(weakref.ref(leaf, call))

    Scene(engine).run()
    gc.set_threshold(threshold, 1, 1)
    for _ in range(10):
        scene = Scene(engine, touch)
        scene.run()
        scene.check()
    gc.set_threshold(10_000)

    assert len(outcomes) >= 10


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_whose_last_reference_goes_may_call_backward(
    engine: Engine, place: str
):
    """F22: the engine lets go of gradients where no lock of its own is held."""
    outcomes: list[str] = []
    threads: list[threading.Thread] = []

    class Gradient(int):
        def __del__(self) -> None:
            threads.append(threading.current_thread())
            try:
                run(engine, Call(nothing, device=DEVICES[1]))
            except EngineError:
                outcomes.append("refused")
            else:
                outcomes.append("works")

    device = DEVICES[0] if place == "device" else CPU
    last = Call(lambda: threads.append(threading.current_thread()), device=device)
    run_at(engine, place, lambda: (Gradient(5),), last)

    assert outcomes == ["works"]
    assert threads[0] is threads[1]


@pytest.mark.parametrize("place", PLACES)
def test_a_graph_whose_last_reference_goes_may_call_backward(
    engine: Engine, place: str
):
    """F22: on the thread of a node that drops it."""
    outcomes: list[str] = []

    class Dying(Call):
        def __del__(self) -> None:
            run(engine, Call(nothing, device=DEVICES[1]))
            outcomes.append("works")

    graphs = [Call(nothing, Dying(nothing))]

    run_at(engine, place, graphs.clear)

    assert outcomes == ["works"]
    assert_works_here(engine)
