"""One call of `execute`: its arguments, its roots, its results, its surroundings."""

import contextlib
import contextvars
import gc
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from gradviz.backends.device import CPU, Device
from gradviz.engine import (
    AccumulateGrad,
    Engine,
    Node,
    default_engine,
    set_default_engine,
)
from gradviz.engine.engine import MAX_DEPTH
from gradviz.engine.graph.grad_mode import GRAD_ENABLED, MULTITHREADING_ENABLED
from gradviz.engine.graph.node import NodeHooks
from gradviz.engine.graph.sync import Threads
from gradviz.errors import EngineError
from gradviz.testing import Scheduler, Scripted, sleep
from gradviz.trace import probe
from tests.engine.nodes import (
    PATIENCE_SECONDS,
    PLACES,
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Pass,
    Sink,
    engine_threads,
    in_thread,
    join_all,
    raiser,
    run_at,
    start_thread,
    thread_name,
)


def test_the_depth_limit_is_pytorchs():
    """L1."""
    assert MAX_DEPTH == 60


class TestSeveralEngines:
    def test_a_process_has_one_default_engine(self):
        """L2."""
        assert default_engine() is default_engine()
        assert in_thread(default_engine) is default_engine()

    def test_the_default_engine_can_be_replaced(self, engine: Engine):
        """L2: `set_default_engine_stub`."""
        before = default_engine()
        set_default_engine(engine)
        try:
            assert default_engine() is engine
        finally:
            set_default_engine(before)

    def test_engines_do_not_see_each_other(self, engine: Engine):
        """A pass of one inside a pass of the other is not reentrant."""
        other, listener = Engine(), Listener()
        root = Call(lambda grad: other.execute([(Sink(), 0)], [grad]))

        with probe.installed(listener):
            engine.execute([(root, 0)], [1])

        assert listener.of("task_begun", "reentrant_depth") == [0, 0]

    def test_an_engine_that_nobody_uses_is_freed_and_its_threads_end(self):
        before = engine_threads()
        engine = Engine()
        engine.execute([(Sink(device=SIM_0), 0)], [1])
        threads = engine_threads() - before
        ref = weakref.ref(engine)

        del engine
        gc.collect()

        assert ref() is None
        assert threads
        join_all(threads)


class TestArguments:
    def test_grad_without_outputs_is_refused(self, engine: Engine):
        """X3."""
        with pytest.raises(ValueError, match=r"^grad requires non-empty inputs\.$"):
            engine.execute([(Sink(), 0)], [1], accumulate_grad=False)

    @pytest.mark.parametrize("name", ["roots", "outputs"])
    def test_an_edge_to_what_is_no_node_is_named(self, engine: Engine, name: str):
        edges: Any = {"roots": [(Sink(), 0)], "outputs": ()}
        edges[name] = [(Sink(), 0), ("text", 0)]

        with pytest.raises(TypeError, match=name) as caught:
            engine.execute(
                edges["roots"], [1] * len(edges["roots"]), outputs=edges["outputs"]
            )

        assert str(caught.value) == f"{name}[1] leads to str: expected a Node"

    @pytest.mark.parametrize("input_nr", [1, -1])
    @pytest.mark.parametrize("name", ["roots", "outputs"])
    def test_an_edge_to_an_input_that_is_not_there_is_named(
        self, engine: Engine, name: str, input_nr: int
    ):
        node = Sink()
        edges: Any = {"roots": [(Sink(), 0)], "outputs": ()}
        edges[name] = [(node, input_nr)]

        with pytest.raises(IndexError) as caught:
            engine.execute(edges["roots"], [1], outputs=edges["outputs"])

        assert str(caught.value) == (
            f"{name}[0] leads to input {input_nr} of {node!r}, which has 1"
        )

    def test_no_roots_are_no_work(self, engine: Engine):
        assert engine.execute([], []) == ()

    def test_a_device_that_does_not_exist_is_named(self, engine: Engine):
        node = Sink(device=Device("sim", 99))

        with pytest.raises(RuntimeError, match=r"no device 'sim:99': there are \d+"):
            engine.execute([(node, 0)], [1])

    def test_a_node_of_an_unknown_kind_of_device_is_named(self, engine: Engine):
        node = Pass(Sink(device=Device("abacus", 0)))

        with pytest.raises(RuntimeError, match="unknown device 'abacus:0'"):
            engine.execute([(node, 0)], [1])

    def test_backward_with_create_graph_warns_once(self, engine: Engine):
        """X2."""
        with pytest.warns(UserWarning, match="reference cycle between the parameter"):
            engine.execute([(Sink(), 0)], [1], create_graph=True)

        engine.execute([(Sink(), 0)], [1], create_graph=True)

    def test_grad_with_create_graph_does_not_warn(self, engine: Engine):
        """X2."""
        sink = Sink()

        engine.execute(
            [(sink, 0)],
            [1],
            create_graph=True,
            accumulate_grad=False,
            outputs=[(sink, 0)],
        )


