import random

import pytest

from gradviz.trace.checking import lifecycle
from gradviz.trace.checking.lifecycle import check_events, judge

LIVES = {
    "kernel": [
        ("kernel_launched", 5, "sim:0/1", "mul"),
        ("array_accessed", 5, 6, "0;2;8;8", True),
        ("kernel_ran", 5, 60, 70),
    ],
    "memory": [
        ("memory_allocated", 6, "sim:0/1", 80),
        ("array_accessed", 5, 6, "0;2;8;8", True),
        ("memory_shared", 6, "sim:0/0"),
        ("memory_freed", 6, "sim:0/1"),
    ],
    "event": [
        ("event_recorded", -1, -1, "sim:0/1", 5),
        ("stream_waited", -1, -1, "sim:0/0", 5, -1),
        ("leaf_stream_synced", 0, "sim:0/1", "sim:0/0", 5),
        ("event_synchronized", 5),
    ],
}


def reasons(bench, reports):
    for method, *arguments in reports:
        getattr(bench.recorder, method)(*arguments)
    return [violation.reason for violation in check_events(bench.events())]


@pytest.mark.parametrize("thing", LIVES)
def test_each_thing_may_live_as_it_does(bench, thing):
    assert reasons(bench, LIVES[thing]) == []


@pytest.mark.parametrize("thing", LIVES)
def test_an_object_from_before_the_recording_may_be_used_and_end(bench, thing):
    assert reasons(bench, LIVES[thing][1:]) == []


@pytest.mark.parametrize("thing", LIVES)
def test_nothing_begins_twice(bench, thing):
    assert reasons(bench, [LIVES[thing][0]] * 2) == [f"its {thing} has begun before"]


@pytest.mark.parametrize(
    ("thing", "place"), [(thing, n) for thing in LIVES for n in range(1, 3)]
)
def test_nothing_is_used_before_it_begins(bench, thing, place):
    life = LIVES[thing]

    (reason,) = reasons(bench, [life[place], life[0]])
    part = "has ended before" if life[place][0] == "kernel_ran" else "was used before"
    assert reason == f"its {thing} {part}"


@pytest.mark.parametrize(
    ("thing", "place"),
    [("kernel", 1), ("kernel", 2), ("memory", 1), ("memory", 2), ("memory", 3)],
)
def test_nothing_is_used_after_its_end(bench, thing, place):
    life = LIVES[thing]

    assert reasons(bench, [life[-1], life[place]]) == [f"its {thing} has ended before"]


@pytest.mark.parametrize("seed", range(20))
def test_of_many_events_the_same_are_found(bench, monkeypatch, seed):
    """Of a long trace only things that break a rule are looked at one by one."""
    chance = random.Random(seed)
    every = [report for life in LIVES.values() for report in life]
    for method, *arguments in chance.choices(every, k=chance.randint(1, 12)):
        for number in (0, chance.randint(0, 2)):
            getattr(bench.recorder, method)(
                *[one + number if one in {5, 6} else one for one in arguments]
            )
    trace = bench.trace()
    expected = check_events(trace.events(), is_complete=trace.losses.is_complete)
    monkeypatch.setattr(lifecycle, "_FEW", 0)

    assert judge(trace).violations == expected
