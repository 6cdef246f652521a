"""Programs over devices and streams give the CPU's gradients, and no race."""

from typing import NamedTuple

import numpy as np
import pytest

import gradviz as gv
from gradviz.analysis.races.race_reports import Race
from tests.campaigns import IS_FULL
from tests.integration.streams import World, random_program, run
from tests.sampled import sampled

NUM_PROGRAMS = 100
NUM_STRESS_PROGRAMS = 50_000 if IS_FULL else 2_000


class Outcome(NamedTuple):
    """Errors of a program's run on simulated devices.

    Attributes:
        wrong: Which of its results are not the CPU's.
        races: What the checker says.
    """

    wrong: tuple[int, ...]
    races: tuple[Race, ...]


def outcome(seed: int, order: int = 0) -> Outcome:
    """Run the program of that seed: kernels as late as possible, in random order.

    Args:
        seed: Which program.
        order: Which of the orders that are possible.
    """
    program = random_program(seed)
    expected = run(program, World(is_simulated=False))
    with gv.sim.stepped(order), gv.check_streams(raise_error=False) as checked:
        found = run(program, World(is_simulated=True))
    assert len(found) == len(expected)
    wrong = (
        number
        for number, (one, other) in enumerate(zip(found, expected, strict=True))
        if not np.array_equal(one, other)
    )
    return Outcome(tuple(wrong), checked.races)


@pytest.mark.usefixtures("devices_for_programs")
@pytest.mark.parametrize("seed", sampled(range(NUM_PROGRAMS), 3))
def test_gradients_over_streams_are_those_of_the_cpu(seed):
    """F25."""
    assert outcome(seed) == ((), ())


@pytest.mark.stress
@pytest.mark.usefixtures("devices_for_programs")
@pytest.mark.parametrize("begin", range(NUM_PROGRAMS, NUM_STRESS_PROGRAMS, 100))
def test_many_more_programs_are_right(begin):
    for seed in range(begin, begin + 100):
        assert outcome(seed) == ((), ()), f"program {seed}"


@pytest.mark.usefixtures("devices_for_programs")
@pytest.mark.parametrize("seed", range(20))
def test_threads_of_any_latency_give_the_gradients_too(seed):
    gv.sim.set_latency(gv.sim.randomly(seed, up_to_ns=300_000))
    program = random_program(seed)
    expected = run(program, World(is_simulated=False))

    found = run(program, World(is_simulated=True))

    assert all(map(np.array_equal, found, expected))
