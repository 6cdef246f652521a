"""The profiler's clock, and that of events."""

import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from gradviz.pytorch.reconstruction.session import SeenRun
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass

#: The clocks are read so often, and the closest two readings count.
_READINGS: Final = 4


def offset_ns() -> int:
    """Return the offset from the clock of events to the one since 1970."""
    offsets = []
    for _ in range(_READINGS):
        before, wall, after = (
            time.perf_counter_ns(),
            time.time_ns(),
            time.perf_counter_ns(),
        )
        offsets.append((after - before, (before + after) // 2 - wall))
    return min(offsets)[1]


def fitted_offset(
    offset_ns: int, passes: Sequence[WatchedPass], runs: Sequence[SeenRun]
) -> int:
    """Return the offset of two clocks for which no run is outside of all passes.

    The profiler's clock is off by some microseconds.

    Args:
        offset_ns: The approximate offset.
        passes: On the clock of events.
        runs: On the profiler's clock, in the order in which they began.
    """
    if not runs or not passes:
        return offset_ns
    least = min(one.called_ns for one in passes) - runs[0][0]
    most = max(one.returned_ns for one in passes) - max(run[1] for run in runs)
    return max(least, min(offset_ns, most))


def within_its_node(
    one: WatchedPass, runs: Sequence[SeenRun], offset_ns: int
) -> tuple[int, int]:
    """Return the call and return of a pass, on the clock of the runs.

    The two clocks may differ by more than the time between the start of a node and that
    of a pass inside of it.
    """
    called_ns, returned_ns = one.called_ns, one.returned_ns
    if one.depth:
        middle = (called_ns + returned_ns) // 2 - offset_ns
        for index in reversed(range(bisect_right(runs, middle, key=_begin_of))):
            begin_ns, end_ns, _, _, thread, _ = runs[index]
            is_around = end_ns - begin_ns >= returned_ns - called_ns
            if is_around and end_ns >= middle and thread == one.thread:
                begin_ns, end_ns = begin_ns + offset_ns, end_ns + offset_ns
                return max(called_ns, begin_ns + 1), min(returned_ns, end_ns - 1)
    return called_ns, returned_ns


def _begin_of(run: SeenRun) -> int:
    return run[0]
