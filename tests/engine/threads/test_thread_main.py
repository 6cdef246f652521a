"""The loop that runs nodes: on the caller's thread, a device's, one of the pool."""

import contextlib
import gc
import itertools
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gradviz.engine import AccumulateGrad, Engine, Node
from gradviz.engine.tasks import outcome
from gradviz.engine.threads import execution
from gradviz.errors import EngineError
from gradviz.testing import Scheduler, Scripted, sleep
from gradviz.trace import probe
from tests.backends.noted_device import Notebook
from tests.engine.accelerator import NOTED_1, Work, gradient
from tests.engine.nodes import (
    PLACES,
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Mailbox,
    Pass,
    Sink,
    in_thread,
    raiser,
    run_at,
    start_thread,
)


class Custom(BaseException):
    """An error of the user's own that is no `Exception`."""


ERRORS = [
    ValueError,
    MemoryError,
    StopIteration,
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
    Custom,
]


def assert_works(engine: Engine) -> None:
    """The engine is as good as new: on this thread, on another, on devices."""

    def backward() -> Any:
        leaf = Leaf()
        node = AccumulateGrad(leaf)
        ways = [Pass(node, device=SIM_0), Pass(node, device=SIM_1), Pass(node)]
        engine.execute([(Pass(*ways), 0)], [1])
        return leaf.grad

    assert backward() == 3
    assert in_thread(backward) == 3
    assert engine.current_graph_task is None
    assert engine.current_node is None


