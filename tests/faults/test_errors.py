"""A node raises: on which thread, where in the pass, how many at once, and what."""

import threading
from typing import Any

import pytest

from gradviz.backends.device import CPU
from gradviz.engine import AccumulateGrad, Edge, Engine
from gradviz.engine.tasks import outcome
from gradviz.testing.event_list import EventList
from gradviz.trace import probe
from gradviz.trace.events import NodeFailed, NodeStarted, TaskFailed
from tests.faults.scene import (
    DEVICES,
    PATIENCE_SECONDS,
    PLACES,
    Call,
    Leaf,
    nothing,
    on_thread,
    run,
    run_at,
    wait_until,
)


class NotAnException(BaseException):
    """An exception that a bare ``except Exception`` lets through."""


class Refusing(Leaf):
    """A leaf whose ``.grad`` cannot be set."""

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = None
        super().__init__()
        self.error = error

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "grad" and getattr(self, "error", None):
            raise self.error
        super().__setattr__(name, value)


def raising(error: BaseException) -> Any:
    def fail() -> None:
        raise error

    return fail


CHAIN = ("root", "middle", "last")

#: How many of the chain start if the error is at that position.
NUM_STARTED = {"root": 1, "middle": 2, "last": 3, "leaf": 3}


@pytest.mark.parametrize("position", NUM_STARTED)
@pytest.mark.parametrize("place", PLACES)
def test_a_nodes_error_reaches_the_caller_and_no_further_node_starts(
    engine: Engine, place: str, position: str
):
    """F01. A fork before the node that fails leaves a leaf that has its gradient."""
    error, started, filled = ValueError(position), [], Leaf()
    device = DEVICES[0] if place == "device" else CPU

    def node(name: str, *receivers: Any) -> Call:
        def function() -> None:
            started.append(name)
            if name == position:
                raise error

        return Call(function, *receivers, device=device)

    leaf = Refusing(error) if position == "leaf" else Leaf()
    behind_leaf = AccumulateGrad(leaf, device=device)
    last = node("last", behind_leaf)
    chain = node("middle", last)
    first = AccumulateGrad(filled, device=device)

    with pytest.raises(ValueError, match=position) as caught:
        run_at(engine, place, lambda: node("root").function(), first, chain)

    assert caught.value is error
    assert caught.traceback[-1].name in {"function", "__setattr__"}
    assert started == list(CHAIN[: NUM_STARTED[position]])
    assert filled.grad == (None if position == "root" else 1)
    assert leaf.grad is None


@pytest.mark.parametrize("num_devices", [1, 8])
def test_of_errors_raised_at_once_one_is_raised_and_all_are_reported(
    engine: Engine, num_devices: int
):
    """F02."""
    together = threading.Barrier(num_devices + 1)

    def fail() -> None:
        together.wait(PATIENCE_SECONDS)
        raise ValueError(threading.current_thread().name)

    places = (CPU, *DEVICES[:num_devices])
    failing = [Call(fail, device=device) for device in places]
    events = EventList()

    with probe.installed(events), pytest.raises(ValueError, match=r"Thread|autograd"):
        run(engine, Call(nothing, *failing))

    kinds = [type(event) for event in events.events]
    assert kinds.count(NodeFailed) == num_devices + 1
    assert kinds.count(TaskFailed) == 1


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        StopIteration(4),
        NotAnException(),
        MemoryError(),
        RecursionError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("place", PLACES)
def test_an_exception_of_any_type_in_a_node_is_raised_by_the_call(
    engine: Engine, place: str, error: BaseException
):
    """F03: the same object, and the thread that ran the node lives on."""
    threads: list[threading.Thread] = []

    def fail() -> None:
        threads.append(threading.current_thread())
        raise error

    with pytest.raises(type(error)) as caught:
        run_at(engine, place, fail)
    run_at(engine, place, lambda: threads.append(threading.current_thread()))

    assert caught.value is error
    assert threads[0] is threads[1]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError()], ids=repr)
