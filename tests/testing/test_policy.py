import itertools

import pytest

from gradviz.errors import UserError
from gradviz.testing.policy import (
    Decision,
    DepthFirst,
    PriorityChanges,
    RandomWalk,
    Scripted,
    parse_policy,
    script_of,
)


def choices(policy, points):
    """Return a policy's choices at points with these candidates."""
    return [policy.choose(candidates) for candidates in points]


POINTS = [[0, 1], [1, 0, 2], [2, 1], [0, 2, 1], [1, 0]] * 8


@pytest.mark.parametrize("spec", ["random:17", "pct:3:40:5", "at:2=1,7=1"])
def test_a_policy_is_made_again_from_its_text(spec):
    policy = parse_policy(spec)

    assert policy.spec == spec
    assert choices(policy, POINTS) == choices(parse_policy(spec), POINTS)


@pytest.mark.parametrize(
    "spec", ["", "random", "random:x", "pct:1:2", "at:1", "at:a=b", "fifo:3"]
)
def test_a_text_that_is_no_policy_is_refused_with_what_is_expected(spec):
    with pytest.raises(UserError, match=r"is no policy: expected random:SEED"):
        parse_policy(spec)


def test_two_seeds_choose_differently():
    assert choices(RandomWalk(1), POINTS) != choices(RandomWalk(2), POINTS)


def test_without_points_of_change_priorities_decide_alone():
    policy = PriorityChanges(depth=1, length=100, seed=3)

    chosen = [p[i] for p, i in zip(POINTS, choices(policy, POINTS), strict=True)]

    best = chosen[POINTS.index([1, 0, 2])]
    assert all(one == best for one, p in zip(chosen, POINTS, strict=True) if best in p)


def test_a_point_of_change_puts_the_best_thread_behind_the_others():
    policy = PriorityChanges(depth=2, length=1, seed=0)  # the first choice changes
    unchanged = PriorityChanges(depth=1, length=1, seed=0)

    best = unchanged.choose([0, 1])

    # The seed's first number goes to the point of change, so compare with itself.
    worst = policy.choose([0, 1])
    assert all(policy.choose([0, 1]) == worst for _ in range(5))
    assert {best, worst} <= {0, 1}


def test_a_script_takes_the_default_where_it_says_nothing():
    assert choices(Scripted({1: 2}), [[5, 6], [5, 6, 7], [5, 6]]) == [0, 2, 0]


def test_a_script_takes_the_last_candidate_where_there_are_too_few():
    assert choices(Scripted({0: 9}), [[5, 6]]) == [1]


def test_decisions_become_a_script_that_repeats_them():
    decisions = [Decision(0, 2, True), Decision(2, 3, False), Decision(1, 2, True)]

    assert script_of(decisions).exceptions == {1: 2, 2: 1}


def run(policy, num_candidates, preempts):
    """A program whose points never change."""
    return [
        Decision(policy.choose(range(n)), n, is_preemption)
        for n, is_preemption in zip(num_candidates, preempts, strict=True)
    ]


def explored(bound, num_candidates, preempts):
    search = DepthFirst(bound)
    found = []
    for policy in search:
        search.decisions = run(policy, num_candidates, preempts)
        found.append(tuple(d.choice for d in search.decisions))
    return found


def test_depth_first_without_preemptions_tries_every_free_choice():
    found = explored(0, [2, 3, 2], [False, False, True])

    assert sorted(found) == [(a, b, 0) for a in range(2) for b in range(3)]


@pytest.mark.parametrize("bound", [0, 1, 2, 3])
def test_depth_first_tries_each_schedule_within_its_bound_once(bound):
    found = explored(bound, [2, 3, 2], [True, True, True])

    within = [
        schedule
        for schedule in itertools.product(range(2), range(3), range(2))
        if sum(choice > 0 for choice in schedule) <= bound
    ]
    assert sorted(found) == within