class TestRoots:
    def test_several_roots_run_by_their_sequence_numbers(self, engine: Engine):
        """X6: not in the order in which they were named."""
        log: list[str] = []
        first, second = Pass(log=log, label="first"), Pass(log=log, label="second")

        engine.execute([(first, 0), (second, 0)], [1, 1])

        assert log == ["second", "first"]

    def test_a_single_root_runs_without_a_graph_root(self, engine: Engine):
        """X6."""
        listener = Listener()
        sink = Sink()

        with probe.installed(listener):
            engine.execute([(sink, 0)], [1])

        assert listener.of("node_started", "node") == [sink.id]
        assert listener.of("task_begun", "num_roots") == [1]

    def test_the_gradient_of_a_single_root_reaches_its_own_input(self, engine: Engine):
        """X10."""
        sink = Sink(inputs=3)

        engine.execute([(sink, 1)], [5])

        assert sink.received == [(None, 5, None)]

    def test_a_root_named_twice_gets_the_sum(self, engine: Engine):
        """X6, X8: two edges from the graph root."""
        sink = Sink()

        engine.execute([(sink, 0), (sink, 0)], [3, 4])

        assert sink.received == [(7,)]

    def test_two_outputs_of_one_node_are_two_roots(self, engine: Engine):
        """X6."""
        sink = Sink(inputs=2)

        engine.execute([(sink, 1), (sink, 0)], [3, 4])

        assert sink.received == [(4, 3)]

    def test_a_root_inside_the_graph_of_another_waits_for_it(self, engine: Engine):
        """X6, X8."""
        inner = Sink()
        outer = Pass(Pass(inner))

        engine.execute([(inner, 0), (outer, 0)], [3, 4])

        assert inner.received == [(7,)]

    def test_roots_on_several_devices_meet_in_one_leaf(self, engine: Engine):
        """X6."""
        leaf = Leaf()
        node = AccumulateGrad(leaf)
        roots = [Pass(node, device=device) for device in (SIM_0, SIM_1, SIM_0)]

        engine.execute([(root, 0) for root in roots], [1, 10, 100])

        assert leaf.grad == 111

    def test_a_leaf_may_be_the_root(self, engine: Engine):
        leaf = Leaf(grad=1)

        engine.execute([(AccumulateGrad(leaf), 0)], [5])

        assert leaf.grad == 6

    def test_a_graph_may_be_used_again(self, engine: Engine):
        leaf = Leaf()
        root = Pass(AccumulateGrad(leaf), factor=2)

        for _ in range(3):
            engine.execute([(root, 0)], [1], keep_graph=True)

        assert leaf.grad == 6


