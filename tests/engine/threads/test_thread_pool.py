"""Backwards inside backwards: nested loops, and threads that stand in for deep ones."""

import gc
import math
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.backends.device import CPU, Device
from gradviz.engine import AccumulateGrad, Engine, Node, PyTorchSchedule
from gradviz.engine.engine import MAX_DEPTH
from gradviz.engine.graph.sync import THREADS, Local, Sync, Threads
from gradviz.engine.tasks.device_queues import DeviceQueues
from gradviz.engine.tasks.graph_task import LetGo
from gradviz.engine.threads.thread_pool import ThreadPool
from gradviz.errors import EngineError
from gradviz.testing import Scheduler, Scripted, sleep
from gradviz.trace import probe
from gradviz.trace.probe import Role
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Pass,
    Sink,
    WatchingLock,
    engine_threads,
    join_all,
    new_graph_task,
    new_worker,
    raiser,
    run_nested,
    start_thread,
    thread_name,
)


def nest(engine: Engine, depth: int, device: Device = CPU) -> list[str]:
    """The threads that ran a node at each depth, outermost first."""
    names: list[str] = []

    def level(remaining: int) -> Node:
        def apply(grad: Any) -> Any:
            names.append(thread_name())
            if remaining:
                engine.execute([(level(remaining - 1), 0)], [grad])
            return ()

        return Call(apply, device=device)

    engine.execute([(level(depth), 0)], [1])
    return names


class TestThreads:
    @pytest.mark.parametrize("depth", [1, 59, 60, 61, 121, 122, 182, 183, 200])
    def test_threads_are_as_many_as_pytorchs(self, engine: Engine, depth: int):
        """G2, RE3, RE4, F19: 60 levels on the caller, 61 on each further thread."""
        names = nest(engine, depth)

        assert len(names) == depth + 1
        assert len(set(names)) == 1 + max(0, math.ceil((depth - 60) / 61))

    def test_the_limit_is_reached_on_the_sixty_first_level(self, engine: Engine):
        """L1, RE4."""
        names = nest(engine, MAX_DEPTH + 1)

        assert names[:-1] == [thread_name()] * (MAX_DEPTH + 1)
        assert names[-1] == "gv_autograd_pool_0"

    @pytest.mark.parametrize("depth", [61, 140])
    def test_devices_hand_over_to_the_same_pool(self, engine: Engine, depth: int):
        """RE4, RE6: a stand-in consumes the queue of the owner's device."""
        names = nest(engine, depth, device=SIM_1)

        assert names[:61] == ["gv_autograd_1"] * 61
        assert len(set(names)) == 1 + math.ceil((depth - 60) / 61)

    def test_idle_threads_are_used_again(self, engine: Engine):
        """RE5, F19: the second run adds none."""
        nest(engine, 200)
        before = engine_threads()

        nest(engine, 200)

        assert engine.num_pool_threads == 3
        assert engine_threads() <= before

    def test_two_callers_may_be_deep_at_once(self, engine: Engine):
        """F19."""
        futures = [start_thread(lambda: nest(engine, 100)) for _ in range(2)]

        assert [len(future.result(PATIENCE_SECONDS)) for future in futures] == [
            101,
            101,
        ]
        assert engine.num_pool_threads <= 2

    def test_pool_threads_end_with_the_engine(self):
        """L13: PyTorch leaks them."""
        before = engine_threads()
        engine = Engine()
        nest(engine, MAX_DEPTH + 1)
        threads = engine_threads() - before
        assert "gv_autograd_pool_0" in {thread.name for thread in threads}

        engine.stop()

        join_all(threads)

    def test_a_thread_that_fails_before_it_can_work_is_an_error_and_not_a_hang(self):
        """F11: and the next pass tries again."""
        is_broken = True

        class Broken(Threads):
            def local(self, factory: Callable[[], Any]) -> Local[Any]:
                class BrokenLocal(Local[Any]):
                    def get(self) -> Any:
                        if is_broken and "pool" in thread_name():
                            raise MemoryError
                        return super().get()

                return BrokenLocal(factory)

        engine = Engine(max_depth=0, sync=Broken())
        with pytest.raises(EngineError, match="thread of the reentrancy pool"):
            nest(engine, 1)
        is_broken = False
        names = nest(engine, 1)
        engine.stop()

        assert names == [thread_name(), "gv_autograd_pool_1"]

    def test_a_small_limit_uses_threads_sooner(self):
        engine = Engine(max_depth=0)

        names = nest(engine, 2)
        engine.stop()

        assert names == [
            thread_name(),
            "gv_autograd_pool_0",
            "gv_autograd_pool_1",
        ]


