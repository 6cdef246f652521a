"""The engine under many schedules: a sample always, campaigns on request.

A failure prints the line that repeats it under its schedule.
"""

import pytest

from gradviz.testing.exploration import explore, mixed
from gradviz.testing.policy import DepthFirst
from tests.campaigns import IS_FULL
from tests.interleavings.scenarios import SCENARIOS

#: Schedules in all, spread evenly over the scenarios.
SAMPLE = 1_000
CAMPAIGN = 1_000_000 if IS_FULL else 20_000

#: One test runs so many at most: it takes a minute, and has five before it is ended.
BATCH = 5_000

every_scenario = pytest.mark.parametrize("name", SCENARIOS)

#: Small enough that every schedule with two preemptions can be tried.
EXHAUSTED = (
    "the_device_ends_the_pass",
    "there_and_back",
    "two_callers_share_a_graph",
    "nested_on_a_device",
    "an_error_in_the_pool",
    "callbacks_of_a_failed_pass",
    "stopped_while_idle",
    "an_interruption_alone",
)


def share(num_schedules):
    """Return the number of schedules for one scenario."""
    return -(-num_schedules // len(SCENARIOS))


FIRST_SEEDS = range(share(SAMPLE), share(SAMPLE) + share(CAMPAIGN), BATCH)


@every_scenario
def test_a_sample_of_schedules_goes_well(name):
    explore(SCENARIOS[name], mixed(SCENARIOS[name], share(SAMPLE)))


@pytest.mark.stress
@every_scenario
def test_every_schedule_without_preemption_goes_well(name):
    explore(SCENARIOS[name], DepthFirst(bound=0))


@pytest.mark.stress
@pytest.mark.parametrize("first_seed", FIRST_SEEDS)
@every_scenario
def test_a_campaign_of_schedules_goes_well(name, first_seed):
    scenario = SCENARIOS[name]
    num_runs = min(BATCH, FIRST_SEEDS.stop - first_seed)

    explore(scenario, mixed(scenario, num_runs, first_seed))


@pytest.mark.stress
@pytest.mark.parametrize("name", EXHAUSTED)
def test_every_schedule_with_two_preemptions_goes_well(name):
    explore(SCENARIOS[name], DepthFirst(bound=2))


def test_there_are_enough_scenarios():
    assert len(SCENARIOS) >= 12
    assert len(EXHAUSTED) >= 6
    assert set(EXHAUSTED) <= set(SCENARIOS)