class TestSurroundings:
    def test_a_pass_on_the_cpu_runs_on_the_calling_thread(self, engine: Engine):
        """G1."""
        names: list[str] = []
        root = Call(lambda grad: names.append(thread_name()) or ())

        engine.execute([(root, 0)], [1])

        assert names == [thread_name()]

    @pytest.mark.parametrize("place", PLACES)
    def test_a_node_sees_itself_and_its_pass_while_it_runs(
        self, engine: Engine, place: str
    ):
        """K2, K7."""
        seen: list[Any] = []

        run_at(
            engine,
            place,
            lambda grad: (
                seen.append((engine.current_node, engine.current_graph_task)) or ()
            ),
        )

        ((node, graph_task),) = seen
        assert isinstance(node, Call)
        assert graph_task is not None
        assert engine.current_node is None
        assert engine.current_graph_task is None

    def test_hooks_see_their_node(self, engine: Engine):
        """K7."""
        seen: list[Node | None] = []
        node = Sink()
        node.hooks = NodeHooks()
        node.hooks.tensor_pre = ((0, lambda _: seen.append(engine.current_node)),)
        node.hooks.pre = (lambda _: seen.append(engine.current_node),)
        node.hooks.post = (lambda *_: seen.append(engine.current_node),)

        engine.execute([(node, 0)], [1])

        assert seen == [node] * 3

    def test_an_inner_pass_has_the_next_id_and_the_outer_ones_comes_back(
        self, engine: Engine
    ):
        """G8, K2, K7."""
        seen: list[Any] = []

        def look(grad: int) -> Any:
            graph_task = engine.current_graph_task
            assert graph_task is not None
            seen.append((graph_task.id, engine.current_node))
            return ()

        inner = Call(look)

        def apply(grad: int) -> Any:
            look(grad)
            engine.execute([(inner, 0)], [1])
            return look(grad)

        outer = Call(apply)
        engine.execute([(outer, 0)], [1])

        (first, one), (second, two), (third, three) = seen
        assert (second, third) == (first + 1, first)
        assert (one, two, three) == (outer, inner, outer)

    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("create_graph", [True, False])
    def test_gradient_mode_inside_is_create_graph(
        self, engine: Engine, place: str, create_graph: bool
    ):
        """G8, the field `thread_locals_`."""
        modes: list[bool] = []
        out = Sink()
        node = Call(
            lambda grad: modes.append(GRAD_ENABLED.get()) or (grad,),
            out,
            device=SIM_0 if place == "device" else CPU,
        )

        def grad_of_out(grad: Any) -> Any:
            engine.execute(
                [(node, 0)],
                [1],
                create_graph=create_graph,
                accumulate_grad=False,
                outputs=[(out, 0)],
            )
            return ()

        if place == "pool":
            run_at(engine, place, grad_of_out)
        else:
            grad_of_out(1)

        assert modes == [create_graph]
        assert GRAD_ENABLED.get() is True

    @pytest.mark.parametrize("place", PLACES)
    def test_context_variables_reach_every_thread(self, engine: Engine, place: str):
        """C22."""
        variable = contextvars.ContextVar("variable", default="default")
        variable.set("the caller's")
        seen: list[str] = []

        run_at(engine, place, lambda grad: seen.append(variable.get()) or ())

        assert seen == ["the caller's"]

    def test_a_variable_set_on_a_device_thread_does_not_leak_into_the_next_pass(
        self, engine: Engine
    ):
        """C22: each runs in a copy of its caller's context."""
        variable = contextvars.ContextVar("variable", default=0)
        seen: list[int] = []

        def apply(grad: Any) -> Any:
            seen.append(variable.get())
            variable.set(variable.get() + 1)
            return ()

        for _ in range(2):
            engine.execute([(Call(apply, device=SIM_0), 0)], [1])

        assert seen == [0, 0]
        assert variable.get() == 0


