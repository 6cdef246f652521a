"""Errors that strike between two bytecodes of the engine's own code (F04, F08, F11).

The normal run strikes a sample of all bytecodes; `tests/stress/test_interrupts.py`
strikes each of them.
"""

import pytest

from gradviz.engine import Engine
from tests.faults.strikes import interrupt_passes, strike_threads


@pytest.mark.parametrize("is_small", [True, False], ids=["caller only", "all threads"])
def test_an_interrupt_anywhere_in_a_call_leaves_the_engine_as_it_was(
    engine: Engine, is_small: bool
):
    """F04: Ctrl-C in the call, the loop, the queue, nodes, hooks, callbacks."""
    report = interrupt_passes(engine, is_small=is_small, first=1, step=41)

    assert report.failures == []
    assert report.num_strikes > 150


@pytest.mark.parametrize("place", ["device", "pool"])
def test_an_error_anywhere_in_an_engine_thread_fails_the_pass_and_nothing_else(
    engine: Engine, place: str
):
    """F11: the thread lives on, and no other pass notices."""
    report = strike_threads(engine, place, first=1, step=37)

    assert report.failures == []
    assert report.num_strikes > 80
