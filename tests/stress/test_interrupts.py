"""Interrupts without number: none may hang, or harm what comes after it (F04, F11).

``FULL=1`` makes it a hundred thousand at random moments.
"""

import os
from collections.abc import Iterator

import pytest

from gradviz.engine import Engine
from tests.faults.programs import run_campaign
from tests.faults.scene import surviving_engine
from tests.faults.strikes import call_from_handlers, interrupt_passes, strike_threads

pytestmark = pytest.mark.stress

#: A program is given so many interrupts, and some are run one after the other.
_PER_PROGRAM = 500
_NUM_INTERRUPTS = 100_000 if os.environ.get("FULL") == "1" else 2_000


@pytest.fixture
def engine() -> Iterator[Engine]:
    yield from surviving_engine()


@pytest.mark.parametrize("is_recording", [False, True], ids=["", "recording"])
def test_interrupts_at_random_moments(is_recording: bool):
    """F04: half of them with a recording."""
    delivered, failures = 0, []
    for seed in range(_NUM_INTERRUPTS // 2 // _PER_PROGRAM):
        report = run_campaign(
            "interrupts", "interrupt", _PER_PROGRAM, int(is_recording), seed
        )
        delivered += report["delivered"]
        failures += [f"seed {seed}: {failure}" for failure in report["failures"]]

    assert failures == []
    assert delivered == _NUM_INTERRUPTS // 2


@pytest.mark.parametrize("is_small", [True, False], ids=["caller only", "all threads"])
def test_an_interrupt_at_every_bytecode_of_the_calling_thread(
    engine: Engine,
    is_small: bool,
):
    """F04: not one bytecode of the call, the loop, the queue is left out."""
    report = interrupt_passes(engine, is_small=is_small, first=1, step=1)

    assert report.failures == []
    assert report.num_strikes > 5_000


@pytest.mark.parametrize("place", ["device", "pool"])
def test_an_error_at_every_bytecode_of_an_engine_thread(
    engine: Engine,
    place: str,
):
    """F11."""
    report = strike_threads(engine, place, first=1, step=1)

    assert report.failures == []
    assert report.num_strikes > 2_000


@pytest.mark.parametrize("is_small", [True, False], ids=["caller only", "all threads"])
def test_a_handler_that_calls_backward_at_every_bytecode(
    engine: Engine,
    is_small: bool,
):
    """F15."""
    report = call_from_handlers(engine, is_small=is_small, first=1, step=1)

    assert report.failures == []
    assert report.num_strikes > 5_000


def test_a_thousand_signals_a_second_for_ten_seconds():
    """F15."""
    report = run_campaign("interrupts", "alarms", 10_000, 0)

    assert report["failures"] == []