class TestErrors:
    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("kind", ERRORS)
    def test_an_error_reaches_the_caller_as_the_very_object(
        self, engine: Engine, kind: type[BaseException], place: str
    ):
        """R2, R6, F01, F03: of every kind, from every kind of thread."""
        error = kind("mine")

        with pytest.raises(kind) as caught:
            run_at(engine, place, raiser(error))

        assert caught.value is error
        assert_works(engine)

    @pytest.mark.parametrize("place", PLACES)
    def test_the_traceback_leads_to_the_line_that_raised(
        self, engine: Engine, place: str
    ):
        """`test_preserve_backtrace`."""

        def a_line_of_the_users(grad: Any) -> Any:
            raise ValueError("mine")

        with pytest.raises(ValueError, match="mine") as caught:
            run_at(engine, place, a_line_of_the_users)

        assert caught.traceback[-1].name == "a_line_of_the_users"

    @pytest.mark.parametrize("position", range(5))
    @pytest.mark.parametrize("device", [None, SIM_0], ids=["caller", "device"])
    def test_no_node_runs_after_the_one_that_failed(
        self, engine: Engine, position: int, device: Any
    ):
        """R3, F01: at every position of a chain."""
        log: list[str] = []
        leaf = Leaf()
        node: Node = AccumulateGrad(leaf)
        for index in reversed(range(5)):
            if index == position:
                node = Call(raiser(ValueError("mine")), node)
            else:
                node = Pass(node, log=log, label=f"{index}")
            node.runs_on = device or node.runs_on

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(node, 0)], [1])

        assert log == [f"{index}" for index in range(position)]
        assert leaf.grad is None
        assert_works(engine)

    def test_a_node_that_was_ready_when_another_failed_does_not_run(
        self, engine: Engine
    ):
        """G11, R3: u (older) and the failing v (newer) were both ready."""
        log: list[str] = []
        leaf = Leaf()
        u = Pass(AccumulateGrad(leaf), log=log, label="u")
        v = Call(raiser(ValueError("mine")), AccumulateGrad(Leaf()))

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(Pass(u, v), 0)], [1])

        assert log == []
        assert leaf.grad is None

    def test_a_gradient_stored_before_its_pass_failed_stays(self, engine: Engine):
        """F01: partial `.grad`."""
        stored = Leaf()
        older = Call(raiser(ValueError("mine")))
        root = Pass(older, AccumulateGrad(stored))

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(root, 0)], [1])

        assert stored.grad == 1

    def test_an_error_in_a_leaf_is_an_error_like_any_other(self, engine: Engine):
        """F01: AccumulateGrad itself."""

        class Picky:
            grad = None

            @property
            def requires_grad(self) -> bool:
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(Pass(AccumulateGrad(Picky())), 0)], [1])  # type: ignore[arg-type]

        assert_works(engine)

    def test_of_two_errors_at_once_the_first_wins(self, engine: Engine):
        """R1, F02: on two threads, in an order that the test decides."""
        both_run, first_failed = threading.Barrier(2), Mailbox()
        errors = ValueError("first"), KeyError("second")

        def fail_first(grad: Any) -> Any:
            both_run.wait(60)
            raise errors[0]

        def fail_second(grad: Any) -> Any:
            both_run.wait(60)
            first_failed.wait()
            raise errors[1]

        class Watching(probe.Probe):
            def task_failed(self, *args: Any) -> None:
                first_failed.send()

        ways = [Call(fail_first, device=SIM_0), Call(fail_second, device=SIM_1)]
        with (
            probe.installed(Watching()),
            pytest.raises(ValueError, match="first") as caught,
        ):
            engine.execute([(Pass(*ways), 0)], [1])

        assert caught.value is errors[0]
        assert_works(engine)

    def test_many_errors_at_once_are_one_error(self, engine: Engine):
        """F02: one on each of the threads, whichever comes first."""
        ways = [
            Call(raiser(ValueError(f"{number}")), device=device)
            for number, device in enumerate((SIM_0, SIM_1) * 5)
        ]

        with pytest.raises(ValueError, match=r"^\d$"):
            engine.execute([(Pass(*ways), 0)], [1])

        assert_works(engine)

    def test_an_error_wakes_a_caller_that_sleeps(self, engine: Engine):
        """M5: the caller has nothing to do but wait for the device."""
        with pytest.raises(ValueError, match="mine"):
            engine.execute([(Call(raiser(ValueError("mine")), device=SIM_0), 0)], [1])

    def test_the_call_returns_only_when_its_nodes_on_devices_have_ended(
        self, engine: Engine
    ):
        """Differs from PyTorch, which leaves them running."""
        began, failed = Mailbox(), Mailbox()
        ended: list[bool] = []

        def slow(grad: Any) -> Any:
            began.send()
            failed.wait()
            ended.append(True)
            return ()

        def fail(grad: Any) -> Any:
            began.wait()
            raise ValueError("mine")

        class Watching(probe.Probe):
            def task_failed(self, *args: Any) -> None:
                failed.send()

        with probe.installed(Watching()), pytest.raises(ValueError, match="mine"):
            engine.execute([(Pass(Call(fail), Call(slow, device=SIM_0)), 0)], [1])

        assert ended == [True]

    def test_a_node_that_hangs_elsewhere_is_waited_for_within_limits(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ):
        """F05, M5: the caller sleeps, and only the failing device can wake it."""
        monkeypatch.setattr("gradviz.engine.tasks.outcome.QUIESCE_NS", 1_000_000)
        began, may_end, ended = Mailbox(), Mailbox(), Mailbox()

        def hang(grad: Any) -> Any:
            began.send()
            may_end.wait()
            ended.send()
            return ()

        def fail(grad: Any) -> Any:
            began.wait()
            raise ValueError("mine")

        ways = [Call(hang, device=SIM_0), Call(fail, device=SIM_1)]
        call = start_thread(lambda: engine.execute([(Pass(*ways), 0)], [1]))

        with pytest.raises(ValueError, match="mine"):
            call.result(60)
        may_end.send()
        ended.wait()
        assert_works(engine)

    def test_no_node_starts_once_the_call_has_raised(self, engine: Engine):
        """R3: what waits in the queue of a busy device is dropped."""
        log: list[str] = []
        began, failed = Mailbox(), Mailbox()

        def slow(grad: Any) -> Any:
            began.send()
            failed.wait()
            return ()

        def fail(grad: Any) -> Any:
            began.wait()
            raise ValueError("mine")

        class Watching(Listener):
            def task_failed(self, *args: Any) -> None:
                failed.send()

        waiting = [Pass(log=log, device=SIM_0) for _ in range(3)]
        busy = Call(slow, device=SIM_0)  # made last: runs first
        listener = Watching()
        with probe.installed(listener), pytest.raises(ValueError, match="mine"):
            engine.execute([(Pass(Call(fail), busy, *waiting), 0)], [1])

        assert log == []
        skipped = listener.of("node_skipped", "node")
        assert sorted(skipped) == sorted(node.id for node in waiting)

    def test_an_error_of_one_pass_does_not_touch_another_on_the_same_device(
        self, engine: Engine
    ):
        """M6, R3."""
        began, done = Mailbox(), Mailbox()
        sink = Sink(device=SIM_0)

        def slow(grad: Any) -> Any:
            began.send()
            done.wait()
            return (grad,)

        good = start_thread(
            lambda: engine.execute([(Call(slow, sink, device=SIM_0), 0)], [3])
        )
        began.wait()
        bad = start_thread(
            lambda: engine.execute(
                [(Call(raiser(ValueError("mine")), device=SIM_0), 0)], [1]
            )
        )
        done.send()

        assert good.result(60) == ()
        assert sink.received == [(3,)]
        with pytest.raises(ValueError, match="mine"):
            bad.result(60)

    @pytest.mark.parametrize("place", PLACES)
    def test_the_child_of_a_failed_node_may_be_tried_again(
        self, engine: Engine, place: str
    ):
        """R6: a node may catch the error of an inner pass and go on."""
        outcomes: list[str] = []

        def careful(grad: Any) -> Any:
            try:
                engine.execute([(Call(raiser(ValueError("mine"))), 0)], [grad])
            except ValueError as error:
                outcomes.append(str(error))
            again = Call(lambda grad: outcomes.append("again") or ())
            return engine.execute([(again, 0)], [grad])

        run_at(engine, place, careful)

        assert outcomes == ["mine", "again"]
        assert_works(engine)