class Interrupt(BaseException):
    """Stands for a KeyboardInterrupt, which would end the tests if one got through."""


class TestInterrupted:
    """F04: the caller of a pass is struck while a thread of the pool works for it."""

    def test_the_next_pass_does_not_wait_for_a_stand_in_that_is_still_busy(self):
        """RE5: a thread whose caller is gone counts as busy."""
        times: list[float] = []

        def strike(grad: Any) -> Any:
            scheduler.interrupt("caller", Interrupt())
            sleep(1_000)
            return ()

        def look(grad: Any) -> Any:
            times.append(scheduler.fibers.now_ns / 1e9)
            return ()

        def call() -> None:
            with pytest.raises(Interrupt):
                run_nested(engine, 1, strike)
            run_nested(engine, 1, look)

        with Scheduler(Scripted({})) as scheduler:
            engine = Engine(sync=scheduler, max_depth=0)
            scheduler.run(caller=call)
            num_threads = engine.num_pool_threads

        assert times == [5.0]  # what a failed pass waits for its nodes elsewhere
        assert num_threads == 2

    def test_its_stand_in_is_let_go_and_can_be_used_again(self):
        """It would sleep before a queue that is thrown away."""
        names: list[str] = []
        other = Listener()

        def strike(grad: Any) -> Any:
            scheduler.interrupt("caller", Interrupt())
            return ()

        def call() -> None:
            with pytest.raises(Interrupt):
                run_nested(engine, 1, strike)
            sleep(1)
            run_nested(engine, 1, lambda grad: names.append("again") or ())

        with Scheduler(Scripted({})) as scheduler, probe.installed(other):
            engine = Engine(sync=scheduler, max_depth=0)
            scheduler.run(caller=call)
            num_threads = engine.num_pool_threads
            scheduler.run(stop=engine.stop)
            assert not scheduler.fibers.alive

        assert names == ["again"]
        assert num_threads == 1

    def test_a_thread_that_comes_too_late_does_not_work_for_it(self):
        listener = Listener()
        late: list[Callable[[], None]] = []

        class Late(Scheduler):
            def spawn(self, target: Callable[[], None], name: str) -> None:
                late.append(target)

        def call() -> None:
            with pytest.raises(Interrupt):
                run_nested(engine, 1, lambda grad: ())

        def strike() -> None:
            scheduler.interrupt("caller", Interrupt())

        with Late(Scripted({})) as scheduler, probe.installed(listener):
            engine = Engine(sync=scheduler, max_depth=0)
            scheduler.run(caller=call, other=strike)
            scheduler.fibers.start(late[0], "pool", is_daemon=True)
            scheduler.run()
            scheduler.run(stop=engine.stop)

        assert Role.POOL not in listener.of("thread_started", "role")

    def test_its_stand_in_lets_go_of_the_queue_whatever_becomes_of_the_caller(self):
        """A second interrupt may keep the caller from telling of the end."""
        with Scheduler(Scripted({})) as scheduler:
            pool, task = new_pool(scheduler), new_graph_task(scheduler)

            def call() -> None:
                with pytest.raises(Interrupt):
                    pool.run(task)

            scheduler.run(
                caller=call, other=lambda: scheduler.interrupt("caller", Interrupt())
            )

        assert task.outcome.is_done


def new_pool(sync: Sync = THREADS) -> ThreadPool:
    """The pool of an engine, without the engine."""
    queues = DeviceQueues(sync, PyTorchSchedule)
    return ThreadPool(sync, sync.local(lambda: new_worker(sync, queues)), queues)


class TestTorn:
    """F11: an error strikes the engine's own code on a thread of the pool."""

    def test_its_pass_fails_and_says_why_and_the_thread_works_on(self):
        error = MemoryError()

        class Striking(probe.Probe):
            def thread_started(self, device: int, role: Role) -> None:
                if role is Role.POOL:
                    raise error

        engine = Engine(max_depth=0)
        with (
            probe.installed(Striking()),
            pytest.raises(EngineError, match="a thread of the reentrancy pool") as one,
        ):
            nest(engine, 1)
        names = nest(engine, 1)
        num_threads = engine.num_pool_threads
        engine.stop()

        assert one.value.__cause__ is error
        assert names == [thread_name(), "gv_autograd_pool_0"]
        assert num_threads == 1

    def test_it_runs_no_node_of_its_pass_any_more(self):
        pool, task, state = new_pool(), new_graph_task(), new_worker()
        task.outcome.begin_help(state)

        pool._tear(state, task, MemoryError())

        assert task.outcome.helpers == []
        assert task.baton.qsize() == 1

    def test_before_it_knows_its_job_those_fail_that_have_no_thread(self):
        pool, error = new_pool(), MemoryError()
        served, waiting = new_graph_task(), new_graph_task()
        pool._waiting |= {task.id: task for task in (served, waiting)}
        pool._served[served.id] = served

        pool._tear(None, None, error)

        assert (waiting.outcome.error, waiting.outcome.is_torn.value) == (error, True)
        assert waiting.baton.qsize() == 1
        assert (served.outcome.error, served.outcome.is_torn.value) == (None, False)
        assert served.baton.empty()


