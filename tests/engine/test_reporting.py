"""What a recording of a pass holds: events that are well-formed, whatever happens."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from gradviz.capture import record
from gradviz.engine import AccumulateGrad, Engine
from gradviz.trace import events as e
from gradviz.trace.model import Trace
from gradviz.trace.probe import Push, Role
from tests.engine.nodes import (
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Pass,
    Sink,
    raiser,
    run_at,
    run_nested,
    start_thread,
)


def recorded(function: Callable[[], Any], fails: bool = False) -> Trace:
    with record() as recording:
        if fails:
            with pytest.raises(ValueError, match="mine"):
                function()
        else:
            function()
    return recording.trace


def assert_well_formed(trace: Trace) -> None:
    """What holds of every trace of passes that have ended."""
    assert trace.losses.closed
    assert trace.losses.dropped == 0
    assert trace.losses.problems == ()
    assert_passes_end_once(trace)
    assert_tasks_are_pushed_then_popped(trace)
    assert_nodes_nest_on_their_threads(trace)
    assert_dependencies_count_down(trace)


def of(trace: Trace, kind: type[e.Event]) -> list[Any]:
    return [event for event in trace.events() if isinstance(event, kind)]


def assert_passes_end_once(trace: Trace) -> None:
    begun = [event.task for event in of(trace, e.TaskBegun)]
    ended = of(trace, e.TaskCompleted) + of(trace, e.TaskFailed)
    assert sorted(begun) == sorted(event.task for event in ended)
    assert list(trace.tasks) == begun


def assert_tasks_are_pushed_then_popped(trace: Trace) -> None:
    waiting: Counter[tuple[int, int, int]] = Counter()
    for event in trace.events():
        match event:
            case e.TaskPushed():
                waiting[event.queue, event.task, event.node] += 1
            case e.TaskPopped():
                waiting[event.queue, event.task, event.node] -= 1
                assert waiting[event.queue, event.task, event.node] >= 0
    assert set(waiting.values()) <= {0}


def assert_nodes_nest_on_their_threads(trace: Trace) -> None:
    running: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in trace.events():
        match event:
            case e.NodeStarted():
                running[event.thread].append((event.task, event.node))
            case e.NodeCompleted() | e.NodeFailed():
                assert running[event.thread].pop() == (event.task, event.node)
    assert not any(running.values())


def assert_dependencies_count_down(trace: Trace) -> None:
    remaining: dict[tuple[int, int], int] = {}
    for event in trace.events():
        key = event.task, event.node
        match event:
            case e.GradientBuffered():
                assert event.remaining == remaining.get(key, event.remaining + 1) - 1
                remaining[key] = event.remaining
            case e.TaskPushed(what=Push.NODE):
                assert remaining[key] == 0


def test_a_plain_pass(engine: Engine):
    leaf = AccumulateGrad(Leaf())
    root = Pass(Pass(leaf), Pass(leaf))

    trace = recorded(lambda: engine.execute([(root, 0)], [1]))

    assert_well_formed(trace)
    assert len(of(trace, e.NodeCompleted)) == 4
    assert [event.num_edges for event in of(trace, e.DependenciesCounted)] == [4]
    assert trace.nodes[root.id].name == "Pass"


def test_a_failing_pass(engine: Engine):
    failing = Call(raiser(ValueError("mine")))
    waiting = Pass()
    newer = Pass(failing, waiting)

    trace = recorded(
        lambda: engine.execute([(Pass(waiting, newer), 0)], [1]), fails=True
    )

    assert_well_formed(trace)
    (failure,) = of(trace, e.TaskFailed)
    assert (failure.node, failure.error) == (failing.id, "ValueError: mine")


def test_a_pass_over_devices(engine: Engine):
    sink = Sink()
    root = Pass(Pass(sink, device=SIM_0), Pass(sink, device=SIM_1), Pass(sink))

    trace = recorded(lambda: engine.execute([(root, 0)], [1]))

    assert_well_formed(trace)
    threads = {event.node: event.thread for event in of(trace, e.NodeStarted)}
    assert len(set(threads.values())) == 3
    names = {thread.name for thread in trace.threads.values()}
    assert {"gv_autograd_0", "gv_autograd_1"} <= names


def test_a_pass_that_fails_on_a_device(engine: Engine):
    slow = [Pass(Sink(device=SIM_1), device=SIM_1) for _ in range(5)]
    root = Pass(*slow, Call(raiser(ValueError("mine")), device=SIM_0))

    trace = recorded(lambda: engine.execute([(root, 0)], [1]), fails=True)

    assert_well_formed(trace)


def test_a_pass_inside_a_pass(engine: Engine):
    trace = recorded(lambda: run_nested(engine, 2, lambda grad: ()))

    assert_well_formed(trace)
    depths = [event.reentrant_depth for event in of(trace, e.TaskBegun)]
    assert depths == [0, 1, 2]
    assert len(of(trace, e.ReentrantEntered)) == len(of(trace, e.ReentrantLeft)) == 2


def test_a_pass_that_needs_the_pool(engine: Engine):
    trace = recorded(lambda: run_at(engine, "pool", lambda grad: ()))

    assert_well_formed(trace)
    assert [event.num_threads for event in of(trace, e.PoolThreadSpawned)] == [1]
    roles = {event.role for event in of(trace, e.ThreadStarted)}
    assert {Role.CALLER, Role.POOL} <= roles


def test_a_pass_that_fails_in_the_pool(engine: Engine):
    trace = recorded(
        lambda: run_at(engine, "pool", raiser(ValueError("mine"))), fails=True
    )

    assert_well_formed(trace)
    assert len(of(trace, e.TaskFailed)) == 62


def test_a_restricted_pass(engine: Engine):
    wanted = Sink()
    root = Pass(Pass(wanted), Pass(Sink()))

    trace = recorded(
        lambda: engine.execute(
            [(root, 0)],
            [1],
            accumulate_grad=False,
            outputs=[(wanted, 0), (wanted, 0)],
        )
    )

    assert_well_formed(trace)
    captures = of(trace, e.CaptureTaken)
    assert [event.output_index for event in captures] == [0, 1]


def test_callbacks_and_hooks(engine: Engine):
    def apply(grad: Any) -> Any:
        engine.queue_callback(lambda: None)
        engine.queue_callback(lambda: None)
        return ()

    trace = recorded(lambda: engine.execute([(Call(apply), 0)], [1]))

    assert_well_formed(trace)
    assert [event.index for event in of(trace, e.CallbackRun)] == [0, 1]


def test_many_passes_at_once(engine: Engine):
    """Rows of several threads fit together."""
    leaf = AccumulateGrad(Leaf())
    root = Pass(Pass(leaf, device=SIM_0), Pass(leaf, device=SIM_1))

    def backwards() -> None:
        futures = [
            start_thread(lambda: engine.execute([(root, 0)], [1], keep_graph=True))
            for _ in range(8)
        ]
        for future in futures:
            future.result(10)

    trace = recorded(backwards)

    assert_well_formed(trace)
    assert len(trace.tasks) == 8