def test_a_call_that_fails_waits_for_its_nodes_on_other_threads(
    engine: Engine, error: BaseException
):
    """F05, I6: after the call has returned nothing of it runs, and no leaf changes."""
    is_running, leaf, log = threading.Event(), Leaf(), []

    def work() -> None:
        task = engine.current_graph_task
        assert task is not None
        is_running.set()
        wait_until(lambda: task.outcome.has_error.value)
        log.append("the device's node ended")

    def fail() -> None:
        assert is_running.wait(PATIENCE_SECONDS)
        log.append("the caller's node fails")
        raise error

    slow = Call(work, AccumulateGrad(leaf, device=DEVICES[0]), device=DEVICES[0])

    with pytest.raises(type(error)):
        run(engine, Call(nothing, slow, Call(fail)))

    assert log == ["the caller's node fails", "the device's node ended"]
    assert leaf.grad is None


def test_a_call_that_fails_does_not_wait_for_ever(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """F05: the wait is bounded, and what comes after the node does not run."""
    monkeypatch.setattr(outcome, "QUIESCE_NS", 1)
    is_running, may_end, has_ended = (threading.Event() for _ in range(3))
    leaf = Leaf()

    def hang() -> None:
        is_running.set()
        may_end.wait(PATIENCE_SECONDS)

    def fail() -> None:
        is_running.wait(PATIENCE_SECONDS)
        raise ValueError("fails")

    slow = Call(hang, AccumulateGrad(leaf, device=DEVICES[0]), device=DEVICES[0])
    try:
        with pytest.raises(ValueError, match="fails"):
            run(engine, Call(nothing, slow, Call(fail)))
    finally:
        may_end.set()
    run(engine, Call(has_ended.set, device=DEVICES[0]))

    assert has_ended.is_set()
    assert leaf.grad is None


def test_an_exit_in_a_backward_of_another_thread_is_raised_there(engine: Engine):
    """F06: `sys.exit` in a thread is silent, so the call must not swallow it."""
    with pytest.raises(SystemExit) as caught:
        on_thread(lambda: run(engine, Call(raising(SystemExit(5)))))

    assert caught.value.code == 5


@pytest.mark.parametrize("place", PLACES)
def test_an_error_while_another_one_propagates_keeps_the_first_as_its_context(
    engine: Engine, place: str
):
    """F10."""
    first, second = ValueError("first"), KeyError("second")

    def fail() -> None:
        try:
            raise first
        finally:
            raise second

    with pytest.raises(KeyError) as caught:
        run_at(engine, place, fail)

    assert caught.value is second
    assert second.__context__ is first


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_fails_while_it_is_dropped_harms_nothing(
    engine: Engine, place: str, monkeypatch: pytest.MonkeyPatch
):
    """F10: what ``__del__`` raises goes where Python sends it, not into the pass."""
    unraisable: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)

    class Dropped(int):
        def __del__(self) -> None:
            raise RuntimeError("in __del__")

    def fail() -> Any:
        raise ValueError("in the node")

    device = DEVICES[0] if place == "device" else CPU
    last = Call(fail, device=device)

    with pytest.raises(ValueError, match="in the node"):
        run_at(engine, place, lambda: (Dropped(1),), last)

    assert [str(one.exc_value) for one in unraisable] == ["in __del__"]


@pytest.mark.parametrize("place", PLACES)
def test_a_failed_pass_leaves_nothing_for_the_next_one_to_run(
    engine: Engine, place: str
):
    """F24."""
    device = DEVICES[0] if place == "device" else CPU
    late = [Call(nothing, device=device) for _ in range(20)]
    fails = Call(raising(ValueError("fails")), device=device)
    events = EventList()

    with pytest.raises(ValueError, match="fails"):
        run_at(engine, place, nothing, *late, fails)
    with probe.installed(events):
        run_at(engine, place, nothing)

    started = {event.node for event in events.events if isinstance(event, NodeStarted)}
    assert not started & {node.id for node in (*late, fails)}


def test_an_error_goes_through_every_backward_inside_a_backward(engine: Engine):
    """R6."""
    error = ValueError("at the bottom")

    with pytest.raises(ValueError, match="at the bottom") as caught:
        run(engine, Call(lambda: run_at(engine, "pool", raising(error))))

    assert caught.value is error


def test_the_edge_of_a_pass_that_failed_can_be_used_again(engine: Engine):
    leaf = Leaf()
    fails = [True]

    def once() -> None:
        if fails.pop():
            fails.append(False)
            raise ValueError("once")

    root = Call(once, AccumulateGrad(leaf))

    with pytest.raises(ValueError, match="once"):
        run(engine, root)
    engine.execute([Edge(root, 0)], [2])

    assert leaf.grad == 2
