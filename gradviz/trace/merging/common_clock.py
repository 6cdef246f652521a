"""A common clock for the times of several traces.

Processes of one machine that run since the same start of it share its monotonic clock:
their times can be compared as they are. Which start that was the machine tells, or else
its name and the time of day do. Workers of a distributed program have asked each other
for their clocks. Others have only the time of day in common, in which nobody knows how
well their clocks agree.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.trace.format.model import Trace
from gradviz.trace.merging.compared_clocks import ClockMap, compared_clocks

#: Starts of one machine lie further apart than this.
_SAME_START_NS: Final = 1_000_000_000

#: Clocks that are read one after the other differ by less.
_AGREE_NS: Final = 1_000_000


class ClockPlacement(NamedTuple):
    """Mapping of a trace's times to the clock of another trace.

    Attributes:
        clock: Maps the times.
        doubt: Reason why they may be wrong by more than it takes to read a clock;
            empty without one.
    """

    clock: ClockMap
    doubt: str


class _Offset(NamedTuple):
    """Bounds of the difference between the time of day and the monotonic clock."""

    least: int
    most: int


def placements(traces: Sequence[Trace]) -> list[ClockPlacement]:
    """Return the placement of each trace on the clock of the first one."""
    return [_placement(traces, other) for other in traces]


def _placement(traces: Sequence[Trace], other: Trace) -> ClockPlacement:
    first = traces[0]
    if _have_one_clock(first, other):
        apart = _apart(first, other)
        if apart < _AGREE_NS:
            return ClockPlacement(ClockMap(), "")
        return ClockPlacement(
            ClockMap(),
            f"between the recordings the time of day was set by {apart / 1e6:,.3g} ms; "
            f"times are those of the monotonic clock",
        )
    # Of a machine all are moved alike, by what any of them was told.
    clock = compared_clocks(
        [one for one in traces if _have_one_clock(first, one)],
        [one for one in traces if _have_one_clock(other, one)],
    )
    if clock is not None:
        return ClockPlacement(clock, "")
    one, two = _offset(first), _offset(other)
    drift = (one.most - one.least) + (two.most - two.least)
    whose = (
        "of another start of the machine"
        if first.header.host == other.header.host != ""
        else "of another machine"
    )
    return ClockPlacement(
        ClockMap(shift_ns=(two.least - one.least,)),
        f"its clock is {whose}: it is put where the time of day says, which is off by "
        f"{drift / 1e6:,.3g} ms within the recordings, between them nobody knows",
    )


def _have_one_clock(one: Trace, other: Trace) -> bool:
    a, b = one.header, other.header
    if one is other or (a.boot_id and b.boot_id):
        return a.boot_id == b.boot_id  # whatever containers of one machine are called
    return a.host == b.host != "" and _apart(one, other) < _SAME_START_NS


def _apart(one: Trace, other: Trace) -> int:
    a, b = _offset(one), _offset(other)
    return max(b.least - a.most, a.least - b.most, 0)


def _offset(trace: Trace) -> _Offset:
    offsets = [one.wall_ns - one.monotonic_ns for one in trace.clocks]
    return _Offset(min(offsets), max(offsets))
