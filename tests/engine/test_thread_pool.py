"""Backwards inside backwards: nested loops, and threads that stand in for deep ones."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.backends.device import CPU, Device
from gradviz.engine import AccumulateGrad, Engine, Node
from gradviz.engine.engine import MAX_DEPTH
from gradviz.engine.sync import Local, Threads
from gradviz.errors import EngineError
from gradviz.trace import probe
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Pass,
    Sink,
    engine_threads,
    join_all,
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
