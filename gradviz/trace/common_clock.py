"""Where the times of several traces lie on one clock.

Processes of one machine that run since the same start of it share its monotonic clock:
their times can be compared as they are. Others have only the time of day in common, in
which nobody knows how well their clocks agree.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.trace.model import Trace

#: Starts of one machine lie further apart than this.
_SAME_START_NS: Final = 1_000_000_000

#: Clocks that are read one after the other differ by less.
_AGREE_NS: Final = 1_000_000


class ClockPlacement(NamedTuple):
    """What brings the times of a trace to the clock of another.

    Attributes:
        shift_ns: To be added to them.
        doubt: Why they may be wrong by more than it takes to read a clock; empty if
            there is no reason.
    """

    shift_ns: int
    doubt: str


class _Offset(NamedTuple):
    """What the time of day is ahead of the monotonic clock, at least and at most."""

    least: int
    most: int


def placements(traces: Sequence[Trace]) -> list[ClockPlacement]:
    """How each trace is brought to the clock of the first one."""
    first = traces[0]
    return [ClockPlacement(0, ""), *(_placement(first, other) for other in traces[1:])]


def _placement(first: Trace, other: Trace) -> ClockPlacement:
    one, two = _offset(first), _offset(other)
    apart = max(two.least - one.most, one.least - two.most, 0)
    is_same_machine = first.header.host == other.header.host != ""
    if is_same_machine and apart < _SAME_START_NS:
        if apart < _AGREE_NS:
            return ClockPlacement(0, "")
        return ClockPlacement(
            0,
            f"between the recordings the time of day was set by {apart / 1e6:,.3g} ms; "
            f"times are those of the monotonic clock",
        )
    drift = (one.most - one.least) + (two.most - two.least)
    whose = (
        "of another start of the machine" if is_same_machine else "of another machine"
    )
    return ClockPlacement(
        two.least - one.least,
        f"its clock is {whose}: it is put where the time of day says, which is off by "
        f"{drift / 1e6:,.3g} ms within the recordings, between them nobody knows",
    )


def _offset(trace: Trace) -> _Offset:
    offsets = [one.wall_ns - one.monotonic_ns for one in trace.clocks]
    return _Offset(min(offsets), max(offsets))
