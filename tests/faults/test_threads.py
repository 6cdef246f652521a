"""Threads that cannot be started, and threads that others throw errors into (F11)."""

import ctypes
import threading

import pytest

from gradviz.engine import AccumulateGrad, Engine
from gradviz.engine.sync import Threads
from gradviz.errors import EngineError
from tests.engine.nodes import start_thread
from tests.faults.scene import (
    DEVICES,
    PATIENCE_SECONDS,
    Call,
    Leaf,
    assert_works,
    new_engine,
    nothing,
    run,
    run_at,
)
from tests.faults.strikes import Struck
from tests.faults.striking import Strike, asynchronous


class FewThreads(Threads):
    """A system that refuses a thread after the first `num_allowed`."""

    def __init__(self, num_allowed: int) -> None:
        self.num_allowed = num_allowed

    def spawn(self, target, name):
        if not self.num_allowed:
            raise RuntimeError("can't start new thread")
        self.num_allowed -= 1
        super().spawn(target, name)


@pytest.mark.parametrize("num_allowed", [0, 1])
def test_a_device_thread_that_cannot_start_is_an_error_and_may_start_later(
    num_allowed: int,
):
    """F11: with one of two threads running already, too."""
    system = FewThreads(num_allowed)
    engine = new_engine(sync=system)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        run(engine, Call(nothing, Call(nothing, device=DEVICES[1])))
    run(engine, Call(nothing))
    system.num_allowed = 100

    assert_works(engine)
    engine.stop()


def test_a_pool_thread_that_cannot_start_is_an_error_and_may_start_later():
    """F11: raised by the innermost backward, through all that wait for it."""
    system = FewThreads(0)
    engine = new_engine(sync=system)

    with pytest.raises(RuntimeError, match="can't start new thread"):
        run_at(engine, "pool", nothing)
    run(engine, Call(nothing))
    system.num_allowed = 100

    assert_works(engine)
    engine.stop()


@pytest.mark.parametrize("place", ["device", "pool"])
def test_an_error_thrown_into_a_node_is_the_nodes_error(engine: Engine, place: str):
    """F11: it fails its pass, as one that the node raises, and the thread lives on."""
    threads: list[threading.Thread] = []

    class Thrown(BaseException):
        pass

    def throw() -> None:
        threads.append(threading.current_thread())
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(threading.get_ident()), ctypes.py_object(Thrown)
        )
        for _ in range(1_000_000):
            pass

    with pytest.raises(Thrown):
        run_at(engine, place, throw)
    run_at(engine, place, lambda: threads.append(threading.current_thread()))

    assert threads[0] is threads[1]


def test_an_error_thrown_into_a_device_thread_that_sleeps_fails_what_it_wakes_for(
    engine: Engine,
):
    """F11: a task that was lost is not waited for, and its cause is told."""
    threads: list[int] = []
    node = Call(lambda: threads.append(threading.get_ident()), device=DEVICES[0])
    run(engine, node)

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(threads[0]), ctypes.py_object(KeyError)
    )
    with pytest.raises(EngineError, match="device 0 was struck by KeyError") as caught:
        run(engine, node)
    run(engine, node)

    assert isinstance(caught.value.__cause__, KeyError)
    assert threads == [threads[0]] * 2


def test_a_device_thread_that_is_struck_fails_the_passes_that_need_it(engine: Engine):
    """F11: the one it works for, the one that waits for it, and no other."""
    is_running, may_end = threading.Event(), threading.Event()
    leaf = Leaf()
    strike = Strike(300, lambda: asynchronous(Struck))

    def hold() -> None:
        """Until the second pass waits in the queue; then count bytecodes."""
        is_running.set()
        assert may_end.wait(PATIENCE_SECONDS)
        strike.arm()

    def wait_for_the_second() -> None:
        queue = next(iter(engine._queues))
        while not len(queue):
            threading.Event().wait(0.001)
        may_end.set()

    elsewhere = Call(wait_for_the_second, AccumulateGrad(leaf), device=DEVICES[1])
    passes = [
        start_thread(lambda: run(engine, Call(hold, Call(nothing), device=DEVICES[0]))),
        start_thread(lambda: run(engine, elsewhere)),
    ]
    assert is_running.wait(PATIENCE_SECONDS)
    passes.append(start_thread(lambda: run(engine, Call(nothing, device=DEVICES[0]))))
    errors = [one.exception(PATIENCE_SECONDS) for one in passes]

    assert "device 0 was struck by Struck" in str(errors[0])
    assert errors[1] is None
    assert "device 0 was struck by Struck" in str(errors[2])
    assert leaf.grad == 1
