"""Recordings of passes: their events are well-formed in every case."""

import enum
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from gradviz.capture.session import record
from gradviz.engine import AccumulateGrad, Edge, Engine, Node
from gradviz.engine.graph.node import NodeHooks
from gradviz.engine.threads.hook_calls import ModuleHooks
from gradviz.testing.event_list import EventList
from gradviz.trace import events as e
from gradviz.trace.format.model import Trace
from gradviz.trace.node_reports import NodeReports
from gradviz.trace.probe import Hook, How, Push, Role, Skip, installed
from gradviz.trace.reporting.hook_names import RegisteredHook
from tests.engine.nodes import (
    SIM_0,
    SIM_1,
    Call,
    Leaf,
    Listener,
    Mailbox,
    Pass,
    Sink,
    raiser,
    run_at,
    run_nested,
    start_thread,
    thread_name,
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
    """Assert the rules of every trace of passes that have ended."""
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


def nothing(*values: Any) -> None:
    """A hook that changes nothing."""


def hooked(node: Node) -> Node:
    """`node` with two hooks of each kind that nodes have, one of `retains_grad`."""
    hooks = node.hooks_to_add_to()
    hooks.tensor_pre = ((0, nothing), (0, nothing))
    hooks.retains_grad = {0: nothing}
    hooks.pre = hooks.post = (nothing, nothing)
    if isinstance(node, AccumulateGrad):
        node.post_hooks = (nothing, nothing)
    return node


def call_module_hooks(around: Any, *_: Any) -> None:
    """Calls a hook of each kind that modules have."""
    for kind in (Hook.MODULE_PRE, Hook.MODULE):
        with around(kind, 0, RegisteredHook(nothing, "net.py:3"), "net.0"):
            pass


def with_module_hooks() -> Node:
    leaf = AccumulateGrad(Leaf())
    leaf.hooks_to_add_to().post = (ModuleHooks(call_module_hooks),)
    return leaf


def test_hooks_of_a_module_are_told_in_place_of_the_one_that_calls_them(engine: Engine):
    trace = recorded(lambda: engine.execute([(with_module_hooks(), 0)], [1]))
    before, after = of(trace, e.HookCalled)
    assert (before.hook, after.hook) == (Hook.MODULE_PRE, Hook.MODULE)
    assert (before.function, before.registered_at) == ("nothing", "net.py:3")
    assert before.target == "net.0"
    assert before.defined_at.partition(":")[0] == __file__
    assert len(list(of(trace, e.HookReturned))) == 2


def hooks_of(trace: Trace) -> list[tuple[Hook, int]]:
    return [(event.hook, event.index) for event in of(trace, e.HookCalled)]


def test_every_hook_of_a_leaf_is_told_after_what_it_comes_after(engine: Engine):
    leaf = hooked(AccumulateGrad(Leaf()))

    trace = recorded(lambda: engine.execute([(leaf, 0)], [1]))

    assert_well_formed(trace)
    before = [(Hook.TENSOR_PRE, 0), (Hook.TENSOR_PRE, 1), (Hook.RETAINS_GRAD, 0)]
    before += [(Hook.PRE, 0), (Hook.PRE, 1)]
    after = [
        (kind, index)
        for kind in (Hook.POST_ACCUMULATE_GRAD, Hook.POST)
        for index in (0, 1)
    ]
    assert hooks_of(trace) == [*before, *after]
    (accumulated,) = of(trace, e.GradientAccumulated)
    seqs = [event.seq for event in of(trace, e.HookCalled)]
    assert seqs[len(before) - 1] < accumulated.seq < seqs[len(before)]


def test_a_hook_is_told_when_it_has_returned_and_not_when_it_has_raised(
    engine: Engine,
):
    def refuse(*_: object) -> None:
        raise ValueError("no")

    node = Sink()
    node.hooks_to_add_to().pre = (nothing, refuse)

    def execute() -> None:
        with pytest.raises(ValueError, match="no"):
            engine.execute([(node, 0)], [1])

    trace = recorded(execute)

    called, refused = of(trace, e.HookCalled)
    (returned,) = of(trace, e.HookReturned)
    assert (returned.hook, returned.index) == (called.hook, called.index)
    assert called.seq < returned.seq < refused.seq


def test_the_hooks_of_what_is_captured_and_does_not_run_are_told(engine: Engine):
    wanted = hooked(Sink())

    trace = recorded(
        lambda: engine.execute(
            [(Pass(wanted), 0)], [1], accumulate_grad=False, outputs=[(wanted, 0)]
        )
    )

    assert_well_formed(trace)
    assert hooks_of(trace) == [
        *((Hook.TENSOR_PRE, 0), (Hook.TENSOR_PRE, 1), (Hook.RETAINS_GRAD, 0)),
    ]
    (captured,) = of(trace, e.CaptureTaken)
    assert all(event.seq < captured.seq for event in of(trace, e.HookCalled))


def all_ways_to_accumulate(engine: Engine) -> None:
    """Run passes to leaves, so that a ``.grad`` changes in all ways there are."""
    array, number = AccumulateGrad(Leaf()), AccumulateGrad(Leaf(1.0))
    engine.execute([(Call(lambda grad: (grad * 2,), array), 0)], [np.ones(2)])  # stolen
    engine.execute([(array, 0)], [np.ones(2)])  # in place
    engine.execute([(number, 0)], [1.0])  # out of place
    engine.execute([(AccumulateGrad(Leaf()), 0)], [np.ones(2)])  # copied
    engine.execute([(array, 0)], [None])


def fail_while_a_device_is_busy(engine: Engine) -> None:
    """Run a pass that fails while a node waits for the thread of a device."""
    began, failed = Mailbox(), Mailbox()

    class Watching(Listener):
        def task_failed(self, *args: Any) -> None:
            failed.send()

    def work(grad: Any) -> Any:
        began.send()
        failed.wait()
        return ()

    def fail(grad: Any) -> Any:
        began.wait()
        raise ValueError("mine")

    waiting, busy = Pass(device=SIM_0), Call(work, device=SIM_0)
    with installed(Watching()):
        engine.execute([(Pass(Call(fail), busy, waiting), 0)], [1])


def test_every_member_of_every_enum_is_reported(engine: Engine):
    """A member that nothing reports is in no trace, nor in the vocabulary."""
    passes = [
        recorded(lambda: all_ways_to_accumulate(engine)),
        recorded(lambda: engine.execute([(hooked(AccumulateGrad(Leaf())), 0)], [1])),
        recorded(lambda: engine.execute([(with_module_hooks(), 0)], [1])),
        recorded(lambda: run_at(engine, "pool", lambda grad: ())),
        recorded(lambda: fail_while_a_device_is_busy(engine), fails=True),
    ]

    reported: dict[type, set[Any]] = defaultdict(set)
    for event in (event for trace in passes for event in trace.events()):
        for column in e.own_columns(type(event)):
            reported[column.type].add(getattr(event, column.name))
    enums = {kind for kind in reported if issubclass(kind, enum.Enum)}
    assert enums == {Push, How, Skip, Role, Hook}
    reported[How].add(How.UNKNOWN)  # of an engine that reports nothing itself
    assert {kind: reported[kind] for kind in enums} == {one: set(one) for one in enums}


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
            future.result(60)

    trace = recorded(backwards)

    assert_well_formed(trace)
    assert len(trace.tasks) == 8


def _graph(case: str) -> Node:
    """The root of a graph in which nodes take the short way, the long one, or both."""
    leaf = AccumulateGrad(Leaf())
    match case:
        case "a chain":
            return Pass(Pass(Pass(leaf)))
        case "a fan":
            return Pass(*(Pass(leaf) for _ in range(3)))
        case "a diamond with a way round":
            join = Pass(leaf, inputs=2)
            return Pass(Edge(join, 0), Pass(Edge(join, 1)), Pass(Edge(join, 1)), None)
        case "nothing flows":
            return Call(lambda _: (None,), Pass(leaf))
        case "a second input":
            return Pass(Edge(Pass(leaf, inputs=2), 1))
        case "a hook":
            hooked = Pass(leaf)
            hooked.hooks = NodeHooks()
            hooked.hooks.post = (lambda outputs, inputs: None,)
            return Pass(hooked)
        case _:
            raise AssertionError(case)


@pytest.mark.parametrize(
    "case",
    [
        "a chain",
        "a fan",
        "a diamond with a way round",
        "nothing flows",
        "a second input",
        "a hook",
    ],
)
def test_a_listener_to_joined_reports_hears_the_same_as_one_to_single_reports(
    engine: Engine, case: str
):
    root = _graph(case)
    engine.execute([(root, 0)], [1], keep_graph=True)  # the first finds no `.grad`
    listener = EventList(lambda: 0)
    with installed(listener):
        engine.execute([(root, 0)], [1], keep_graph=True)
    trace = recorded(lambda: engine.execute([(root, 0)], [1], keep_graph=True))

    def told(events: Iterable[e.Event]) -> list[dict[str, Any]]:
        own = {"seq", "t_ns", "thread", "task", "location", "thread_time_ns"}
        return [
            {"kind": type(event)}
            | {
                name: getattr(event, name)
                for name in event.__struct_fields__
                if name not in own
            }
            for event in events
        ]

    assert told(trace.events()) == told(listener.events)


def test_a_link_of_a_chain_is_told_in_full(engine: Engine):
    """The six events of a plain node, in their order."""
    last = Sink()
    link = Pass(last)
    root = Pass(link)
    trace = recorded(lambda: engine.execute([(root, 0)], [np.ones(3)]))

    mine = [
        event
        for event in trace.events()
        if event.node == link.id
        or getattr(event, "pushed_by", None) == link.id
        or getattr(event, "producer", None) == link.id
    ]
    assert [type(event) for event in mine] == [
        e.GradientBuffered,
        e.TaskPushed,
        e.TaskPopped,
        e.NodeStarted,
        e.BufferFreed,
        e.GradientBuffered,
        e.TaskPushed,
        e.NodeCompleted,
    ]
    buffered, pushed, popped, _, freed, sent, ready, _ = mine
    assert (buffered.producer, buffered.remaining, buffered.size_bytes) == (
        root.id,
        0,
        24,
    )
    assert (pushed.queue_length, pushed.outstanding, popped.queue_length) == (1, 1, 0)
    assert freed.size_bytes == 24
    assert (sent.node, sent.input_nr, sent.how) == (last.id, 0, How.FIRST)
    assert (ready.node, ready.sequence_nr) == (last.id, last.sequence_nr)


def test_a_thread_finds_out_once_a_node_whom_it_reports_it_to(engine: Engine):
    """Each time takes as long as an event, on a thread that has not called the pass."""

    class Asked(Listener):
        def __init__(self) -> None:
            super().__init__()
            self.askers: Counter[str] = Counter()

        def for_this_thread(self) -> NodeReports:
            self.askers[thread_name()] += 1
            return super().for_this_thread()

    leaf = AccumulateGrad(Leaf(), device=SIM_0)
    both = Pass(leaf, leaf, device=SIM_0)
    root = Pass(both, device=SIM_0)
    listener = Asked()
    with installed(listener):
        engine.execute([(root, 0)], [1])

    assert listener.of("node_completed", "node") == [root.id, both.id, leaf.id]
    assert listener.askers["gv_autograd_0"] == 3
