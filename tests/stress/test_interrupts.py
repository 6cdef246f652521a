"""Interrupts without number: none may hang, or harm what comes after it (F04, F11).

``FULL=1`` makes it a hundred thousand at random moments, and strikes recorded passes at
every bytecode.
"""

import pytest

from tests.campaigns import IS_FULL
from tests.faults.programs import run_campaign

pytestmark = pytest.mark.stress

#: Each program is given so many interrupts.
_PER_PROGRAM = 500
_NUM_INTERRUPTS = 100_000 if IS_FULL else 2_000

#: A pass runs once for each bytecode, and one program strikes every fourth. With a
#: recording there are twice as many, and a pass takes five times as long: then a
#: program strikes every twenty-fourth, and without FULL=1 a sixth of all are struck.
_STEPS = {0: 4, 1: 24}
_PARTS = [
    (recording, first)
    for recording, step in _STEPS.items()
    for first in range(1, 1 + (step if IS_FULL else 4))
]


@pytest.mark.parametrize("seed", range(_NUM_INTERRUPTS // _PER_PROGRAM))
def test_interrupts_at_random_moments(seed: int):
    """F04: every other program records itself."""
    report = run_campaign("interrupts", "interrupt", _PER_PROGRAM, seed % 2, seed)

    assert report["failures"] == []
    assert report["delivered"] == _PER_PROGRAM


@pytest.mark.parametrize("recording", [0, 1])
def test_interrupts_at_random_moments_of_a_program_of_tensors(recording: int):
    """F04: gradient mode, inference mode and NumPy's error handling are put back."""
    report = run_campaign("interrupts", "tensors", 2_000, recording)

    assert report["failures"] == []
    assert report["delivered"] == 2_000


@pytest.mark.parametrize(("recording", "first"), _PARTS)
@pytest.mark.parametrize("where", ["small", "big", "first"])
def test_an_interrupt_at_every_bytecode_of_the_calling_thread(
    where: str, recording: int, first: int
):
    """F04: not one bytecode of the call, the loop, the queue is left out.

    With a recording, those of the recorder are too, and what it tells is possible.
    """
    step = _STEPS[recording]
    report = run_campaign("strikes", "interrupt", where, first, step, recording)

    assert report["failures"] == []
    assert report["num_strikes"] > 4_000 // step


@pytest.mark.parametrize("first", range(1, 5))
def test_an_interrupt_at_every_bytecode_of_ops_and_passes_of_tensors(first: int):
    """F04: NumPy's error handling, and context variables, are put back."""
    report = run_campaign("surroundings", first, 4)

    assert report["failures"] == []
    assert report["num_strikes"] > 5_000


@pytest.mark.parametrize(("recording", "first"), _PARTS)
@pytest.mark.parametrize("place", ["device", "pool", "waiting"])
def test_an_error_at_every_bytecode_of_an_engine_thread(
    place: str, recording: int, first: int
):
    """F11: with a recording, what it tells is possible."""
    step = _STEPS[recording]
    report = run_campaign("strikes", "throw", place, first, step, recording)

    assert report["failures"] == []
    assert report["num_strikes"] > 1_500 // step


@pytest.mark.parametrize("first", range(1, 5))
@pytest.mark.parametrize("where", ["small", "big", "first"])
def test_a_handler_that_calls_backward_at_every_bytecode(where: str, first: int):
    """F15."""
    report = run_campaign("strikes", "call", where, first, 4)

    assert report["failures"] == []
    assert report["num_strikes"] > 1_000


def test_a_thousand_signals_a_second_for_ten_seconds():
    """F15."""
    report = run_campaign("interrupts", "alarms", 10_000, 0)

    assert report["failures"] == []