def test_waiting_and_working_threads_are_counted_under_the_lock():
    """N4."""
    pool = new_pool()
    task = new_graph_task()
    task.cpu_ready_queue.push(LetGo(task))
    pool._lock = lock = WatchingLock(lambda: (len(pool._waiting), pool.num_threads))

    pool.run(task)

    assert lock.num_taken == 2
    assert lock.free == (1, 1)
    pool._lock = lock = WatchingLock(lambda: (pool.num_threads, pool._is_stopped))
    pool.stop()
    assert lock.num_taken == 1
    assert lock.free == (0, True)


class TestStopping:
    """L13."""

    def test_every_thread_of_the_pool_ends(self):
        before = engine_threads()
        engine = Engine(max_depth=0)
        nest(engine, 3)
        threads = engine_threads() - before
        assert len(threads) == engine.num_pool_threads == 3

        engine.stop()

        join_all(threads)
        assert engine.num_pool_threads == 0

    def test_a_thread_that_begins_afterwards_ends_at_once(self, engine: Engine):
        engine.stop()

        engine._pool._thread_main()

        assert engine.num_pool_threads == 0


class TestIdle:
    def test_an_idle_thread_keeps_nothing_of_its_last_pass_alive(self):
        """M4: no node, no pass, no queue."""
        refs: list[weakref.ref[Any]] = []
        engine = Engine(max_depth=0)

        def backward() -> None:
            def look(grad: Any) -> Any:
                state = engine.worker()
                things = state.graph_task, state.node
                refs.extend(weakref.ref(thing) for thing in things if thing)
                return ()

            run_nested(engine, 1, look)

        gc.disable()
        try:
            backward()
            states = tuple(engine._threads)
            assert len(refs) == 2
            assert [ref() for ref in refs] == [None, None]
        finally:
            gc.enable()
        (idle,) = (one for one in states if "pool" in one.thread_name)
        assert (idle.ready_queue, idle.graph_task, idle.node) == (None, None, None)
        engine.stop()


class TestReports:
    def test_a_thread_says_when_it_is_made_and_when_it_stands_in(self):
        listener = Listener()
        engine = Engine(max_depth=0)

        with probe.installed(listener):
            nest(engine, 2)
            nest(engine, 1)
        engine.stop()

        assert listener.of("pool_thread_spawned", "num_threads") == [1, 2]
        for method in ("thread_started", "thread_exited"):
            roles = listener.of(method, "role")
            assert roles.count(Role.POOL) == 3
            assert roles.count(Role.CALLER) == 2


class TestDepth:
    def test_each_level_is_one_deeper_than_the_one_it_was_called_from(
        self, engine: Engine
    ):
        """RE1, RE6, G8: the pool goes on counting."""
        listener = Listener()

        with probe.installed(listener):
            nest(engine, 130)

        assert listener.of("task_begun", "reentrant_depth") == list(range(131))

    def test_each_level_knows_the_pass_it_was_called_from(self, engine: Engine):
        """G8."""
        listener = Listener()

        with probe.installed(listener):
            nest(engine, 70)

        ids = listener.of("task_begun", "task")
        assert listener.of("task_begun", "parent") == [-1, *ids[:-1]]

    def test_a_call_from_a_device_belongs_to_that_device(self, engine: Engine):
        """RE1: `owner` is the caller's `worker_device`."""
        listener = Listener()

        with probe.installed(listener):
            nest(engine, 1, device=SIM_1)

        assert listener.of("task_begun", "owner") == [-1, 1]

    def test_the_work_for_the_cpu_then_runs_on_the_devices_thread(self, engine: Engine):
        """RE1, L11: the caller of the inner pass drives its CPU queue."""
        names: list[str] = []
        inner = Call(lambda grad: names.append(thread_name()) or ())
        outer = Call(lambda grad: engine.execute([(inner, 0)], [grad]), device=SIM_0)

        engine.execute([(outer, 0)], [1])

        assert names == ["gv_autograd_0"]

    def test_the_depth_is_forgotten_afterwards(self, engine: Engine):
        """R7, RE3: whether the passes succeeded or failed."""
        with pytest.raises(ValueError, match="mine"):
            run_nested(engine, 65, raiser(ValueError("mine")))
        listener = Listener()

        with probe.installed(listener):
            nest(engine, 1)
            nest(engine, 1, device=SIM_0)

        assert listener.of("task_begun", "reentrant_depth") == [0, 1, 0, 1]
        assert listener.of("task_begun", "owner") == [-1, -1, -1, 0]

    def test_the_caller_has_its_whole_limit_again(self, engine: Engine):
        """R7: `current_depth` is put back as well."""
        nest(engine, 60)
        nest(engine, 60)

        assert engine.num_pool_threads == 0


