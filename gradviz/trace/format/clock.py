"""Clocks of recordings.

Events carry a monotonic time in nanoseconds. A `ClockPair` says which time of day that
was, so that traces of several processes can be laid side by side.
"""

import time
from collections.abc import Callable
from typing import Final

import msgspec

#: A clock answers in nanoseconds and never goes back.
Clock = Callable[[], int]

#: A node that takes less counts as running all of that time: the processor time of a
#: thread is known no better.
SHORT_NS: Final = 100_000

#: Two readings of a clock no coarser than this differ, if a Python call lies between.
_FINE_S: Final = 50e-9


class ClockPair(msgspec.Struct, frozen=True, kw_only=True):
    """The same moment on two clocks.

    Attributes:
        monotonic_ns: On the clock of the events.
        wall_ns: Since 1970 in UTC, as the machine's clock had it.
    """

    monotonic_ns: int
    wall_ns: int


def read_pair(clock: Clock) -> ClockPair:
    """This moment on `clock` and on the machine's wall clock."""
    return ClockPair(monotonic_ns=clock(), wall_ns=time.time_ns())


def is_the_computers(clock: Clock) -> bool:
    """Return whether `clock` is the one of all recordings of programs."""
    return clock is time.perf_counter_ns


def event_clock(clock: Clock) -> Clock:
    """`clock`, made to answer a larger number each time if it does not already.

    The order of a trace is the order of its times, so no two events of a thread may
    have the same. The performance counter is fine enough where its resolution says so;
    any other clock (a coarse one, a manual one in a test) is helped by a nanosecond.
    """
    if is_the_computers(clock):
        resolution = time.get_clock_info("perf_counter").resolution
        if resolution <= _FINE_S:
            return clock
    return strictly_increasing(clock)


def strictly_increasing(clock: Clock) -> Clock:
    """A clock that reads `clock`, or one more than last time where that stands still.

    It takes no lock, because a signal handler may read it in the middle of a reading.
    Threads that are switched between two bytecodes can therefore see the same number,
    never an earlier one of their own as long as `clock` itself moves on.
    """
    last = -1

    def tick() -> int:
        nonlocal last
        last = max(clock(), last + 1)
        return last

    return tick


def clock_of_several(clock: Clock, count: int) -> Clock:
    """A clock of events of which each reading does for `count` events.

    They may be told apart by a nanosecond each, up to `count` - 1: no later reading is
    as early as that.

    Args:
        clock: Of `event_clock`.
        count: A few.
    """
    if is_the_computers(clock):
        return clock  # a Python call takes longer than that

    def read() -> int:
        began = clock()
        for _ in range(count - 1):
            clock()
        return began

    return read
