import itertools

import pytest

from gradviz.testing.exploration import (
    ScheduleFailed,
    explore,
    mixed,
    run_once,
    simplify,
)
from gradviz.testing.fiber import Deadlock
from gradviz.testing.policy import DepthFirst, Scripted, parse_policy
from gradviz.testing.scheduler import pause


def lost_update(scheduler):
    """Fails if both threads read before either writes."""
    total = 0

    def add():
        nonlocal total
        for _ in range(3):
            pause()
        seen = total
        pause()
        total = seen + 1
        for _ in range(3):
            pause()

    scheduler.run(a=add, b=add)
    assert total == 2


def crossed_locks(scheduler):
    """Deadlocks if each thread has one of two locks."""
    locks = scheduler.lock(), scheduler.lock()

    def take(one, other):
        with one, other:
            pass

    scheduler.run(a=lambda: take(*locks), b=lambda: take(*reversed(locks)))


def harmless(scheduler):
    scheduler.run(a=pause, b=pause)


SCENARIOS = [lost_update, crossed_locks]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_mixed_campaign_finds_what_is_wrong(scenario):
    with pytest.raises(ScheduleFailed):
        explore(scenario, mixed(scenario, 200))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_depth_first_finds_what_is_wrong_with_one_preemption(scenario):
    explore(scenario, DepthFirst(bound=0))
    with pytest.raises(ScheduleFailed):
        explore(scenario, DepthFirst(bound=1))


def test_the_message_is_one_line_that_repeats_the_failure():
    with pytest.raises(ScheduleFailed) as caught:
        explore(lost_update, mixed(lost_update, 200))

    repeat = str(caught.value).splitlines()[-1]
    *_, name, spec = repeat.split()
    assert name == f"{__name__}:lost_update"
    assert all(run_once(lost_update, parse_policy(spec)).failure for _ in range(100))


def test_of_a_function_inside_another_one_that_is_a_line_of_python():
    def wrong(scheduler):
        scheduler.run(a=pause, b=pause)
        raise ValueError

    with pytest.raises(ScheduleFailed) as caught:
        explore(wrong, [Scripted({0: 1})])

    repeat = str(caught.value).splitlines()[-1].removeprefix("repeat: ")
    assert repeat == 'run_once(wrong, parse_policy("at:0=1"))'
    names = {"run_once": run_once, "parse_policy": parse_policy, "wrong": wrong}
    assert isinstance(eval(repeat, names).failure, ValueError)


def test_a_campaign_without_failure_says_how_long_it_was():
    assert explore(harmless, mixed(harmless, 30)) == 30


def test_a_campaign_is_the_same_each_time():
    def specs():
        return [policy.spec for policy in mixed(lost_update, 20)]

    assert specs() == specs()


def test_depth_first_comes_to_an_end():
    counts = [explore(harmless, DepthFirst(bound)) for bound in range(4)]

    assert counts == sorted(counts)
    assert counts[-1] == explore(harmless, DepthFirst(bound=9))


def test_a_simpler_schedule_fails_in_the_same_way_with_one_preemption():
    failed = next(
        run
        for seed in itertools.count()
        if (run := run_once(crossed_locks, parse_policy(f"random:{seed}"))).failure
    )

    simpler = simplify(crossed_locks, failed)

    assert isinstance(simpler.failure, Deadlock)
    assert len(simpler.policy.exceptions) == 1


def test_the_default_schedule_is_the_empty_script():
    assert run_once(lost_update, Scripted({})).failure is None