class TestCheckpointing:
    """K1, I1."""

    @pytest.mark.parametrize("place", PLACES)
    def test_it_is_valid_where_everything_runs(self, engine: Engine, place: str):
        seen: list[bool] = [engine.is_checkpoint_valid()]

        run_at(
            engine,
            place,
            lambda grad: seen.append(engine.is_checkpoint_valid()) or (),
        )

        assert seen == [True, True]

    @pytest.mark.parametrize("place", PLACES)
    def test_it_is_not_valid_in_a_restricted_pass(self, engine: Engine, place: str):
        seen: list[bool] = []
        out = Sink()
        root = Call(
            lambda grad: seen.append(engine.is_checkpoint_valid()) or (grad,),
            out,
            device=SIM_0 if place == "device" else CPU,
        )

        def restricted(grad: Any) -> Any:
            engine.execute([(root, 0)], [1], outputs=[(out, 0)])
            seen.append(engine.is_checkpoint_valid())
            return ()

        if place == "pool":
            run_at(engine, place, restricted)
        else:
            restricted(1)

        assert seen == [False, True]

    def test_it_is_not_valid_in_an_unrestricted_pass_inside_a_restricted_one(
        self, engine: Engine
    ):
        seen: list[bool] = []
        out = Sink()
        inner = Call(lambda grad: seen.append(engine.is_checkpoint_valid()) or ())

        def apply(grad: int) -> Any:
            engine.execute([(inner, 0)], [1])
            seen.append(engine.is_checkpoint_valid())
            return (grad,)

        engine.execute([(Call(apply, out), 0)], [1], outputs=[(out, 0)])

        assert seen == [False, False]
        assert engine.is_checkpoint_valid()

    @pytest.mark.parametrize("device", [SIM_0, CPU], ids=str)
    def test_a_restricted_pass_leaves_nothing_behind(self, engine: Engine, device: Any):
        """R7: also when it fails (PyTorch once forgot, #37874)."""
        seen: list[bool] = []
        out = Sink()
        failing = Call(raiser(ValueError("mine")), out, device=device)
        looking = Call(
            lambda grad: seen.append(engine.is_checkpoint_valid()) or (),
            device=device,
        )

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(failing, 0)], [1], outputs=[(out, 0)])
        engine.execute([(looking, 0)], [1])

        assert seen == [True]


class TestOneThread:
    """K5: `set_multithreading_enabled(False)`."""

    @pytest.fixture(autouse=True)
    def one_thread(self) -> Iterator[None]:
        MULTITHREADING_ENABLED.set(False)
        yield
        MULTITHREADING_ENABLED.set(True)

    def test_everything_runs_on_the_caller(self, engine: Engine):
        """K5, L12."""
        names: list[str] = []

        def apply(grad: int) -> Any:
            names.append(thread_name())
            return (grad,)

        root = Call(apply, Call(apply, Call(apply, Sink(), device=SIM_1), device=SIM_0))
        before = engine_threads()

        engine.execute([(root, 0)], [1])

        assert names == [thread_name()] * 3
        assert engine_threads() == before

    def test_the_order_is_then_that_of_one_queue(self, engine: Engine):
        """K5, Q2."""
        log: list[str] = []
        first = Pass(log=log, label="first", device=SIM_0)
        second = Pass(log=log, label="second", device=SIM_1)
        third = Pass(log=log, label="third")

        engine.execute([(Pass(first, third, second), 0)], [1])

        assert log == ["third", "second", "first"]

    def test_a_reentrant_pass_stays_on_the_caller_too(self, engine: Engine):
        """K5."""
        names: list[str] = []
        inner = Call(lambda grad: names.append(thread_name()) or (), device=SIM_0)
        outer = Call(lambda grad: engine.execute([(inner, 0)], [grad]), device=SIM_1)

        engine.execute([(outer, 0)], [1])

        assert names == [thread_name()]

    def test_it_is_a_setting_of_this_thread_only(self, engine: Engine):
        """K5: thread-local."""
        names: list[str] = []
        root = Call(lambda grad: names.append(thread_name()) or (), device=SIM_0)

        in_thread(lambda: engine.execute([(root, 0)], [1]))

        assert names == ["gv_autograd_0"]


