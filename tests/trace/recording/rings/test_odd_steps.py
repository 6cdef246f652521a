"""The steps of a long run that are kept."""

import random
import statistics

import pytest

from gradviz.trace.recording.rings.odd_steps import OddSteps


def kept(durations, keep):
    steps = OddSteps(keep)
    for number, duration in enumerate(durations):
        steps.add(duration, lambda number=number: number)
    return steps


def farthest(durations, keep):
    """The steps farthest from the median of all but the first, by definition."""
    median = sorted(durations[1:])[(len(durations) - 1) // 2]
    order = sorted(
        range(1, len(durations)), key=lambda one: (-abs(durations[one] - median), one)
    )
    return set(order[:keep])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("keep", [1, 3, 10])
def test_the_steps_farthest_from_the_final_median_are_chosen(seed, keep):
    chance = random.Random(seed)
    durations = [chance.randrange(100) + number for number in range(200)]

    steps = kept(durations, keep)

    assert farthest(durations, keep) <= set(steps.chosen())
    assert len(steps.chosen()) <= 2 * keep + 1


def test_held_steps_do_not_grow_with_the_length_of_the_run():
    steps, most = OddSteps(5), 0
    for number in range(5_000):
        steps.add(random.Random(number).randrange(1_000), lambda: None)
        most = max(most, len(list(steps.held())))

    assert most <= 3 * 5 + 1
    assert steps.total == 5_000


def test_only_what_is_kept_is_asked_for():
    steps, asked = OddSteps(2), []
    for number in range(1_000):
        steps.add(10, lambda number=number: asked.append(number))

    assert len(asked) < 50


def test_the_first_step_is_kept_and_not_compared():
    steps = kept([1_000, 5, 5, 5, 9, 5, 5], 1)

    assert {0, 4} <= set(steps.chosen())
    assert steps.median == 5


def test_a_step_that_took_unusually_short_is_odd_too():
    assert 3 in kept([50, 50, 51, 2, 50, 52, 49, 60], 1).chosen()


def test_the_sample_comes_from_all_of_the_run():
    steps = kept([10] * 3_000, 30)

    assert 500 < statistics.mean(steps.chosen()) < 2_500


def test_the_most_ordinary_steps_are_dropped_first():
    steps = kept([10, 10, 11, 90, 10, 10, 10, 10], 1)
    while steps.drop_one():
        pass

    assert steps.chosen() == [3]


def test_no_step_is_no_step():
    steps = OddSteps(3)

    assert (steps.chosen(), steps.median, steps.drop_one()) == ([], 0, False)


def test_the_generator_of_the_program_is_left_alone():
    random.seed(7)
    expected = random.Random(7).random()
    kept(range(1_000), 3)

    assert random.random() == expected
