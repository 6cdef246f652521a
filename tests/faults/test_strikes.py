"""Errors that strike between two bytecodes of the engine's own code (F04, F08, F11).

The normal run strikes a sample of all bytecodes; `tests/stress/test_interrupts.py`
strikes each of them.
"""

import pytest

from gradviz.compiled_core import compiled
from tests.faults.programs import run_campaign

#: What is compiled has no bytecodes: fewer places are left to strike.
RARER = 10 if compiled else 1


@pytest.mark.parametrize("where", ["small", "big", "first"])
def test_an_interrupt_anywhere_in_a_call_leaves_the_engine_as_it_was(where: str):
    """F04: Ctrl-C in the call, the loop, the queue, nodes, hooks, callbacks."""
    report = run_campaign("strikes", "interrupt", where, 1, 41)

    assert report["failures"] == []
    assert report["num_strikes"] > 100 // RARER


@pytest.mark.parametrize("place", ["device", "pool", "waiting"])
def test_an_error_anywhere_in_an_engine_thread_fails_the_pass_and_nothing_else(
    place: str,
):
    """F11: the thread lives on, and no other pass notices."""
    report = run_campaign("strikes", "throw", place, 1, 37)

    assert report["failures"] == []
    assert report["num_strikes"] > 50 // RARER


@pytest.mark.parametrize(
    ("what", "where", "step"), [("interrupt", "big", 401), ("throw", "pool", 301)]
)
def test_the_recording_of_a_struck_pass_breaks_no_rule_of_the_lifecycle(
    what: str, where: str, step: int
):
    """F04, F11: in the engine's code, and in the recorder's."""
    report = run_campaign("strikes", what, where, 1, step, 1)

    assert report["failures"] == []
    assert report["num_strikes"] > 15 // RARER


@pytest.mark.parametrize("where", ["small", "big", "first"])
def test_a_handler_may_call_backward_anywhere_or_is_refused(where: str):
    """F15: the pass that it interrupts goes on as if nothing had happened."""
    report = run_campaign("strikes", "call", where, 1, 43)

    assert report["failures"] == []
    assert report["num_strikes"] > 100 // RARER


def test_an_interrupt_anywhere_leaves_numpy_and_context_variables_as_they_were():
    """F04: in ops, and in passes of tensors."""
    report = run_campaign("surroundings", 1, 151)

    assert report["failures"] == []
    assert report["num_strikes"] > 100 // RARER