class TestNothingIsLeft:
    def test_a_failed_pass_leaves_nothing_in_the_callers_queue(self, engine: Engine):
        """G12, R4: PyTorch keeps the sibling until the next backward."""
        gradient_refs: list[weakref.ref[np.ndarray]] = []

        def apply(grad: Any) -> Any:
            arrays = np.ones(1), np.ones(2)
            gradient_refs.extend(weakref.ref(array) for array in arrays)
            return arrays

        def fail(grad: Any) -> Any:
            raise ValueError("mine")

        sibling = Sink()
        sibling_ref = weakref.ref(sibling)
        root = Call(apply, sibling, Call(fail))
        gc.disable()
        try:
            with pytest.raises(ValueError, match="mine") as caught:
                engine.execute([(root, 0)], [1])
            del root, sibling, caught
            assert sibling_ref() is None
            assert [ref() for ref in gradient_refs] == [None, None]
        finally:
            gc.enable()

    @pytest.mark.parametrize("place", PLACES)
    def test_an_error_leaves_no_reference_cycle(self, engine: Engine, place: str):
        """F23: whoever drops the error drops all that it refers to."""

        class Token:
            pass

        refs: list[weakref.ref[Token]] = []
        freed = Mailbox()

        def fail(grad: Any) -> Any:
            token = Token()
            refs.append(weakref.ref(token, lambda _: freed.send()))
            raise ValueError("mine")

        run_at(engine, place, lambda grad: ())  # whatever is made once, is made
        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(ValueError):
                run_at(engine, place, fail)
            freed.wait()
            assert refs[0]() is None
        finally:
            gc.enable()

    @pytest.mark.parametrize("fails", [True, False])
    def test_a_thousand_passes_leave_no_object_behind(
        self, engine: Engine, fails: bool
    ):
        """F23: objects of other threads come and go, but not one for each pass."""
        num_passes = 1_000

        def apply(grad: Any) -> Any:
            if fails:
                raise ValueError("mine")
            return (grad,)

        def backward() -> None:
            with contextlib.suppress(ValueError):
                engine.execute([(Call(apply, Sink()), 0)], [1])

        backward()
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(num_passes):
                backward()
            after = len(gc.get_objects())
        finally:
            gc.enable()

        assert after - before < num_passes


def test_gradients_of_a_skipped_node_are_dropped_as_in_user_code(engine: Engine):
    """R3, F22: its finalizer may call backward."""
    found: list[bool] = []

    class Dying:
        def __del__(self) -> None:
            found.append(engine.worker().in_user_code)

    older = Sink()
    newer = Call(raiser(ValueError("mine")))
    with pytest.raises(ValueError, match="mine"):
        engine.execute([(Call(lambda grad: (1, Dying()), newer, older), 0)], [1])

    assert found == [True]
    assert engine.worker().in_user_code


class Interrupt(BaseException):
    """Stands for a KeyboardInterrupt, which would end the tests if one got through."""


