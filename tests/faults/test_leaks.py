"""What passes leave behind: nothing, without the collector's help (F23)."""

import contextlib
import gc
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

from gradviz.engine import AccumulateGrad, Engine
from tests.faults.leaking import NOISE, fail, gone, growth, num_files, ok_and_failing
from tests.faults.scene import PLACES, Leaf, Scene, new_engine, nothing, run_at


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_passes_leave_no_object_behind(engine: Engine):
    """F23: 800 that succeed and 600 that fail, on every kind of thread."""
    assert growth(engine, ok_and_failing, 200) <= NOISE


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

    assert gone(reference)


def test_passes_leave_no_thread_and_no_file_behind(engine: Engine):
    """F23."""
    ok_and_failing(engine)
    threads, files = threading.active_count(), num_files()

    for _ in range(100):
        ok_and_failing(engine)

    assert threading.active_count() == threads
    assert num_files() == files


def test_engines_leave_no_thread_behind():
    """L13, F23: neither those of devices nor those of the pool."""
    before = set(threading.enumerate())
    engines = [new_engine() for _ in range(5)]
    for engine in engines:
        Scene(engine).run()
    ours = [thread for thread in threading.enumerate() if thread not in before]
    for engine in engines:
        engine.stop()
    for thread in ours:
        thread.join(20)

    assert len(ours) == 15
    assert not any(thread.is_alive() for thread in ours)
