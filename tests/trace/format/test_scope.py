import itertools

import pytest

from gradviz.errors import UserError
from gradviz.trace.format.scope import Action, StepSchedule, schedule

LETTERS = {
    Action.NONE: "-",
    Action.WARMUP: "w",
    Action.RECORD: "r",
    Action.RECORD_AND_SAVE: "s",
}


def actions(made, num_steps):
    return "".join(LETTERS[made(step)] for step in range(num_steps))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"active": 1}, "ssssss"),
        ({"active": 3}, "rrsrrsrrs"),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, "-wrs-wrs----"),
        ({"wait": 1, "warmup": 1, "active": 2}, "-wrs-wrs-wrs"),
        ({"wait": 2, "active": 1, "repeat": 1}, "--s-----"),
        ({"warmup": 2, "active": 1, "repeat": 1}, "wws-----"),
        ({"skip_first": 3, "wait": 1, "active": 1, "repeat": 1}, "----s---"),
    ],
)
def test_a_schedule_waits_warms_up_and_records_in_cycles(asked, expected):
    assert actions(schedule(**asked), len(expected)) == expected


@pytest.mark.filterwarnings("ignore:Profiler won.t be using warmup")
def test_it_says_of_every_step_what_pytorchs_says():
    profiler = pytest.importorskip("torch.profiler")
    for wait, warmup, active, repeat, skip_first in itertools.product(
        (0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2), (0, 2)
    ):
        asked = {
            "wait": wait,
            "warmup": warmup,
            "active": active,
            "repeat": repeat,
            "skip_first": skip_first,
        }
        ours, theirs = schedule(**asked), profiler.schedule(**asked)
        for step in range(24):
            assert ours(step).name == theirs(step).name, (asked, step)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"active": 0}, "active is 0, expected an integer, at least 1"),
        ({"active": 1, "wait": -1}, "wait is -1, expected an integer, at least 0"),
        ({"active": 1.5}, "active is 1.5"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(asked, told):
    with pytest.raises(UserError, match=told):
        schedule(**asked)


def test_a_step_before_the_first_is_refused():
    with pytest.raises(UserError, match="steps count from 0"):
        StepSchedule()(-1)


def test_a_schedule_is_told_in_a_few_words():
    assert str(schedule(wait=1, active=2)) == "wait=1 warmup=0 active=2 repeat=0"
    assert str(schedule(active=2, skip_first=9)).endswith(" skip_first=9")
