"""The tests of the stream rules: each rule left out is found, in two ways.

The programs of `tests.integration.streams` are right; an engine that forgets a wait is
not. Within `MAX_PROGRAMS` of them the checker must name a race, and some gradient must
be another than the CPU's.
"""

import itertools

import pytest

from gradviz.compiled_core import compiled
from tests.integration.test_streams import outcome
from tests.stress.test_mutants import find, mutant, mutated_code

pytestmark = pytest.mark.skipif(
    compiled, reason="a mutant is put in place of a function's bytecode"
)

MAX_PROGRAMS = 200

#: In how many of the orders that are possible one that has a race is run. The checker
#: finds it in any of them; for a wrong number it takes luck.
MAX_ORDERS = 100

#: In how many at once, before the next program is looked at.
FIRST_ORDERS = 5

MUTANTS = (
    mutant(
        "a node works on whatever stream is current",
        "E1",
        (
            "tasks.pass_streams:PassStreams.current_for",
            "    stream = None if node is None else node.forward_stream\n",
            "    stream = None\n",
        ),
    ),
    mutant(
        "a node does not wait for its gradients",
        "C3",
        (
            "tasks.pass_streams:PassStreams.receive",
            "        if stream != ready.stream:\n",
            "        if False:\n",
        ),
    ),
    mutant(
        "a sum does not wait for the gradient that has come",
        "C3",
        (
            "tasks.pass_streams:PassStreams.prepare_sum",
            (
                "    if plan.waits_for_new:\n"
                "        self._wait(plan.stream, receiver, new)\n"
            ),
            "    if plan.waits_for_new:\n",
        ),
    ),
    mutant(
        "a sum does not wait for the gradient that was there",
        "C3",
        (
            "tasks.pass_streams:PassStreams.prepare_sum",
            (
                "    if plan.waits_for_earlier:\n"
                "        self._wait(plan.stream, receiver, earlier)\n"
            ),
            "    if plan.waits_for_earlier:\n",
        ),
    ),
    mutant(
        "a sum is computed on whatever stream is current",
        "C3",
        (
            "threads.handover:_added",
            "with on_stream(plan.stream):",
            "if True:",
        ),
    ),
    mutant(
        "a gradient that another stream reads is added to in place",
        "N1",
        (
            "tasks.pass_streams:PassStreams.may_overwrite",
            "return self._has_one_stream or gradient.is_sum",
            "return True",
        ),
    ),
    mutant(
        "the caller does not wait for the pass",
        "S5",
        (
            "tasks.pass_streams:PassStreams.join",
            "        event.wait(caller, task=self._task)\n",
            "",
        ),
    ),
    mutant(
        "the caller does not wait for what it captures",
        "S6",
        (
            "threads.evaluation:evaluate_on_stream",
            "if captured or not node.next_edges:",
            "if not node.next_edges:",
        ),
    ),
    mutant(
        "what the caller gives is not waited for",
        "X10",
        (
            "tasks.pass_streams:PassStreams.handed_on",
            "    current = _current(gradient)\n",
            (
                "    if isinstance(producer, GraphRoot | None):\n"
                "        return None\n"
                "    current = _current(gradient)\n"
            ),
        ),
    ),
    mutant(
        "a leaf does not wait for what the caller did with its gradient",
        "S5",
        (
            "tasks.pass_streams:PassStreams.receive",
            "        self._receive_stored(node, own)\n",
            "        pass\n",
        ),
    ),
    mutant(
        "memory is not kept for the stream that reads it",
        "S2",
        (
            "tasks.pass_streams:PassStreams.receive",
            "            keep_for(gradients[input_nr], stream)\n",
            "",
        ),
    ),
)

#: Those whose races seldom make a number wrong: it takes seconds to find an order.
RARELY_WRONG = {"a leaf does not wait for what the caller did with its gradient"}


@pytest.mark.usefixtures("devices_for_programs")
@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(
            mutant,
            marks=[pytest.mark.stress] if mutant.name in RARELY_WRONG else [],
            id=mutant.name,
        )
        for mutant in MUTANTS
    ],
)
def test_a_rule_that_is_left_out_is_found(mutant, monkeypatch):
    """F25."""
    for path, edits in mutant.patches:
        function = find(path)
        monkeypatch.setattr(function, "__code__", mutated_code(function, edits))

    named = []
    for seed in range(MAX_PROGRAMS):
        if outcome(seed).races:
            named.append(seed)
            if any(outcome(seed, order).wrong for order in range(FIRST_ORDERS)):
                return

    assert named
    orders = itertools.product(range(FIRST_ORDERS, MAX_ORDERS), named)
    assert any(outcome(seed, order).wrong for order, seed in orders)