class TestManyCallers:
    """N4, G15, X6: many threads call at once."""

    def test_passes_over_one_shared_graph_sum_exactly(self, engine: Engine):
        """G15: 8 threads, 9 passes each."""
        leaf = Leaf()
        shared = Pass(AccumulateGrad(leaf), factor=1)
        root = Pass(shared, shared, Pass(shared))

        def backward() -> None:
            for _ in range(9):
                engine.execute([(root, 0)], [1], keep_graph=True)

        for future in [start_thread(backward) for _ in range(8)]:
            future.result(PATIENCE_SECONDS)

        assert leaf.grad == 8 * 9 * 3

    def test_passes_over_shared_devices_sum_exactly(self, engine: Engine):
        leaves = [Leaf(), Leaf()]
        node_0 = AccumulateGrad(leaves[0], device=SIM_0)
        node_1 = AccumulateGrad(leaves[1], device=SIM_1)
        root = Pass(Pass(node_0, node_1, device=SIM_0), Pass(node_1, device=SIM_1))

        def backward() -> None:
            for _ in range(25):
                engine.execute([(root, 0)], [1], keep_graph=True)

        for future in [start_thread(backward) for _ in range(6)]:
            future.result(PATIENCE_SECONDS)

        assert [leaf.grad for leaf in leaves] == [150, 300]

    def test_each_caller_gets_its_own_results_and_its_own_error(self, engine: Engine):
        """R2: the error of one pass is not the error of another."""

        def call(number: int) -> Any:
            out = Sink()
            error = ValueError(f"{number}")
            function = raiser(error) if number % 2 else lambda grad: (grad,)
            root = Call(function, out, device=SIM_0)
            return engine.execute(
                [(root, 0)], [number], accumulate_grad=False, outputs=[(out, 0)]
            )

        futures = [start_thread(lambda n=n: call(n)) for n in range(16)]

        for number, future in enumerate(futures):
            if number % 2:
                with pytest.raises(ValueError, match=f"^{number}$"):
                    future.result(PATIENCE_SECONDS)
            else:
                assert future.result(PATIENCE_SECONDS) == (number,)


class TestInsideTheEngine:
    """F21, F22: who calls from where no user code should be."""

    def test_a_finaliser_that_strikes_a_node_may_call_backward(self, engine: Engine):
        sink = Sink()

        class Dying:
            def __del__(self) -> None:
                engine.execute([(sink, 0)], [5])

        def apply(grad: Any) -> Any:
            Dying()
            return ()

        engine.execute([(Call(apply), 0)], [1])

        assert sink.received == [(5,)]

    def test_a_gradient_whose_finaliser_calls_backward_harms_nothing(
        self, engine: Engine
    ):
        """F22: its last reference is dropped by the engine, outside its locks."""
        outcomes: list[Any] = []

        class Dying:
            def __del__(self) -> None:
                try:
                    outcomes.append(engine.execute([(Sink(), 0)], [5]))
                except EngineError as error:
                    outcomes.append(type(error))

        engine.execute([(Call(lambda grad: (Dying(),), Sink()), 0)], [1])
        sink = Sink()
        engine.execute([(sink, 0)], [3])

        assert outcomes in ([()], [EngineError])
        assert sink.received == [(3,)]

    @pytest.mark.parametrize(
        ("method", "times"),
        [("task_pushed", 3), ("task_popped", 3), ("gradient_buffered", 2)],
    )
    def test_a_call_from_inside_the_engines_own_code_is_refused(
        self, engine: Engine, method: str, times: int
    ):
        """F15, F21: a listener stands for a finalizer that strikes there."""
        outcomes: list[str] = []

        def intrude(self: probe.Probe, *args: Any) -> None:
            try:
                engine.execute([(Sink(), 0)], [1])
                outcomes.append("accepted")
            except EngineError as error:
                outcomes.append(str(error))

        class Intruder(probe.Probe):
            pass

        setattr(Intruder, method, intrude)
        sinks = Sink(), Sink()
        with probe.installed(Intruder()):
            engine.execute([(Pass(*sinks), 0)], [7])

        refusal = "backward was called from a signal handler or a finaliser"
        assert [outcome[: len(refusal)] for outcome in outcomes] == [refusal] * times
        assert [sink.received for sink in sinks] == [[(7,)], [(7,)]]

    def test_the_end_of_a_node_that_is_only_captured_is_not_in_user_code(
        self, engine: Engine
    ):
        """F21, I5: the node itself does not run."""
        outcomes: list[bool] = []

        class Intruder(probe.Probe):
            def node_completed(self, *args: Any) -> None:
                state = engine.worker()
                outcomes.append(state.in_user_code)

        out = Sink()
        with probe.installed(Intruder()):
            engine.execute(
                [(Pass(out), 0)], [1], outputs=[(out, 0)], accumulate_grad=False
            )

        assert outcomes == [False, False]