class TestPriority:
    def test_the_inner_pass_runs_before_what_the_outer_one_has_ready(
        self, engine: Engine
    ):
        """RE7, Q2: even if the outer one's node was made later."""
        log: list[str] = []

        def reenter(leaf: Leaf) -> None:
            engine.execute([(inner, 0)], [1])
            log.append("returned")

        inner: Node = Pass(log=log, label="inner")
        for _ in range(3):
            inner = Pass(inner, log=log, label="inner")
        newer = Pass(log=log, label="outer")
        first = AccumulateGrad(Leaf())  # runs first, as every leaf does
        first.post_hooks = (reenter,)

        engine.execute([(Pass(newer, first), 0)], [1])

        assert log == ["inner"] * 4 + ["returned", "outer"]

    def test_ten_inner_passes_run_before_the_outer_node(self, engine: Engine):
        """RE7: `test_reentrant_priority`."""
        log: list[str] = []
        older = Pass(log=log, label="outer")

        def count_down(remaining: int) -> Any:
            def apply(grad: Any) -> Any:
                log.append("inner")
                if remaining:
                    engine.execute([(Call(count_down(remaining - 1)), 0)], [grad])
                return ()

            return apply

        engine.execute([(Pass(older, Call(count_down(9))), 0)], [1])

        assert log == ["inner"] * 10 + ["outer"]


class TestErrors:
    @pytest.mark.parametrize("depth", [1, 60, 61, 130])
    def test_an_error_at_the_bottom_unwinds_every_level(
        self, engine: Engine, depth: int
    ):
        """R6, F19: the very object, whatever threads it has to cross."""
        error = ValueError("mine")

        with pytest.raises(ValueError, match="mine") as caught:
            run_nested(engine, depth, raiser(error))

        assert caught.value is error
        assert len(nest(engine, depth)) == depth + 1

    def test_every_level_fails_with_it(self, engine: Engine):
        """R6."""
        listener = Listener()

        with probe.installed(listener), pytest.raises(ValueError, match="mine"):
            run_nested(engine, 62, raiser(ValueError("mine")))

        assert listener.of("task_failed", "error") == ["ValueError: mine"] * 63
        assert listener.of("task_completed", "task") == []


class TestTogether:
    def test_a_node_may_call_backward_several_times(self, engine: Engine):
        leaf = Leaf()
        node = AccumulateGrad(leaf)

        def apply(grad: Any) -> Any:
            for _ in range(5):
                engine.execute([(Pass(node), 0)], [grad])
            return ()

        engine.execute([(Call(apply), 0)], [2])

        assert leaf.grad == 10

    def test_an_inner_pass_may_cross_devices(self, engine: Engine):
        """RE6: called from a device, it needs another and the CPU."""
        sink = Sink()
        inner = Pass(Pass(sink, device=SIM_1), Pass(sink, device=SIM_0))
        outer = Call(lambda grad: engine.execute([(inner, 0)], [grad]), device=SIM_0)

        engine.execute([(outer, 0)], [3])

        assert sink.received == [(6,)]

    def test_two_devices_may_both_be_reentrant(self, engine: Engine):
        """M6: each waits for the other's thread, and each runs the other's work."""
        leaf = Leaf()
        node = AccumulateGrad(leaf)

        def calling(other: Device) -> Any:
            def apply(grad: Any) -> Any:
                return engine.execute([(Pass(node, device=other), 0)], [grad])

            return apply

        ways = [Call(calling(SIM_1), device=SIM_0), Call(calling(SIM_0), device=SIM_1)]

        for _ in range(20):
            engine.execute([(Pass(*ways), 0)], [1])

        assert leaf.grad == 40
