import itertools
import time

import pytest

from gradviz.trace.format.clock import (
    clock_of_several,
    event_clock,
    read_pair,
    strictly_increasing,
)


def test_a_clock_that_stands_still_is_helped_by_a_nanosecond():
    clock = strictly_increasing(lambda: 5)

    assert [clock() for _ in range(4)] == [5, 6, 7, 8]


@pytest.mark.parametrize("clock", [time.perf_counter_ns, lambda: 5])
def test_a_reading_that_does_for_several_events_is_followed_by_none_of_their_times(
    clock,
):
    clock = event_clock(clock)
    several = clock_of_several(clock, 4)

    readings = [read() for _ in range(100) for read in (several, clock)]
    assert all(
        late - early >= (1, 4)[place % 2 == 0]
        for place, (early, late) in enumerate(itertools.pairwise(readings))
    )


def test_a_clock_that_moves_on_is_left_alone():
    clock = strictly_increasing(iter((10, 20, 30)).__next__)

    assert [clock() for _ in range(3)] == [10, 20, 30]


def test_a_clock_that_goes_back_does_not_take_events_with_it():
    clock = strictly_increasing(iter((10, 3, 11, 40)).__next__)

    assert [clock() for _ in range(4)] == [10, 11, 12, 40]


def test_the_performance_counter_needs_no_help_where_it_is_fine():
    clock = event_clock(time.perf_counter_ns)
    readings = [clock() for _ in range(20_000)]

    assert all(early < late for early, late in itertools.pairwise(readings))


def test_a_coarse_performance_counter_is_helped(monkeypatch):
    class Coarse:
        resolution = 1e-7

    monkeypatch.setattr(time, "get_clock_info", lambda name: Coarse)

    assert event_clock(time.perf_counter_ns) is not time.perf_counter_ns


def test_a_pair_reads_both_clocks():
    pair = read_pair(lambda: 17)

    assert pair.monotonic_ns == 17
    assert pair.wall_ns > 1_600_000_000 * 10**9
