"""Each rule of advice: a program that it is for, and one that it nearly is for."""

import threading

import pytest

import gradviz as gv
from gradviz import sim
from gradviz.analysis.findings import time_findings
from gradviz.analysis.findings.advice import build_advice
from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.races.stream_order import stream_order
from gradviz.capture.session import record
from gradviz.engine.engine import MAX_DEPTH
from gradviz.trace.events import HookCalled, HookReturned
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.probe import Hook, How
from gradviz.trace.reporting.hook_names import HookName

KIB = 1024
MS = 1_000_000


def advice_on(trace) -> list[CostlyFinding]:
    advice = build_advice(trace, stream_order(trace))
    assert advice.not_looked_for == ()
    return list(advice.findings)


def graphs_of(program) -> list[CostlyFinding]:
    """Return the findings about a program's graphs; its times may be anything."""
    told = advice_on(recorded(program))
    return [one for one in told if one.cost_ns is None]


def recorded(program):
    with record() as recording:
        program()
    return recording.trace


def numbers(kib=1):
    return gv.ones(kib * KIB // 8, dtype=gv.float64, requires_grad=True)


def retained_for_nothing():
    x = numbers()
    for _ in range(3):
        x.exp().sum().backward(retain_graph=True)


def retained_and_used():
    x = numbers()
    for _ in range(3):
        y = x.sin().sum()
        y.backward(retain_graph=True)
        y.backward()


def a_trunk_of_two_losses():
    x = numbers()
    trunk = x.sin()
    trunk.sum().backward(retain_graph=True)
    trunk.exp().sum().backward()


def graph_created_for_nothing():
    x = numbers()
    gv.autograd.grad((x * x).sin().sum(), x, create_graph=True)


def graph_created_and_used():
    x = numbers()
    (g,) = gv.autograd.grad((x * x).sin().sum(), x, create_graph=True)
    (g * g).sum().backward()


def validation_with_a_graph():
    x = numbers()
    x.sin().sum().backward()
    x.sin().exp().sum().item()


def validation_without_a_graph():
    x = numbers()
    x.sin().sum().backward()
    with gv.no_grad():
        x.sin().exp().sum().item()


def losses_added_up():
    x, total = numbers(), gv.zeros((), dtype=gv.float64)
    for _ in range(13):
        total = total + x.exp().sum()
        x.sin().sum().backward()
    total.backward()


def parts_of_a_batch():
    x = numbers()
    losses = [x.exp().sum() for _ in range(8)]
    for loss in losses:
        loss.backward()


def a_state_that_is_not_detached(detaches=False):
    x, state = numbers(), gv.zeros(128, dtype=gv.float64)
    for _ in range(8):
        state = (state + x).tanh()
        state.sum().backward(retain_graph=True)
        if detaches:
            state = state.detach()


def a_state_that_is_detached():
    a_state_that_is_not_detached(detaches=True)


@pytest.mark.parametrize(
    ("program", "rules"),
    [
        (retained_for_nothing, {"needless_retain_graph"}),
        (retained_and_used, set()),
        (a_trunk_of_two_losses, set()),
        (graph_created_for_nothing, {"needless_create_graph"}),
        (graph_created_and_used, set()),
        (validation_with_a_graph, {"graph_never_run"}),
        (validation_without_a_graph, set()),
        (losses_added_up, {"graph_held_over"}),
        (parts_of_a_batch, set()),
        (a_state_that_is_not_detached, {"graph_grows"}),
        (a_state_that_is_detached, {"needless_retain_graph"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_program_hears_what_it_is_for_and_nothing_else(program, rules):
    assert {one.rule for one in graphs_of(program)} == rules


def test_a_graph_that_is_kept_for_nothing_is_told_with_its_line_and_bytes():
    (found,) = graphs_of(retained_for_nothing)

    line = retained_for_nothing.__code__.co_firstlineno + 3
    assert found.location.endswith(f"test_advice.py:{line}")
    assert (found.times, found.cost_bytes, found.certainty) == (3, KIB, "certain")


def test_a_graph_of_a_pass_is_told_with_what_it_saved():
    trace = recorded(graph_created_for_nothing)
    (begun,) = trace.columns["task_begun"]["seq"]
    saved = trace.columns["tensor_saved"]

    (found,) = [one for one in advice_on(trace) if one.cost_ns is None]

    assert found.cost_bytes == saved["size_bytes"][saved["seq"] > begun].sum() > 0


def test_a_graph_that_never_ran_is_told_with_what_it_saved():
    (found,) = graphs_of(validation_with_a_graph)

    assert found.certainty == "likely"  # its pass may come after the recording
    line = validation_with_a_graph.__code__.co_firstlineno + 3
    assert found.location.endswith(f"test_advice.py:{line}")
    assert (found.count, found.cost_bytes) == (3, KIB)


def test_a_graph_that_never_ran_before_a_pass_is_certain():
    def program():
        validation_with_a_graph()
        numbers().sin().sum().backward()

    (found,) = graphs_of(program)

    assert (found.rule, found.certainty) == ("graph_never_run", "certain")


def test_a_line_that_calls_passes_gets_no_advice_on_the_graph_it_builds():
    def program():
        x = numbers()
        [x.sin().sum().backward(), x.exp().sum().item()]
        x.sin().sum().backward()

    assert graphs_of(program) == []


def test_a_forward_without_any_pass_says_nothing():
    assert graphs_of(lambda: numbers().sin()) == []


def test_a_graph_that_is_held_over_is_told_with_the_passes_that_did_not_use_it():
    (found,) = graphs_of(losses_added_up)

    line = losses_added_up.__code__.co_firstlineno + 3
    assert found.location.endswith(f"test_advice.py:{line}")
    # What was saved first, and what second; the others were held over fewer passes.
    assert (found.times, found.count, found.cost_bytes) == (13, 2, 2 * KIB)


def test_a_graph_that_grows_is_told_with_what_ran_again():
    (found,) = graphs_of(a_state_that_is_not_detached)

    assert (found.times, found.count, found.cost_bytes) == (7, 7, 7 * KIB)


def test_a_trace_that_lost_events_is_told_nothing_that_they_might_deny(story):
    story.begin(0, [story.node(1)], at=0)
    story.end(0, at=10)
    whole = story.trace()
    losses = type(whole.losses)(dropped=1)
    parts = ("path", "header", "clocks", "nodes", "threads", "queues", "strings")
    trace = type(whole)(
        losses=losses,
        columns=whole.columns,
        **{name: getattr(whole, name) for name in parts},
    )

    advice = build_advice(trace, stream_order(trace))

    assert advice.findings == ()
    assert "needless_retain_graph" in advice.not_looked_for


def test_of_less_that_was_recorded_on_purpose_only_what_it_shows_is_told():
    def advice_of(**options):
        with record(**options) as recording:
            retained_for_nothing()
        return build_advice(recording.trace, stream_order(recording.trace))

    some_kinds = advice_of(events="!gradient_buffered")
    some_nodes = advice_of(only="Sin*")

    for advice in (some_kinds, some_nodes):
        assert advice.findings == ()
        assert {"branches_in_turn", "needless_retain_graph"} < {*advice.not_looked_for}
        assert "slow_hooks" not in advice.not_looked_for


def test_a_trace_without_events_is_told_nothing(story):
    assert advice_on(story.trace()) == []


def nested(story, depth):
    tell = story.recorder.task_begun
    for task in range(depth + 1):
        tell(
            task,
            parent=task - 1,
            reentrant_depth=task,
            owner=-1,
            num_roots=1,
            num_outputs=0,
            keep_graph=False,
            create_graph=False,
        )
    return story.trace()


@pytest.mark.parametrize(("depth", "is_told"), [(44, False), (45, True)])
def test_passes_are_nested_deep_from_three_quarters_of_the_limit_on(
    depth, is_told, story
):
    found = [one.count for one in advice_on(nested(story, depth))]

    assert found == ([depth] if is_told else [])


def test_the_limit_of_nesting_is_the_engines():
    assert time_findings.MAX_DEPTH == MAX_DEPTH


def forked(story, *, length=3, also_on=None):
    """A root whose gradient goes to two branches, which meet in a leaf."""
    leaf = story.node(1, name="AccumulateGrad")
    left, right = story.node(2, leaf, name="Left"), story.node(3, leaf, name="Right")
    root = story.node(4, left, right, name="Root")
    tell = story.recorder.gradient_buffered
    story.begin(0, [root, left, right, leaf], at=0)
    at = 0
    for node, took in ((root, 0.1), (right, length), (left, length), (leaf, 0.1)):
        until = at + round(took * MS)

        def run(node=node, at=at, until=until):
            story.ran(0, node, at=at, until=until - 10)
            for receiver, _ in node.next_edges:
                tell(0, receiver.id, node.id, 0, 0, 8, How.FIRST)

        if node is also_on:
            story.on_thread("device", run)
        else:
            run()
        at = until + 100
    story.end(0, at=at)
    return story.trace()


def test_branches_that_one_thread_ran_in_turn_are_told(story):
    (found,) = advice_on(forked(story))

    assert (found.rule, found.name) == ("branches_in_turn", "Left")
    assert found.cost_ns == 3 * MS - 10
    assert found.certainty == "likely"


def test_branches_of_short_nodes_are_not_worth_a_thread(story):
    assert advice_on(forked(story, length=0.15)) == []


def test_one_pass_of_a_line_that_was_disturbed_says_nothing_of_it(story):
    for task in (1, 2):
        story.begin(task, [], at=0)
        story.end(task, at=1)

    assert advice_on(forked(story)) == []


def test_a_chain_has_no_branches(story):
    leaf = story.node(1, name="AccumulateGrad")
    inner = story.node(2, leaf)
    root = story.node(3, inner)
    story.begin(0, [root, inner, leaf], at=0)
    story.ran(0, root, at=0, until=5 * MS)
    story.recorder.gradient_buffered(0, 2, 3, 0, 0, 8, How.FIRST)
    story.ran(0, inner, at=6 * MS, until=9 * MS)
    story.end(0, at=10 * MS)

    assert advice_on(story.trace()) == []


def summed_up(story, *, num_gradients, took):
    """A pass of 10 ms, in which gradients are added up, each of which takes so long."""
    leaf = story.node(0, name="AccumulateGrad")
    nodes = [story.node(number + 1, leaf) for number in range(num_gradients)]
    tell = story.recorder.gradient_buffered
    story.begin(0, [*nodes, leaf], at=0)
    at = 0
    for number, node in enumerate(nodes):
        story.start(0, node, at=at)
        story.recorder.buffer_freed(0, node.id, 8)
        story.now += took if number else 1
        how = How.IN_PLACE if number else How.FIRST
        tell(0, 0, node.id, 0, num_gradients - number - 1, 8, how)
        story.complete(0, node, at=at + took + 20)
        at += took + 40
    story.end(0, at=10 * MS)
    return story.trace()


def test_a_leaf_whose_gradients_take_long_to_add_up_is_told(story):
    every = advice_on(summed_up(story, num_gradients=10, took=MS // 2))

    (found,) = [one for one in every if one.rule == "one_leaf"]
    assert (found.node, found.count) == (0, 10)
    assert found.cost_ns == pytest.approx(9 * MS // 2, abs=100)


@pytest.mark.parametrize(("num", "took"), [(7, MS), (10, MS // 10)])
def test_few_gradients_or_quick_ones_are_not(num, took, story):
    every = advice_on(summed_up(story, num_gradients=num, took=took))

    assert [one for one in every if one.rule == "one_leaf"] == []


def hooked(story, *, took, returns=True):
    node = story.node(1, name="Hooked")
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    story.recorder.hook_called(0, 1, Hook.POST, 0, *HookName())
    story.now += took
    if returns:
        story.recorder.hook_returned(0, 1, Hook.POST, 0)
    story.complete(0, node, at=took + 100)
    story.end(0, at=10 * MS)
    return story.trace()


def test_a_hook_that_takes_much_of_its_pass_is_told(story):
    (found,) = advice_on(hooked(story, took=3 * MS))

    assert (found.rule, found.name, found.detail) == ("slow_hooks", "Hooked", "post")
    assert found.cost_ns == pytest.approx(3 * MS, abs=10)
    assert (found.count, found.certainty) == (1, "certain")


def test_of_a_hook_that_nobody_saw_the_time_is_likely(story):
    node = story.node(1, name="Hooked")
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    hook = story.now, 0, 1, Hook.POST, 0
    story.now += 3 * MS
    rows = {
        Inferred(HookCalled): [*hook, *HookName()],
        Inferred(HookReturned): [story.now, *hook[1:]],
    }
    story.recorder.rows_reported(threading.get_native_id(), "main", rows)
    story.complete(0, node, at=3 * MS + 100)
    story.end(0, at=10 * MS)

    (found,) = advice_on(story.trace())
    assert (found.rule, found.certainty) == ("slow_hooks", "likely")


def test_a_hook_that_takes_little_of_it_is_not(story):
    assert advice_on(hooked(story, took=19 * MS // 10)) == []


def test_time_in_hooks_counts_as_slow_hooks_and_not_as_branches_in_turn(story):
    """Two leaves with a hook each, which the pass runs one after the other."""
    leaves = [story.node(number, name="AccumulateGrad") for number in range(2)]
    root = story.node(2, *leaves)
    story.begin(0, [root, *leaves], at=0)
    story.ran(0, root, at=0, until=MS)
    for number, leaf in enumerate(leaves):
        story.recorder.gradient_buffered(0, number, 2, 0, 0, 8, How.FIRST)
        story.start(0, leaf, at=(number * 5 + 2) * MS)
        story.recorder.hook_called(0, number, Hook.POST_ACCUMULATE_GRAD, 0, *HookName())
        story.now += 4 * MS
        story.recorder.hook_returned(0, number, Hook.POST_ACCUMULATE_GRAD, 0)
        story.complete(0, leaf, at=(number * 5 + 6) * MS + 100)
    story.end(0, at=12 * MS)

    assert {one.rule for one in advice_on(story.trace())} == {"slow_hooks"}


def test_of_a_hook_that_did_not_return_nothing_is_known(story):
    assert advice_on(hooked(story, took=9 * MS, returns=False)) == []


def two_streams(*, waits_before, uses):
    """A tensor is made on one stream, and used, or another one is, on the next."""
    device = "sim:0"
    one, other = gv.Stream(device), gv.Stream(device)
    with gv.no_grad():
        with gv.stream(other):
            mine = gv.ones(8, device=device)
        with gv.stream(one):
            made = gv.ones(8, device=device) * 2
        if waits_before:
            other.wait_stream(one)
        with gv.stream(other):
            _ = (made if uses else mine) * 3
        sim.synchronize(0)
        del made


def test_a_wait_for_what_nobody_uses_is_told():
    trace = recorded(lambda: two_streams(waits_before=True, uses=False))

    (found,) = [one for one in advice_on(trace) if one.rule == "needless_wait"]

    assert found.certainty == "likely"
    line = two_streams.__code__.co_firstlineno + 10
    assert found.location.endswith(f"test_advice.py:{line}")


def test_a_wait_for_what_is_used_is_not():
    trace = recorded(lambda: two_streams(waits_before=True, uses=True))

    assert advice_on(trace) == []


def test_a_wait_that_is_there_already_is_told_as_certain():
    def twice():
        one, other = gv.Stream("sim:0"), gv.Stream("sim:0")
        with gv.no_grad():
            with gv.stream(one):
                made = gv.ones(8, device="sim:0") * 2
            other.wait_stream(one)
            other.wait_stream(one)
            with gv.stream(other):
                made * 3
            sim.synchronize(0)

    (found,) = advice_on(recorded(twice))

    assert (found.rule, found.certainty) == ("needless_wait", "certain")


class Waiting(gv.autograd.Function):
    """Waits for its device on the way back."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        sim.synchronize(0)
        return grad * 2


def waits_of(program) -> list[CostlyFinding]:
    return [one for one in advice_on(recorded(program)) if one.rule == "host_wait"]


def test_a_wait_of_the_host_within_a_node_of_gradviz_is_found():
    def program():
        x = gv.ones(8, device="sim:0", requires_grad=True)
        Waiting.apply(x).sum().backward()

    (found,) = waits_of(program)

    assert (found.name, found.detail, found.count) == ("WaitingBackward", "sim:0", 1)
    assert found.cost_ns is not None


def test_a_copy_to_the_host_that_the_graph_asks_for_is_no_finding():
    def program():
        x = gv.ones(8, requires_grad=True)
        (x.to("sim:0") * 2).sum().backward()

    assert waits_of(program) == []


def test_a_wait_outside_of_all_passes_costs_no_backward():
    def program():
        x = gv.ones(8, device="sim:0", requires_grad=True)
        loss = (x * 2).sum()
        sim.synchronize(0)
        loss.backward()

    assert waits_of(program) == []


def test_a_wait_after_the_last_node_is_of_no_node(story):
    node = story.node(0, name="Launching")
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    story.complete(0, node, at=20)
    story.now = 30
    story.recorder.stream_synchronized("sim:0/1")
    story.end(0, at=40)

    assert [one for one in advice_on(story.trace()) if one.rule == "host_wait"] == []


def test_slow_hooks_of_several_passes_are_reported_as_one_finding(story):
    nodes = [story.node(number, name="Hooked") for number in range(3)]
    for task in range(3):
        at = task * 20 * MS
        story.begin(task, nodes, at=at)
        story.start(task, nodes[task], at=at + 10)
        story.recorder.hook_called(task, task, Hook.PRE, 0, *HookName())
        story.now += 3 * MS
        story.recorder.hook_returned(task, task, Hook.PRE, 0)
        story.complete(task, nodes[task], at=at + 4 * MS)
        story.end(task, at=at + 10 * MS)

    (found,) = advice_on(story.trace())

    assert (found.times, found.count) == (3, 3)
    assert found.cost_ns == pytest.approx(9 * MS, abs=10)
