import itertools
from collections.abc import Callable

import pytest

from gradviz.trace.checking.lifecycle import (
    check_events,
    judge,
)
from gradviz.trace.events import (
    BufferFreed,
    ForwardBegun,
    ForwardEnded,
    GradientBuffered,
    HookCalled,
    NodeCompleted,
    NodeCreated,
    NodeSkipped,
    NodeStarted,
    OptimizerBegun,
    OptimizerEnded,
    TaskBegun,
    TaskPopped,
    TaskPushed,
    kind_name,
)
from gradviz.trace.probe import Hook, Push, Role, Skip
from gradviz.trace.reading.reader import parse_trace
from gradviz.trace.reporting.hook_names import HookName
from tests.trace.reports import begin_pass


@pytest.fixture
def history(bench):
    """The events of one pass over three nodes, root 2 and leaf 0."""
    bench.engine.backward()
    return [event for event in bench.events() if not isinstance(event, NodeCreated)]


def reasons(events, **kwargs):
    return [violation.reason for violation in check_events(events, **kwargs)]


def where(events, kind, node=None):
    """The place of the first event of a kind (of a node)."""
    return next(
        place
        for place, event in enumerate(events)
        if type(event) is kind and node in (None, event.node)
    )


def test_a_pass_as_the_engine_reports_it_is_possible(bench):
    for task in range(3):
        bench.engine.backward(task, length=4)

    assert judge(bench.trace()).violations == ()


def test_every_beginning_of_a_pass_is_possible(history):
    for end in range(len(history)):
        assert reasons(history[:end]) == []


@pytest.mark.parametrize("kind", [TaskPushed, TaskPopped, NodeStarted], ids=kind_name)
def test_nothing_happens_twice(history, kind):
    place = where(history, kind, node=1)
    twice = [*history[: place + 1], *history[place:]]

    assert reasons(twice)


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        (TaskPushed, "its node is waiting"),
        (TaskPopped, "its node is queued"),
        (NodeStarted, "its node is popped"),
        (NodeCompleted, "it leaves behind nodes [1]"),
        (GradientBuffered, "its node has got no gradient"),
        (TaskBegun, "its task is unknown"),
    ],
)
def test_nothing_follows_out_of_nowhere(history, missing, reason):
    node = None if missing is TaskBegun else 1
    del history[where(history, missing, node)]

    assert reason in reasons(history)[0]


@pytest.mark.parametrize(
    ("early", "late"),
    [(TaskPushed, TaskPopped), (TaskPopped, NodeStarted), (NodeStarted, NodeCompleted)],
)
def test_nothing_precedes_its_cause(history, early, late):
    one, other = where(history, early, 1), where(history, late, 1)
    history[one], history[other] = history[other], history[one]

    assert reasons(history)


