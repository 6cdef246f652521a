"""Calls of hooks: their names and times, of programs and of what is inferred."""

import threading

import gradviz as gv
from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.moments.explanation import explain
from gradviz.analysis.tables.hook_calls import hook_calls
from gradviz.analysis.timelines.timeline_lanes import build_timeline
from gradviz.capture.session import record
from gradviz.trace.events import HookCalled, HookReturned
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.probe import Hook

MS = 1_000_000


def nothing(*_):
    """A hook that changes nothing."""


def line(number):
    return f"{__file__}:{program.__code__.co_firstlineno + number}"


def program():
    net = gv.nn.Linear(3, 3)
    net.register_full_backward_pre_hook(nothing)
    net.register_full_backward_hook(nothing)
    net.weight.register_post_accumulate_grad_hook(nothing)
    net.weight.register_hook(nothing)
    y = net(gv.ones(2, 3, requires_grad=True))
    z = y.sin()
    z.register_hook(nothing)
    z.grad_fn.register_prehook(nothing)
    z.grad_fn.register_hook(nothing)
    z.retain_grad()
    z.sum().backward()


def test_each_kind_of_hook_is_named_with_its_lines_and_its_time():
    with record() as recording:
        program()
    calls = hook_calls(recording.trace)
    assert sorted((one.kind, one.registered_at) for one in calls) == [
        ("module", line(3)),
        ("module_pre", line(2)),
        ("post", line(10)),
        ("post_accumulate_grad", line(4)),
        ("pre", line(9)),
        ("tensor_pre", line(5)),
        ("tensor_pre", line(8)),
    ]
    for one in calls:
        assert one.function == "nothing"
        assert one.defined_at == f"{__file__}:{nothing.__code__.co_firstlineno}"
        assert one.took_ns > 0
        assert not one.inferred
        model, _, _ = one.target.partition("#")  # other tests made such models
        assert model == ("Linear" if one.kind.startswith("module") else "")


def pass_with_hooks(story, *names, took=3 * MS, returns=True):
    """A pass with one node, of whose inferred hooks only the last returns."""
    node = story.node(1, name="Hooked")
    story.begin(0, [node], at=0)
    story.start(0, node, at=10)
    begin = story.now
    called = []
    for index, name in enumerate(names):
        called += begin + index, 0, 1, Hook.PRE, index, name, "a.py:1", "a.py:2", ""
    returned = begin + took, 0, 1, Hook.PRE, len(names) - 1
    rows = {Inferred(HookCalled): called}
    if returns:
        rows[Inferred(HookReturned)] = list(returned)
    story.recorder.rows_reported(threading.get_native_id(), "main", rows)
    story.now += took
    story.complete(0, node, at=took + 1_000)
    story.end(0, at=10 * MS)
    return story.trace()


def test_an_inferred_hook_has_the_time_between_what_was_seen(story):
    (one,) = hook_calls(pass_with_hooks(story, "scale"))
    assert (one.took_ns, one.together_ns, one.inferred) == (3 * MS, None, True)


def test_of_several_inferred_hooks_only_their_time_together_is_known(story):
    calls = hook_calls(pass_with_hooks(story, "scale", "log", "clip"))
    assert [one.function for one in calls] == ["scale", "log", "clip"]
    assert {(one.took_ns, one.together_ns) for one in calls} == {(None, 3 * MS)}


def test_a_hook_that_is_not_known_to_return_has_no_time(story):
    (one,) = hook_calls(pass_with_hooks(story, "scale", returns=False))
    assert (one.took_ns, one.together_ns, one.end_ns) == (None, None, None)


def test_the_critical_path_tells_hooks_from_their_node(story):
    path = find_critical_path(pass_with_hooks(story, "scale", "log"), 0)
    of_node = [one for one in path.segments if one.node >= 0]
    found = [(one.kind, one.hook, one.took_ns) for one in of_node]
    assert found == [
        ("hook", "scale, log", 3 * MS),
        ("running", "", 990),
    ]
    assert path.totals["hook"] == 3 * MS


def test_a_timeline_has_hooks_inside_of_their_node(story):
    (lane,) = build_timeline(pass_with_hooks(story, "scale", "log"), [0]).lanes
    (hook,) = (one for one in lane.spans if one.kind == "hook")
    assert (hook.name, hook.node, hook.row) == ("scale, log", 1, 1)
    assert hook.end_ns - hook.start_ns == 3 * MS


def test_an_explanation_has_the_hooks_of_its_node(story):
    explanation = explain(pass_with_hooks(story, "scale", "log"), 0, 1)
    assert [one.function for one in explanation.hooks] == ["scale", "log"]
    assert explanation.num_hooks == 2
