"""Remains of passes: nothing, without the collector's help (F23)."""

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from gradviz.engine import AccumulateGrad, Engine
from tests.faults.leaking import NOISE, fail
from tests.faults.programs import run_program
from tests.faults.scene import PLACES, Leaf, nothing, run_at, wait_until

#: Counted in a process of its own, where nobody else comes and goes.
_COUNTING = "import gc; gc.disable(); from tests.faults.leaking import *\n"


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_passes_leave_no_object_behind():
    """F23: 800 that succeed and 600 that fail, on every kind of thread."""
    ended = run_program(_COUNTING + "print(growth(new_engine(), ok_and_failing, 200))")

    assert (ended.exit_code, ended.errors) == (0, "")
    assert int(ended.output) <= NOISE


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("function", [nothing, fail], ids=["works", "fails"])
@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_a_pass_is_kept_alive(
    engine: Engine, place: str, function: Callable[[], None]
):
    """F23, M4: neither by the thread that ran it nor by its queue."""
    leaf = Leaf()
    reference = weakref.ref(leaf)

    with contextlib.suppress(ValueError):
        run_at(engine, place, function, AccumulateGrad(leaf))
    del leaf

    wait_until(lambda: reference() is None)  # when its threads are idle, at the latest


def test_passes_leave_no_thread_and_no_file_behind():
    """F23."""
    ended = run_program(
        _COUNTING + "engine = new_engine()\n"
        "ok_and_failing(engine)\n"
        "before = num_system_threads(), num_files()\n"
        "for _ in range(100): ok_and_failing(engine)\n"
        "print(before == (num_system_threads(), num_files()))\n"
    )

    assert (ended.exit_code, ended.output, ended.errors) == (0, "True", "")


def test_engines_leave_no_thread_behind():
    """L13, F23: neither those of devices nor those of the pool."""
    ended = run_program(
        """
        engines = [new_engine() for _ in range(5)]
        for engine in engines:
            Scene(engine).run()
        ours = [one for one in threading.enumerate() if "autograd" in one.name]
        for engine in engines:
            engine.stop()
        for thread in ours:
            thread.join(PATIENCE_SECONDS)
        print(len(ours), sum(thread.is_alive() for thread in ours))
        """
    )

    assert (ended.exit_code, ended.output, ended.errors) == (0, "15 0", "")
