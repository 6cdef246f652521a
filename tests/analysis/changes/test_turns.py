"""Two runs of one program, with schedules that a test forces."""

from functools import partial

import pytest

from gradviz.analysis.changes.pass_comparison import compare
from gradviz.trace.probe import Push
from tests.analysis.conftest import START_NS, Story


def run(device, *steps, seqs=None):
    """A pass of nodes a, b, c that a root leads to, as `steps` have it.

    A step is ``"+a"``, which pushes a node, ``"-a"``, which pops and runs it, or
    ``"."``, after which its thread has done something else. With a ``*`` behind it is
    another thread's.
    """
    story = Story()
    seqs = seqs or {"a": 1, "b": 2, "c": 3}
    nodes = {
        name: story.node(number, name=f"{name.upper()}Backward0")
        for number, name in enumerate("abc", start=1)
    }
    root = story.node(9, *nodes.values(), name="Root")
    story.begin(7, [*nodes.values(), root], at=0)
    story.take(7, root, at=(1, 2, 3), until=4)
    for at, step in enumerate(steps, start=1):
        told = partial(report, story, nodes, root, seqs, step, 10 * at)
        if step.endswith("*"):
            device(told)
        else:
            told()
    story.end(7, at=990)
    return story.trace()


def report(story, nodes, root, seqs, step, at):
    name = step[1:2]
    match step[0]:
        case "+":
            story.now = START_NS + at
            node, made = nodes[name], seqs[name]
            story.recorder.task_pushed(7, node.id, 1, 0, made, 1, 1, 9, Push.NODE)
        case "-":
            story.pop(7, nodes[name], at=at)
            story.ran(7, nodes[name], at=at + 1, until=at + 2)
        case ".":
            story.give(7, root, root, at=at, remaining=1)


def num_moved(one, other):
    return compare(one, 7, other, 7).num_moved


def test_the_other_choice_between_two_nodes_that_lay_there_is_a_change(device):
    before = run(device, "+a", "+b", "-b", "-a")
    after = run(device, "+a", "+b", "-a", "-b")

    assert num_moved(before, after) == num_moved(after, before) == 1


def test_a_node_that_came_late_in_one_of_the_runs_has_not_moved(device):
    before = run(device, "+a", "+b*", ".*", ".", "-b", "-a")
    after = run(device, "+a", "-a", "+b*", "-b")

    assert num_moved(before, after) == num_moved(after, before) == 0
    assert compare(before, 7, after, 7).is_same


@pytest.mark.parametrize("going_on", [(), (".*",), (".",), (".", ".*")])
def test_a_node_that_another_thread_may_have_pushed_during_a_pop_has_not_moved(
    device, going_on
):
    before = run(device, "+a", "+b*", ".*", ".", "-b", "-a")
    after = run(device, "+a", "+b*", *going_on, "-a", "-b")

    assert num_moved(before, after) == num_moved(after, before) == 0


def test_a_node_that_another_thread_had_surely_pushed_before_a_pop_has_moved(device):
    before = run(device, "+a", "+b*", ".*", ".", "-b", "-a")
    after = run(device, "+a", "+b*", ".*", ".", "-a", "-b")

    assert num_moved(before, after) == num_moved(after, before) == 1


def test_a_move_that_timing_explains_does_not_hide_another_choice(device):
    before = run(device, "+a", "+b", "-b", "-a", "+c*", "-c")
    after = run(device, "+a", "+b", "+c*", ".*", ".", "-c", "-a", "-b")

    assert num_moved(before, after) >= 1
    assert num_moved(after, before) >= 1


def test_of_equals_the_heap_chooses_as_other_threads_have_made_it(device):
    same = {"a": 5, "b": 5, "c": 5}
    before = run(device, "+a", "+b", "-b", "-a", "+c*", "-c", seqs=same)
    after = run(device, "+a", "+b", "-a", "-b", "+c*", "-c", seqs=same)

    assert num_moved(before, after) == num_moved(after, before) == 0
