"""The threads of devices: when they begin, what they are called, how they end."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.backends import simulated
from gradviz.engine import Engine, PyTorchSchedule
from gradviz.engine.graph.sync import THREADS, Sync, Threads
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.passes_under_way import Passes
from gradviz.engine.threads.device_threads import DeviceThreads
from gradviz.errors import EngineError
from gradviz.testing import Scheduler, Scripted, sleep
from gradviz.trace import probe
from gradviz.trace.probe import Role
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    SIM_0,
    SIM_1,
    Call,
    Listener,
    Mailbox,
    Pass,
    Sink,
    WatchingLock,
    engine_threads,
    join_all,
    new_worker,
    start_thread,
)


@pytest.fixture(autouse=True)
def _untouched_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No simulated array was ever made: other tests may have made some."""
    monkeypatch.setattr(simulated._backend, "_is_initialized", False)


@pytest.fixture
def _touched_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some simulated array was made."""
    monkeypatch.setattr(simulated._backend, "_is_initialized", True)


def started(engine: Engine, *devices: object) -> set[threading.Thread]:
    """The threads that a pass over nodes on `devices` makes the engine start."""
    before = engine_threads()
    sinks = [Sink(device=device) for device in devices]
    engine.execute([(Pass(*sinks), 0)], [1])
    return engine_threads() - before


def names(threads: set[threading.Thread]) -> list[str]:
    return sorted(thread.name for thread in threads)


def test_a_pass_on_the_cpu_starts_no_thread(engine: Engine):
    """L3, L4, G1."""
    assert started(engine) == set()


def test_a_thread_starts_when_its_device_is_first_used(engine: Engine):
    """L3, C11."""
    assert names(started(engine, SIM_0)) == ["gv_autograd_0"]
    assert started(engine, SIM_0) == set()
    assert names(started(engine, SIM_1)) == ["gv_autograd_1"]


def test_there_is_a_thread_for_every_index_up_to_the_largest(engine: Engine):
    """L4."""
    assert names(started(engine, SIM_1)) == ["gv_autograd_0", "gv_autograd_1"]


@pytest.mark.usefixtures("_touched_devices")
def test_devices_that_no_graph_uses_have_no_threads_even_if_they_hold_arrays(
    engine: Engine,
):
    """L3, L4. Differs from PyTorch, which starts them at the first backward."""
    assert started(engine) == set()


@pytest.mark.usefixtures("_touched_devices")
def test_with_the_first_device_all_devices_in_use_get_their_threads(engine: Engine):
    """L4: every index of a backend whose arrays exist."""
    assert names(started(engine, SIM_0)) == ["gv_autograd_0", "gv_autograd_1"]


def test_threads_are_daemons(engine: Engine):
    """L7: they never keep the process alive."""
    assert all(thread.daemon for thread in started(engine, SIM_1))


def test_they_run_before_the_first_node_is_pushed(engine: Engine):
    """L4: the wait that PyTorch needs too (#39194)."""
    listener = Listener()

    with probe.installed(listener):
        started(engine, SIM_1)

    order = [
        method
        for _, method, fields in listener.calls
        if (method == "thread_started" and fields["role"] is Role.DEVICE)
        or method == "task_pushed"
    ]
    assert order[:3] == ["thread_started", "thread_started", "task_pushed"]


def test_a_thread_that_is_slow_to_start_is_waited_for():
    """L4."""
    pushed = Mailbox()
    was_pushed_first: list[bool] = []

    class SlowThreads(Threads):
        def spawn(self, target: Callable[[], None], name: str) -> None:
            def late() -> None:
                was_pushed_first.append(pushed.arrives_within(0.1))
                target()

            super().spawn(late, name)

    class Watching(probe.Probe):
        def task_pushed(self, *args: object) -> None:
            pushed.send()

    engine = Engine(sync=SlowThreads())
    with probe.installed(Watching()):
        engine.execute([(Sink(device=SIM_0), 0)], [1])
    engine.stop()

    assert was_pushed_first == [False]


def device_threads(sync: Sync) -> DeviceThreads:
    """The threads of an engine, without the engine."""
    queues = DeviceQueues(sync, PyTorchSchedule)
    workers = sync.local(lambda: new_worker(sync, queues))
    return DeviceThreads(sync, workers, queues, Passes(sync))


class TestTheDeadline:
    """L7: one for all threads."""

    @pytest.mark.parametrize(
        ("seconds", "ended"), [(0, 0.0), (1, 1.0), (4, 4.0), (7, 6.0)]
    )
    def test_stop_waits_until_the_last_thread_has_ended_or_the_time_is_over(
        self, seconds: int, ended: float
    ):
        times: list[float] = []

        class Slow(probe.Probe):
            def thread_exited(self, device: int, role: Role) -> None:
                sleep(3 * (device + 1))

        def program() -> None:
            threads.ensure(2)
            threads.stop(seconds * 1_000_000_000)
            times.append(scheduler.fibers.now_ns / 1e9)

        with Scheduler(Scripted({})) as scheduler, probe.installed(Slow()):
            threads = device_threads(scheduler)
            scheduler.run(program=program)

        assert times == [ended]

    def test_a_deadline_that_is_over_is_no_error(self):
        threads = device_threads(THREADS)
        threads.ensure(2)

        threads.stop(THREADS.now_ns() - 1_000_000_000)


def test_threads_that_run_are_not_started_again():
    """L4: nor is their lock taken, which every pass would have to wait for."""
    names: list[str] = []

    class Counting(Threads):
        def spawn(self, target: Callable[[], None], name: str) -> None:
            names.append(name)
            super().spawn(target, name)

    threads = device_threads(Counting())
    threads.ensure(2)
    with threads._start_lock:
        threads.ensure(2)
        threads.ensure(1)
    threads.ensure(3)
    threads.stop(THREADS.now_ns())

    assert names == ["gv_autograd_0", "gv_autograd_1", "gv_autograd_2"]


def test_two_callers_do_not_start_a_thread_twice():
    """N4: who starts threads holds the lock."""
    threads = device_threads(THREADS)
    threads._start_lock = lock = WatchingLock(
        lambda: (len(threads._queues), threads._num_running)
    )

    threads.ensure(2)
    threads.stop(THREADS.now_ns())

    assert (lock.num_taken, lock.free) == (1, (2, 2))


def test_a_refused_thread_leaves_no_queue_that_nobody_consumes():
    """F11, L4: and the shutdown waits for it, should it have begun all the same."""
    begun: list[Callable[[], None]] = []

    class Refusing(Threads):
        def spawn(self, target: Callable[[], None], name: str) -> None:
            begun.append(target)
            raise RuntimeError("can't start new thread")

    threads = device_threads(Refusing())

    with pytest.raises(RuntimeError, match="can't start new thread"):
        threads.ensure(1)

    assert len(threads._queues) == 0
    start_thread(begun[0]).result(PATIENCE_SECONDS)


class Interrupt(BaseException):
    """Stands for a KeyboardInterrupt, which would end the tests if one got through."""


class Broken(probe.Probe):
    """A listener that fails when it hears of a device's thread."""

    def thread_started(self, device: int, role: Role) -> None:
        if role is Role.DEVICE:
            raise MemoryError


def test_a_thread_that_fails_before_it_can_work_is_an_error_and_not_a_hang(
    engine: Engine,
):
    """F11, L4: and the next pass tries again."""
    sink = Sink(device=SIM_0)

    for _ in range(2):
        with (
            probe.installed(Broken()),
            pytest.raises(EngineError, match="device 0 could not begin") as caught,
        ):
            engine.execute([(sink, 0)], [1])
        assert isinstance(caught.value.__cause__, MemoryError)
    engine.execute([(sink, 0)], [2])

    assert sink.received == [(2,)]


def test_an_interrupt_while_a_thread_starts_leaves_an_engine_that_works():
    """F04: the thread has said that it runs, and nobody has heard it."""
    waits = Mailbox()
    interrupts: list[BaseException] = [Interrupt()]

    class Interrupted(Threads):
        def mailbox(self) -> Any:
            class DeafMailbox(type(super().mailbox())):  # type: ignore[misc]
                def get(self, *args: Any, **settings: Any) -> Any:
                    waits.send()
                    item = super().get(*args, **settings)
                    if interrupts:
                        raise interrupts.pop()
                    return item

            return DeafMailbox()

        def spawn(self, target: Callable[[], None], name: str) -> None:
            super().spawn(lambda: waits.wait() or target(), name)

    engine, sink = Engine(sync=Interrupted()), Sink(device=SIM_0)

    with pytest.raises(Interrupt):
        engine.execute([(sink, 0)], [1])
    engine.execute([(sink, 0)], [2])
    engine.stop()

    assert sink.received == [(2,)]


def test_a_finaliser_that_calls_backward_while_a_thread_starts_is_refused():
    """F21: it would wait for the start, which waits for it."""
    refusals: list[str] = []

    class Finalizing(Threads):
        def spawn(self, target: Callable[[], None], name: str) -> None:
            try:
                engine.execute([(Sink(device=SIM_0), 0)], [1])
            except EngineError as error:
                refusals.append(str(error))
            super().spawn(target, name)

    engine, sink = Engine(sync=Finalizing()), Sink(device=SIM_0)

    engine.execute([(sink, 0)], [1])
    engine.stop()

    assert "a finaliser that interrupted the engine" in refusals[0]
    assert sink.received == [(1,)]


def test_each_reports_its_device():
    """L5. Other engines, that earlier tests dropped, may end their threads now."""

    class Own(Threads):
        def spawn(self, target: Callable[[], None], name: str) -> None:
            super().spawn(target, f"own {name}")

    engine, listener = Engine(sync=Own()), Listener()

    with probe.installed(listener):
        engine.execute([(Pass(Sink(device=SIM_1)), 0)], [1])
        engine.stop()

    for method in ("thread_started", "thread_exited"):
        reports = sorted(
            (fields["device"], fields["role"])
            for thread, called, fields in listener.calls
            if called == method and thread.startswith("own ")
        )
        assert reports == [(0, Role.DEVICE), (1, Role.DEVICE)]


def test_stop_ends_them(engine: Engine):
    """L7, Q6."""
    threads = started(engine, SIM_1)

    engine.stop()

    join_all(threads)


def test_stop_waits_for_a_pass_that_is_under_way(engine: Engine):
    """L7: the pass completes, and then the threads end."""
    began, may_end = Mailbox(), Mailbox()
    sink = Sink()

    def slow(grad: int) -> tuple[int]:
        began.send()
        may_end.wait()
        return (grad,)

    before = engine_threads()
    root = Call(slow, sink, device=SIM_0)
    backward = start_thread(lambda: engine.execute([(root, 0)], [5]))
    began.wait()
    threads = engine_threads() - before
    stopping = start_thread(engine.stop)
    may_end.send()

    stopping.result(PATIENCE_SECONDS)
    assert backward.result(PATIENCE_SECONDS) == ()
    assert sink.received == [(5,)]
    join_all(threads)


@pytest.mark.parametrize("limit", ["0", "0.001"])
def test_stop_gives_up_in_time_and_the_pass_goes_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, limit: str
):
    """L7: one deadline, from the environment."""
    monkeypatch.setenv("GRADVIZ_SHUTDOWN_WAIT_LIMIT", limit)
    began, may_end = Mailbox(), Mailbox()
    sink = Sink()

    def slow(grad: int) -> tuple[int]:
        began.send()
        may_end.wait()
        return (grad,)

    root = Call(slow, sink, device=SIM_0)
    backward = start_thread(lambda: engine.execute([(root, 0)], [5]))
    began.wait()

    engine.stop()
    assert not backward.done()
    may_end.send()

    assert backward.result(PATIENCE_SECONDS) == ()
    assert sink.received == [(5,)]


def test_stop_inside_a_backward_does_not_wait_for_itself(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """L7: bounded even then; the pass goes on to its end."""
    monkeypatch.setenv("GRADVIZ_SHUTDOWN_WAIT_LIMIT", "0.01")
    sink = Sink(device=SIM_0)

    def stopping(grad: int) -> tuple[int]:
        engine.stop()
        return (grad,)

    engine.execute([(Call(stopping, sink), 0)], [5])

    assert sink.received == [(5,)]