class TestInterrupts:
    def test_running_out_of_stack_is_an_error_like_any_other(self, engine: Engine):

        def deeper(grad: Any) -> Any:
            return deeper(grad)

        with pytest.raises(RecursionError):
            engine.execute([(Call(deeper), 0)], [1])

        assert_works(engine)

    @pytest.mark.parametrize("method", ["node_started", "task_popped", "task_pushed"])
    def test_an_interrupt_in_the_engines_own_code_leaves_it_working(
        self, engine: Engine, method: str
    ):
        """F04, R7: a listener stands for a signal handler that raises there."""

        class Interrupting(probe.Probe):
            pass

        def interrupt(self: probe.Probe, *args: Any) -> None:
            raise KeyboardInterrupt

        setattr(Interrupting, method, interrupt)
        with (
            probe.installed(Interrupting()),
            pytest.raises(KeyboardInterrupt),
        ):
            engine.execute([(Pass(Pass(Sink())), 0)], [1])

        assert_works(engine)

    @pytest.mark.parametrize(
        ("place", "error"),
        [("caller", Interrupt), ("device", Interrupt), ("pool", EngineError)],
    )
    def test_an_interrupt_in_a_backward_of_a_callback_leaves_it_working(
        self, engine: Engine, place: str, error: type[BaseException]
    ):
        """F04, F09: the callback's error is no error like any other then."""

        class Interrupting(probe.Probe):
            num_popped = 0

            def task_popped(self, *args: Any) -> None:
                self.num_popped += 1
                if self.num_popped == 2:
                    raise Interrupt

        def callback() -> None:
            with probe.installed(Interrupting()):
                engine.execute([(Pass(Sink(), Sink(), Sink()), 0)], [1])

        def queue(grad: Any) -> Any:
            engine.queue_callback(callback)
            return ()

        with pytest.raises(error):
            run_at(engine, place, queue)

        left = engine.worker().ready_queue
        assert left is None or len(left) == 0
        assert not any(map(len, engine.queues))
        assert_works(engine)

    def test_an_interrupt_while_a_pass_is_given_up_leaves_it_working(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ):
        """F04: a node on a device hangs, and then Ctrl-C strikes as well."""
        monkeypatch.setattr(outcome, "QUIESCE_NS", 0)
        hangs, may_end = Mailbox(), Mailbox()

        def hang(grad: Any) -> Any:
            hangs.send()
            may_end.wait()
            return ()

        def fail(grad: Any) -> Any:
            hangs.wait()
            raise ValueError

        def interrupt(*args: Any) -> None:
            raise Interrupt

        root = Pass(Call(hang, device=SIM_0), Call(fail))
        with monkeypatch.context() as patch:
            patch.setattr(execution, "_abandon", interrupt)
            with pytest.raises(Interrupt):
                engine.execute([(root, 0)], [1])
        may_end.send()

        assert engine.worker().ready_queue is None
        assert_works(engine)


class TestOtherPasses:
    def test_a_nested_loop_runs_what_else_is_ready_on_its_thread(self, engine: Engine):
        """M6: while the inner pass waits for a device, the outer one goes on."""
        sibling_ran = Mailbox()
        log: list[str] = []

        def wait(grad: Any) -> Any:
            sibling_ran.wait()
            return (grad,)

        def reenter(grad: Any) -> Any:
            engine.execute([(Call(wait, Sink(), device=SIM_0), 0)], [grad])
            log.append("inner ended")
            return ()

        def sibling(grad: Any) -> Any:
            log.append("sibling")
            sibling_ran.send()
            return ()

        older = Call(sibling)
        newer = Call(reenter)
        engine.execute([(Pass(older, newer), 0)], [1])

        assert log == ["sibling", "inner ended"]

    def test_an_error_of_the_outer_pass_in_a_nested_loop_ends_the_outer_one(
        self, engine: Engine
    ):
        """M6, R2: the inner pass is not touched by it."""
        failed = Mailbox()
        log: list[str] = []

        def wait(grad: Any) -> Any:
            failed.wait()
            return (grad,)

        def reenter(grad: Any) -> Any:
            sink = Sink()
            engine.execute([(Call(wait, sink, device=SIM_0), 0)], [grad])
            log.append(f"inner got {sink.received}")
            return ()

        def fail(grad: Any) -> Any:
            failed.send()
            raise ValueError("mine")

        older = Call(fail)
        newer = Call(reenter)
        with pytest.raises(ValueError, match="mine"):
            engine.execute([(Pass(older, newer), 0)], [1])

        assert log == ["inner got [(1,)]"]
        assert_works(engine)


def test_a_callers_queue_is_kept_from_call_to_call(engine: Engine):
    """L11: one queue a thread, reentrant calls included."""
    listener = Listener()
    inner = Sink()
    root = Call(lambda grad: engine.execute([(inner, 0)], [grad]))

    with probe.installed(listener):
        engine.execute([(root, 0)], [1])
        engine.execute([(root, 0)], [1])

    assert len(set(listener.of("task_pushed", "queue"))) == 1


def test_callers_have_queues_of_their_own(engine: Engine):
    """L11, X4."""
    listener = Listener()

    def backward() -> None:
        engine.execute([(Sink(), 0)], [1])

    with probe.installed(listener):
        backward()
        in_thread(backward)

    assert len(set(listener.of("task_pushed", "queue"))) == 2


