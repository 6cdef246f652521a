"""Deadlocks of the program's own making, which the engine reports (F20, RE8)."""

import queue
import re
import threading
from collections.abc import Iterator

import pytest

from gradviz.engine import Engine
from gradviz.testing.policy import RandomWalk
from gradviz.testing.scheduler import Scheduler, sleep
from tests.faults.scene import (
    DEVICES,
    PATIENCE_SECONDS,
    Call,
    calling,
    new_engine,
    nothing,
    run,
)


class Deadlock:
    """Two passes on two threads, each waiting for what the other one has.

    A thread holds a lock of the program's across a backward inside a backward, whose
    device works for another pass that needs the lock.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._is_broken = threading.Event()
        self.has_lock, self.is_stuck = threading.Event(), threading.Event()
        self.holder = Call(self._hold)
        self.needy = Call(self._need, device=DEVICES[0])
        self.threads = [
            threading.Thread(target=run, args=(engine, node), name=name, daemon=True)
            for name, node in (("needy", self.needy), ("holder", self.holder))
        ]

    def _need(self) -> None:
        assert self.has_lock.wait(PATIENCE_SECONDS)
        self.is_stuck.set()
        while not self._lock.acquire(timeout=0.01):
            if self._is_broken.is_set():
                return
        self._lock.release()

    def _hold(self) -> None:
        with self._lock:
            self.has_lock.set()
            assert self.is_stuck.wait(PATIENCE_SECONDS)
            run(self._engine, Call(nothing, device=DEVICES[0]))

    def begin(self) -> None:
        for thread in self.threads:
            thread.start()

    def end(self) -> None:
        self._is_broken.set()
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


@pytest.fixture
def deadlock(engine: Engine) -> Iterator[Deadlock]:
    one = Deadlock(engine)
    yield one
    engine.watch(0, str)
    one.end()


def test_a_deadlock_is_reported_by_the_watchdog(engine: Engine, deadlock: Deadlock):
    """F20: passes, who waits inside which, the queue that nobody empties, stacks."""
    reports: queue.SimpleQueue[str] = queue.SimpleQueue()
    engine.watch(0.02, reports.put)

    deadlock.begin()
    assert deadlock.is_stuck.wait(PATIENCE_SECONDS)
    report = reports.get(timeout=PATIENCE_SECONDS)
    while not ("3 passes" in report and "device 0: 1 task" in report):
        report = reports.get(timeout=PATIENCE_SECONDS)

    assert "no backward pass made progress for 0.02 s" in report
    assert re.search(r"called by holder, inside <GraphTask #\d+>", report)
    assert f"{deadlock.holder!r} of" in report
    assert f"runs {deadlock.needy!r} of" in report
    assert "in _need" in report
    assert "in _hold" in report


def watched(num_nodes: int, seconds: float) -> list[str]:
    """Return the reports of a 1 s watchdog on slow nodes, by a virtual clock."""
    reports: list[str] = []
    with Scheduler(RandomWalk(0)) as scheduler:
        engine = new_engine(sync=scheduler)
        node = Call(calling(sleep, seconds))
        for _ in range(num_nodes - 1):
            node = Call(calling(sleep, seconds), node)

        def backward() -> None:
            engine.watch(1, reports.append)
            run(engine, node)
            engine.watch(0, str)

        scheduler.run(caller=backward)
    return reports


def test_a_standstill_is_reported_once():
    (report,) = watched(num_nodes=1, seconds=100)

    assert report.startswith("gradviz: no backward pass made progress for 1 s\n1 pass")


def test_each_standstill_is_reported():
    assert len(watched(num_nodes=3, seconds=100)) == 3


def test_a_watched_engine_that_makes_progress_is_not_reported():
    assert watched(num_nodes=100, seconds=0.5) == []


def test_the_state_of_an_engine_that_hangs_can_be_asked_for(
    engine: Engine, deadlock: Deadlock
):
    """F20: by any thread, without a lock."""
    deadlock.begin()
    assert deadlock.is_stuck.wait(PATIENCE_SECONDS)

    state = engine.dump_state()

    assert f"runs {deadlock.needy!r} of" in state
    assert "in _need" in state


def test_a_lock_held_across_a_backward_inside_a_backward_is_pointed_out(
    engine: Engine,
):
    """RE8: while the inner pass waits for a device, its thread takes a sibling."""
    reports: queue.SimpleQueue[str] = queue.SimpleQueue()
    lock, sibling_runs = threading.Lock(), threading.Event()
    seen: list[str] = []

    def hold() -> None:
        inner = Call(calling(sibling_runs.wait, PATIENCE_SECONDS), device=DEVICES[0])
        with lock:
            run(engine, inner)

    def need() -> None:
        sibling_runs.set()
        while not lock.acquire(timeout=0.01):
            if not reports.empty() and "do not" in (report := reports.get()).lower():
                seen.append(report)
                return

    needy = Call(need)  # made first, so that it runs second
    holder = Call(hold)
    engine.watch(0.02, reports.put)
    run(engine, Call(nothing, needy, holder))
    engine.watch(0, str)

    assert f"runs {needy!r} of" in seen[0]
    assert f"{holder!r} of" in seen[0]
    assert "Do not hold a lock across a backward inside a backward" in seen[0]


def test_a_pass_that_waits_for_another_threads_pass_is_reported(engine: Engine):
    """F20."""
    reports: queue.SimpleQueue[str] = queue.SimpleQueue()
    may_end = threading.Event()
    other = threading.Thread(
        target=lambda: run(
            engine, Call(lambda: may_end.wait(PATIENCE_SECONDS) and None)
        ),
        name="other",
        daemon=True,
    )
    engine.watch(0.02, reports.put)

    def wait() -> None:
        other.start()
        report = reports.get(timeout=PATIENCE_SECONDS)
        while "called by other" not in report:
            report = reports.get(timeout=PATIENCE_SECONDS)
        may_end.set()
        other.join(PATIENCE_SECONDS)

    run(engine, Call(wait))
    engine.watch(0, str)

    assert not other.is_alive()