def test_a_task_pops_from_the_queue_it_was_pushed_to(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.task_pushed(0, 1, 5, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_popped(0, 1, 6, 0)

    assert reasons(bench.events()) == ["its node was pushed to queue 5"]


def begin(recorder, task=0, parent=-1, depth=0):
    begin_pass(recorder, task, parent=parent, reentrant_depth=depth)
    recorder.dependencies_counted(task, 1, 0)


def run(recorder, task, node, inside: Callable[[], None] | None = None):
    recorder.task_pushed(task, node, 0, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_popped(task, node, 0, 0)
    recorder.node_started(task, node)
    if inside is not None:
        inside()
    recorder.node_completed(task, node)


def test_a_completed_task_leaves_no_node_behind(bench):
    begin(bench.recorder)
    bench.recorder.task_pushed(0, 1, 5, 0, 0, 1, 1, -1, Push.ROOT)
    bench.recorder.task_completed(0)

    assert reasons(bench.events()) == ["it leaves behind nodes [1]"]


def test_a_failed_task_may_leave_anything_behind(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.thread_started(-1, Role.CALLER)
    recorder.task_pushed(0, 1, 5, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_pushed(0, 2, 5, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_popped(0, 1, 5, 1)
    recorder.node_started(0, 1)
    recorder.node_failed(0, 1, "boom")
    recorder.task_failed(0, 1, "boom")
    recorder.thread_exited(-1, Role.CALLER)
    recorder.task_popped(0, 2, 5, 0)
    recorder.node_skipped(0, 2, Skip.ERROR)

    assert reasons(bench.events()) == []


def test_nothing_starts_once_the_caller_has_left(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.thread_started(-1, Role.CALLER)
    recorder.task_pushed(0, 1, 5, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_popped(0, 1, 5, 1)
    recorder.task_failed(0, -1, "boom")
    recorder.thread_exited(-1, Role.CALLER)
    recorder.node_started(0, 1)

    assert reasons(bench.events()) == ["its task is left"]


def test_nothing_starts_in_a_completed_task(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.task_completed(0)
    run(recorder, 0, 1)

    assert "its task is completed" in reasons(bench.events())


def test_a_call_is_not_left_without_an_outcome(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.thread_started(-1, Role.CALLER)
    recorder.thread_exited(-1, Role.CALLER)

    assert reasons(bench.events()) == ["task 0 is left while it is counted"]


def test_a_nested_call_is_not_left_without_an_outcome(bench):
    def nested():
        begin(bench.recorder, 1, parent=0, depth=1)
        bench.recorder.reentrant_entered(1, 1)
        bench.recorder.reentrant_left(1, 1)

    begin(bench.recorder)
    run(bench.recorder, 0, 1, nested)

    assert reasons(bench.events()) == ["task 1 is left while it is counted"]


def test_a_backward_inside_a_backward_is_possible(bench):
    recorder = bench.recorder

    def nested():
        begin(recorder, 1, parent=0, depth=1)
        recorder.reentrant_entered(1, 1)
        run(recorder, 1, 2)
        recorder.task_completed(1)
        recorder.reentrant_left(1, 1)

    begin(recorder)
    recorder.thread_started(-1, Role.CALLER)
    run(recorder, 0, 1, nested)
    recorder.task_completed(0)
    recorder.thread_exited(-1, Role.CALLER)

    assert reasons(bench.events()) == []


def test_nodes_of_a_thread_do_not_overlap(bench):
    recorder = bench.recorder
    begin(recorder)
    for node in (1, 2):
        recorder.task_pushed(0, node, 0, 0, 0, 1, 1, -1, Push.ROOT)
        recorder.task_popped(0, node, 0, 0)
        recorder.node_started(0, node)
    recorder.node_completed(0, 1)

    (reason,) = reasons(bench.events())
    assert reason == (
        "its thread is still inside of what node_started began for node 2 of task 0"
    )


def test_a_node_that_an_interrupt_left_open_is_forgiven(bench):
    recorder = bench.recorder

    def nested():
        begin(recorder, 1, parent=0, depth=1)
        recorder.reentrant_entered(1, 1)
        recorder.task_pushed(1, 2, 0, 0, 0, 1, 1, -1, Push.ROOT)
        recorder.task_popped(1, 2, 0, 0)
        recorder.node_started(1, 2)
        recorder.task_failed(1, -1, "KeyboardInterrupt")
        recorder.reentrant_left(1, 1)

    begin(recorder)
    run(recorder, 0, 1, nested)

    assert reasons(bench.events()) == []


def begin_nested(recorder):
    """Node 1 of task 0 has called for task 1, which is complete and never left."""
    begin(recorder)
    recorder.thread_started(-1, Role.CALLER)
    recorder.task_pushed(0, 1, 0, 0, 0, 1, 1, -1, Push.ROOT)
    recorder.task_popped(0, 1, 0, 0)
    recorder.node_started(0, 1)
    begin(recorder, 1, parent=0, depth=1)
    recorder.reentrant_entered(1, 1)
    recorder.task_completed(1)


def test_a_call_inside_of_a_node_that_fails_may_be_left_open(bench):
    """An interrupt struck as it was left."""
    begin_nested(bench.recorder)
    bench.recorder.node_failed(0, 1, "KeyboardInterrupt")

    assert reasons(bench.events()) == []


def test_a_call_inside_of_a_task_that_has_failed_may_be_left_open(bench):
    begin_nested(bench.recorder)
    bench.recorder.task_failed(0, -1, "KeyboardInterrupt")
    bench.recorder.thread_exited(-1, Role.CALLER)

    assert reasons(bench.events()) == []


def test_a_call_inside_of_a_node_that_completes_is_left_before(bench):
    begin_nested(bench.recorder)
    bench.recorder.node_completed(0, 1)

    (reason,) = reasons(bench.events())
    assert reason == (
        "its thread is still inside of what reentrant_entered began for node -1 of "
        "task 1"
    )


@pytest.mark.parametrize("outcome", ["task_completed", "task_failed"])
def test_an_interrupt_may_strike_right_after_an_outcome(bench, outcome):
    begin(bench.recorder)
    bench.recorder.thread_started(-1, Role.CALLER)
    arguments = (-1, "boom") if outcome == "task_failed" else ()
    getattr(bench.recorder, outcome)(0, *arguments)
    bench.recorder.task_failed(0, -1, "KeyboardInterrupt")
    bench.recorder.thread_exited(-1, Role.CALLER)

    assert reasons(bench.events()) == []


def test_a_task_that_was_left_does_not_fail_any_more(bench):
    begin(bench.recorder)
    bench.recorder.thread_started(-1, Role.CALLER)
    bench.recorder.task_completed(0)
    bench.recorder.thread_exited(-1, Role.CALLER)
    bench.recorder.task_failed(0, -1, "KeyboardInterrupt")

    assert reasons(bench.events()) == ["its task is left"]


def test_a_device_thread_older_than_the_recording_may_exit(bench):
    bench.recorder.thread_exited(0, Role.DEVICE)

    assert reasons(bench.events()) == []


def test_a_thread_ends_only_what_it_began(bench):
    bench.recorder.reentrant_left(1, 1)

    assert "its thread never began that" in reasons(bench.events())


def test_a_wake_up_is_popped_only_if_it_was_pushed(bench):
    recorder = bench.recorder
    begin(recorder)
    recorder.task_completed(0)
    recorder.task_pushed(0, -1, 0, 0, 0, 1, 1, -1, Push.WAKE_UP)
    recorder.task_popped(0, -1, 0, 0)
    recorder.task_popped(0, -1, 0, 0)

    assert reasons(bench.events()) == ["no wake-up was pushed to queue 0"]


def test_a_callback_runs_before_the_end(bench):
    begin(bench.recorder)
    bench.recorder.callback_run(0, 0)
    bench.recorder.task_completed(0)
    bench.recorder.callback_run(0, 1)

    assert reasons(bench.events()) == ["its task is completed"]


@pytest.mark.parametrize("kind", [HookCalled, BufferFreed, NodeSkipped], ids=kind_name)
def test_only_a_running_node_does_anything(bench, kind):
    recorder = bench.recorder
    begin(recorder)
    run(recorder, 0, 1)
    calls = {
        HookCalled: lambda: recorder.hook_called(0, 1, Hook.PRE, 0, *HookName()),
        BufferFreed: lambda: recorder.buffer_freed(0, 1, 8),
        NodeSkipped: lambda: recorder.node_skipped(0, 1, Skip.ERROR),
    }
    calls[kind]()

    assert reasons(bench.events()) == ["its node is ended"]


def test_losses_excuse_what_is_missing(history):
    for gone in itertools.combinations(range(len(history)), 2):
        left = [event for place, event in enumerate(history) if place not in gone]
        assert reasons(left, is_complete=False) == []


def test_losses_do_not_excuse_a_second_start(history):
    start = where(history, NodeStarted, 1)

    assert reasons([*history, history[start]], is_complete=False) == [
        "its task is left",
        "its node is ended",
    ]


def test_a_damaged_trace_is_judged_as_one_with_losses(bench):
    bench.engine.backward()
    bench.recorder.task_popped(5, 1, 0, 0)
    trace = parse_trace(bench.data()[:-1])

    assert not trace.losses.is_complete
    assert judge(trace).violations == ()


def test_a_violation_says_where_and_what(bench):
    bench.recorder.node_started(0, 1)

    first = judge(bench.trace()).violations[0]
    assert str(first) == "event 0, node_started: its task is unknown"


def calls(*steps, thread=0):
    """Calls of modules: 1 begins the call 1, -1 ends it, -1j lets it raise."""
    common = {"t_ns": 0, "thread": thread, "task": -1, "node": -1}
    return [
        ForwardBegun(seq=seq, call=step, module="Net", name="Net", **common)
        if isinstance(step, int) and step > 0
        else ForwardEnded(
            seq=seq,
            call=int(abs(step)),
            failed=isinstance(step, complex),
            **common,
        )
        for seq, step in enumerate(steps)
    ]


def test_modules_are_called_inside_of_each_other():
    assert reasons(calls(1, 2, -2, 3, -3, -1, 4, -4)) == []


def test_a_module_that_raises_may_leave_others_open():
    assert reasons(calls(1, 2, 3, -1j, 4, -4)) == []


def test_a_call_that_was_left_by_another_one_cannot_end():
    assert reasons(calls(1, 2, -1, -2)) == ["its thread never began that"]


def test_a_call_ends_once_and_on_its_thread():
    assert reasons(calls(1, -1, -1)) == ["its thread never began that"]
    assert reasons([*calls(1), *calls(-1, thread=1)]) == ["its thread never began that"]


def test_a_step_of_an_optimizer_is_no_call_of_a_module():
    common = {"seq": 1, "t_ns": 0, "thread": 0, "task": -1, "node": -1}
    begun = OptimizerBegun(call=1, name="SGD", **common)
    ended = OptimizerEnded(call=1, failed=False, **common)

    assert reasons([begun, ended]) == []
    assert reasons([*calls(1), ended]) == ["its thread never began that"]


def test_a_module_inside_of_a_node_may_stay_open_where_an_interrupt_struck(history):
    place = where(history, NodeStarted) + 1
    inside = calls(1, 2, -2)

    assert reasons([*history[:place], *inside, *history[place:]]) == []