def test_every_task_that_is_pushed_is_popped_and_counted(engine: Engine):
    """L12, M5: the outstanding tasks of every pass end at none."""
    listener = Listener()
    leaf = AccumulateGrad(Leaf())
    ways = [Pass(leaf, device=device) for device in (SIM_0, SIM_1)]
    with probe.installed(listener):
        engine.execute([(Pass(*ways, leaf), 0)], [1])

    pushed = listener.of("task_pushed", "task", "node", "queue")
    popped = listener.of("task_popped", "task", "node", "queue")
    assert sorted(pushed) == sorted(popped)
    assert all(count > 0 for count in listener.of("task_pushed", "outstanding")[:-1])


def test_pushes_and_pops_are_in_the_order_of_one_priority_queue(engine: Engine):
    """Q2: what is popped has the largest sequence_nr of all that waited."""
    listener = Listener()
    bottom = [Sink() for _ in range(4)]
    middle = [Pass(one, other) for one, other in itertools.pairwise(bottom)]
    with probe.installed(listener):
        engine.execute([(Pass(*middle), 0)], [1])

    waiting: dict[int, int] = {}
    for _, method, fields in listener.calls:
        if method == "task_pushed":
            waiting[fields["node"]] = fields["sequence_nr"]
        elif method == "task_popped":
            assert waiting.pop(fields["node"]) >= max(waiting.values(), default=0)
    assert waiting == {}


def test_the_sleep_of_a_thread_is_reported_with_its_duration():
    """Q7: the caller has nothing to do while a device works."""
    listener = Listener()

    def work(grad: Any) -> Any:
        sleep(2)
        return (grad,)

    with Scheduler(Scripted({})) as scheduler, probe.installed(listener):
        engine, root = Engine(sync=scheduler), Call(work, Sink(), device=SIM_0)
        scheduler.run(caller=lambda: engine.execute([(root, 0)], [1]))
        scheduler.run(stop=engine.stop)

    (caller,) = {
        queue
        for queue, device in listener.of("queue_defined", "queue", "device")
        if device == -1
    }
    waits = listener.of("queue_waited", "queue", "waited_ns")
    assert [ns for queue, ns in waits if queue == caller] == [2_000_000_000]


class TestTheMutex:
    """N4: who changes what threads share holds the pass's mutex, and tells so."""

    @pytest.fixture
    def told(self, engine: Engine) -> Iterator[dict[str, set[bool]]]:
        """Yield each report of a pass -> whether its mutex was held, each time."""
        told: dict[str, set[bool]] = defaultdict(set)

        class Watching(probe.Probe):
            pass

        def watch(method: str) -> Any:
            def told_of(self: probe.Probe, task: int, *args: Any) -> None:
                (mutex,) = (
                    one.mutex for one in engine.passes.under_way() if one.id == task
                )
                told[method].add(mutex.locked())  # type: ignore[attr-defined]

            return told_of

        for method in (
            *("task_pushed", "gradient_buffered", "capture_taken"),
            *("task_failed", "task_completed", "node_completed"),
        ):
            setattr(Watching, method, watch(method))
        with probe.installed(Watching()):
            yield told

    def test_is_held_where_gradients_arrive(
        self, engine: Engine, told: dict[str, set[bool]]
    ):
        out = Sink()

        engine.execute(
            [(Pass(out, device=SIM_0), 0)],
            [1],
            outputs=[(out, 0)],
            accumulate_grad=False,
        )

        assert told == {
            "task_pushed": {True},
            "gradient_buffered": {True},
            "capture_taken": {True},
            "node_completed": {False},
            "task_completed": {True},
        }

    def test_is_held_where_streams_are_known(
        self, engine: Engine, notebook: Notebook, told: dict[str, set[bool]]
    ):
        root = Work(Work(), Work(device=NOTED_1))

        engine.execute([(root, 0)], [gradient(notebook)])

        assert told["gradient_buffered"] == told["task_pushed"] == {True}

    def test_is_held_where_an_error_wakes_the_caller(
        self, engine: Engine, told: dict[str, set[bool]]
    ):
        """M5."""
        node = Call(raiser(ValueError("mine")), device=SIM_0)

        with pytest.raises(ValueError, match="mine"):
            engine.execute([(node, 0)], [1])

        assert told == {"task_pushed": {True}, "task_failed": {True}}

    def test_is_held_where_a_private_pass_begins(
        self, engine: Engine, told: dict[str, set[bool]]
    ):
        engine.execute([(Sink(), 0)], [1])

        assert told["task_pushed"] == {True}
