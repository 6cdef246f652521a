"""The reason for popping a task next, against lists kept by hand."""

import itertools
from collections import defaultdict

import pytest

from gradviz.analysis.moments.choice import choice_of
from gradviz.analysis.moments.engine_state import History
from gradviz.analysis.moments.precedence import Rank, precedence
from gradviz.trace import events as e
from gradviz.trace.probe import Push
from tests.analysis.random_passes import random_trace


def strength(push):
    """The larger runs first."""
    return push.what == Push.WAKE_UP, push.reentrant_depth, push.sequence_nr


def reason(one, other):
    if Push.WAKE_UP in {one.what, other.what}:
        return "wake-up" if one.what == Push.WAKE_UP else None
    if one.reentrant_depth != other.reentrant_depth:
        return "deeper" if one.reentrant_depth > other.reentrant_depth else None
    if one.sequence_nr == other.sequence_nr:
        return "equal"
    return "made later" if one.sequence_nr > other.sequence_nr else None


def choice_at(trace, pop):
    history = History(trace)
    return choice_of(history, pop, history.at(pop.seq))


@pytest.mark.parametrize("seed", range(4))
def test_a_choice_compares_the_popped_task_with_the_best_of_the_others_waiting(seed):
    trace = random_trace(seed, num_devices=seed % 4 + 1)
    history, lying, reasons = History(trace), defaultdict(list), set()
    for event in trace.events():
        if isinstance(event, e.TaskPushed):
            lying[event.queue].append(event)
        if not isinstance(event, e.TaskPopped):
            continue
        here = lying[event.queue]
        popped = next(t for t in here if (t.task, t.node) == (event.task, event.node))
        here.remove(popped)

        choice = choice_of(history, event, history.at(event.seq))
        assert choice == choice_of(history, event, history.at(event.seq, most=1))

        assert (choice.popped.node, choice.popped.pushed_ns) == (
            popped.node,
            popped.t_ns,
        )
        assert choice.num_others == len(here)
        if not here:
            assert (choice.other, choice.why) == (None, None)
            continue
        best = max(map(strength, here))
        found = [
            one
            for one in here
            if (one.task, one.node) == (choice.other.task, choice.other.node)
        ]
        assert strength(found[0]) == best
        assert choice.why == reason(popped, found[0])
        reasons.add(choice.why)
    assert "made later" in reasons


def test_each_rule_decides_only_where_those_before_it_do_not():
    wake_up, deep, late, leaf, early = (
        Rank(Push.WAKE_UP, 0, 0),
        Rank(Push.NODE, 1, 3),
        Rank(Push.NODE, 0, 7),
        Rank(Push.ROOT, 0, -1),
        Rank(Push.NODE, 0, 5),
    )
    ordered = [wake_up, deep, leaf, late, early]

    assert [precedence(a, b) for a, b in itertools.pairwise(ordered)] == [
        *("wake-up", "deeper", "made later", "made later")
    ]
    assert [precedence(b, a) for a, b in itertools.pairwise(ordered)] == [None] * 4
    assert precedence(leaf, leaf) == "equal"


def test_a_task_popped_against_the_order_has_no_reason(story):
    early, late = story.node(1), story.node(2)
    story.begin(0, [early, late], at=0)
    story.push(0, early, at=10)
    story.push(0, late, at=20)
    story.pop(0, early, at=30)

    trace = story.trace()
    (pop,) = (one for one in trace.events() if isinstance(one, e.TaskPopped))
    choice = choice_at(trace, pop)

    assert (choice.popped.node, choice.other.node, choice.why) == (1, 2, None)


def test_a_pop_without_a_push_has_no_choice(story):
    node = story.node(1)
    story.begin(0, [node], at=0)
    story.pop(0, node, at=10)
    story.end(0, at=20)

    trace = story.trace()
    (pop,) = (one for one in trace.events() if isinstance(one, e.TaskPopped))

    assert choice_at(trace, pop) is None


def test_a_task_that_an_error_left_in_the_queue_is_neither_popped_nor_counted(story):
    """The pass that ends right before another one's pop leaves a task behind."""
    left, node = story.node(1), story.node(2)
    story.begin(0, [left], at=0)
    story.begin(1, [node], at=1)
    story.push(1, node, at=10)
    story.push(0, left, at=20)
    story.recorder.task_failed(0, -1, "no")
    story.pop(1, node, at=40)

    trace = story.trace()
    (pop,) = (one for one in trace.events() if isinstance(one, e.TaskPopped))
    choice = choice_at(trace, pop)

    assert (choice.popped.task, choice.popped.node, choice.num_others) == (1, 2, 0)