def test_warnings_of_every_thread_reach_the_caller(engine: Engine):
    """K6, X11, G13: also when the pass fails."""

    def warn(grad: Any) -> Any:
        warnings.warn("look out", UserWarning, stacklevel=1)
        return (grad,)

    failing = Call(raiser(ValueError("mine")), device=SIM_0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for place in PLACES:
            run_at(engine, place, lambda grad: warn(grad) and ())
        with pytest.raises(ValueError, match="mine"):
            engine.execute([(Call(warn, failing, device=SIM_1), 0)], [1])

    assert [str(one.message) for one in caught] == ["look out"] * 4


class TestStopped:
    """L7."""

    def test_a_stopped_engine_refuses_to_execute(self, engine: Engine):
        engine.stop()

        with pytest.raises(EngineError, match="the engine was stopped"):
            engine.execute([(Sink(), 0)], [1])

    def test_stopping_twice_is_stopping_once(self, engine: Engine):
        engine.execute([(Sink(device=SIM_0), 0)], [1])

        engine.stop()
        engine.stop()

    def test_stopping_one_engine_leaves_others_alone(self, engine: Engine):
        other = Engine()
        engine.execute([(Sink(device=SIM_0), 0)], [1])
        other.stop()
        sink = Sink(device=SIM_0)

        engine.execute([(sink, 0)], [2])

        assert sink.received == [(2,)]

    @pytest.mark.parametrize(
        ("limit", "seconds"), [(None, 10.0), ("0.5", 0.5), ("100", 60.0)]
    )
    def test_passes_under_way_are_waited_for_ten_seconds_unless_it_is_said_otherwise(
        self, monkeypatch: pytest.MonkeyPatch, limit: str | None, seconds: float
    ):
        """L7: on the clock of a scheduler."""
        monkeypatch.delenv("GRADVIZ_SHUTDOWN_WAIT_LIMIT", raising=False)
        if limit is not None:
            monkeypatch.setenv("GRADVIZ_SHUTDOWN_WAIT_LIMIT", limit)
        stopped: list[float] = []

        def stop() -> None:
            engine.stop()
            stopped.append(scheduler.fibers.now_ns / 1e9)

        node = Call(lambda grad: sleep(60) or ())
        with Scheduler(Scripted({})) as scheduler:
            engine = Engine(sync=scheduler)
            scheduler.run(call=lambda: engine.execute([(node, 0)], [1]), stop=stop)

        assert stopped == [seconds]

    def test_a_watch_ends_with_the_next_one_and_with_the_engine(self):
        """RE8: a watchdog that went on would never leave the scheduler alone."""

        def program() -> None:
            for _ in range(2):
                engine.watch(5, print)
            sleep(12)
            engine.stop()

        with Scheduler(Scripted({})) as scheduler:
            engine = Engine(sync=scheduler)
            scheduler.run(program=program)
            assert not scheduler.fibers.alive


class TestForked:
    """L9: a fork copies none of the threads that work for an engine."""

    @pytest.mark.parametrize(
        ("place", "is_refused"), [("caller", False), ("device", True), ("pool", True)]
    )
    def test_a_child_is_refused_if_there_were_threads(
        self, place: str, is_refused: bool
    ):
        process_id = 1

        class Forking(Threads):
            def process_id(self) -> int:
                return process_id

        engine, sink = Engine(sync=Forking()), Sink()
        run_at(engine, place, lambda grad: ())
        engine.execute([(sink, 0)], [1])

        process_id = 2

        if is_refused:
            with pytest.raises(RuntimeError, match="Unable to handle autograd"):
                engine.execute([(sink, 0)], [2])
        else:
            engine.execute([(sink, 0)], [2])
        process_id = 1
        engine.execute([(sink, 0)], [3])
        engine.stop()
        assert sink.received == ([(1,), (3,)] if is_refused else [(1,), (2,), (3,)])


@pytest.mark.parametrize(
    ("root", "error"),
    [
        (lambda: Call(raiser(ValueError("mine"))), ValueError),
        (lambda: Pass(Sink(device=Device("sim", 99))), RuntimeError),
        (Sink, None),
    ],
    ids=["fails", "cannot begin", "goes well"],
)
def test_a_pass_that_is_over_is_no_longer_under_way(
    engine: Engine, root: Any, error: type[Exception] | None
):
    """RE8, L7."""
    with pytest.raises(error) if error else contextlib.nullcontext():
        engine.execute([(root(), 0)], [1])

    assert engine.passes.under_way() == ()
