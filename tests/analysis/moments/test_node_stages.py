"""Stages of nodes, against a machine that takes event by event."""

from collections import defaultdict

import pytest

import gradviz as gv
from gradviz.analysis.moments.node_stages import NodeStages
from gradviz.analysis.nodes.addresses import nodes_of
from gradviz.capture.session import record
from gradviz.trace import events as e
from tests.analysis.random_passes import random_trace


def step(states, event):
    key = event.task, event.node
    match event:
        case e.GradientBuffered():
            states[key] = ("waiting", event.remaining)
        case e.TaskPushed():
            states[key] = ("queued", 0)
        case e.TaskPopped():
            states[key] = ("popped", 0)
        case e.NodeStarted():
            states[key] = ("running", 0)
        case e.NodeCompleted():
            states[key] = ("completed", 0)


@pytest.mark.parametrize("seed", range(3))
def test_nodes_are_at_every_moment_what_the_events_until_then_say(seed):
    trace = random_trace(seed, num_devices=seed % 4 + 1, size=25)
    found, states = NodeStages(trace), defaultdict(lambda: ("not reached", 0))
    keys = [(task, node) for task in trace.tasks for node in nodes_of(trace, task)]
    for event in trace.events():
        step(states, event)
        for key in keys:
            one = found.at(*key, event.seq)
            assert (one.stage, one.remaining) == states[key]


@pytest.mark.parametrize("seed", range(3))
def test_neighbors_are_those_of_the_edges_of_the_pass(seed):
    trace = random_trace(seed, num_devices=2, size=25)
    found = NodeStages(trace)
    for task in trace.tasks:
        nodes = nodes_of(trace, task)
        for node in nodes:
            one = found.around(task, node, 0)
            receivers = {to for to, _ in trace.nodes[node].edges if to >= 0}
            givers = {
                other
                for other in nodes
                if node in {to for to, _ in trace.nodes[other].edges}
            }
            assert {n.node for n in one.receivers} == receivers
            assert {n.node for n in one.givers} == givers
            assert (one.num_givers, one.num_receivers) == (len(givers), len(receivers))


def test_a_node_that_was_only_captured_did_not_run():
    x = gv.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    with record() as recording:
        gv.autograd.grad((y * y).sum(), [y])
    trace = recording.trace
    last = trace.num_events - 1
    (node,) = set(trace.columns["capture_taken"]["node"].tolist())

    assert NodeStages(trace).at(trace.tasks[0], node, last).stage == "captured"


def test_a_node_whose_pass_failed_first_is_left_over(story):
    leaf = story.node(1)
    root = story.node(2, leaf, leaf)
    story.begin(0, [root, leaf], at=0)
    story.take(0, root, at=(10, 11, 12))
    story.give(0, leaf, root, at=20, remaining=1)
    story.fail(0, root, "no", at=30)
    story.begin(1, [], at=40)
    trace = story.trace()
    states, last = NodeStages(trace), trace.num_events - 1

    assert states.at(0, 2, last).stage == "failed"
    before, after = (states.at(0, 1, seq) for seq in (last - 4, last))
    assert (before.stage, before.remaining) == ("waiting", 1)
    assert (after.stage, after.remaining) == ("left over", 1)


def test_a_node_that_runs_when_its_pass_fails_runs_until_the_last_event_of_that(story):
    fails, other = story.node(1), story.node(2)
    story.begin(0, [fails, other], at=0)
    story.take(0, other, at=(1, 2, 3))
    story.take(0, fails, at=(4, 5, 6))
    story.fail(0, fails, "no", at=10)
    story.complete(0, other, at=20)
    trace = story.trace()
    states = NodeStages(trace)

    def after(kind):
        return states.at(0, 2, int(trace.columns[kind]["seq"][-1])).stage

    assert [after("task_failed"), after("node_completed")] == ["running", "completed"]


def test_since_when_and_on_which_thread_a_node_is_what_it_is(pair):
    story, root, _ = pair
    trace = story.trace()
    started = next(one for one in trace.events() if isinstance(one, e.NodeStarted))

    one = NodeStages(trace).at(7, root.id, started.seq + 1)

    assert (one.stage, one.since_ns, one.thread) == (
        "running",
        started.t_ns,
        started.thread,
    )


def test_an_unknown_node_was_not_reached(pair):
    story, _, _ = pair
    one = NodeStages(story.trace()).around(7, 99, 5)

    assert (one.node.stage, one.givers, one.receivers) == ("not reached", (), ())
