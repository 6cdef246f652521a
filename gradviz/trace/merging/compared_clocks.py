"""Clocks of machines compared, by the messages between their workers.

A worker asks others for their clocks, several times in a row. What is answered was read
between the question and the moment at which the answer was noted; the question came
after the answer before it was noted. So each answer says where one clock was between
two moments of the other one, and the quickest says most. Ranks that took part in one
collective say as much: no rank ended it before another had begun it.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column
from gradviz.trace.merging.collective_order import clock_bounds

#: Answers that lie further apart belong to different windows.
_WINDOW_NS: Final = 250_000_000

#: Clocks of computers go wrong by less, as a part of the time that goes by.
_MAX_DRIFT: Final = 200e-6


#: No clock that is right says as much: what does is damaged.
_MAX_NS: Final = 2**61


class ClockMap(NamedTuple):
    """Mapping of one clock's times to another: linear pieces between moments.

    Attributes:
        at_ns: The moments, on the first clock.
        shift_ns: Amount to add there.
        uncertainty_ns: Possible error, if the clocks run evenly from each moment to
            the next.
    """

    at_ns: tuple[int, ...] = (0,)
    shift_ns: tuple[int, ...] = (0,)
    uncertainty_ns: int = 0

    @property
    def is_even(self) -> bool:
        """Return whether the shift is the same for all times."""
        return len(self.at_ns) == 1

    def moved(self, times: Column) -> Column:
        """Return times on the other clock; the outer pieces extend forever."""
        if self.is_even:
            return times + self.shift_ns[0]
        at, shift = np.array(self.at_ns), np.array(self.shift_ns)
        piece = np.clip(np.searchsorted(at, times) - 1, 0, len(at) - 2)
        rate = (np.diff(shift) / np.diff(at))[piece]
        since = np.rint(rate * (times - at[piece]))
        moved: Column = times + shift[piece] + since.astype(np.int64)
        return moved


class _Reading(NamedTuple):
    """A clock's time and the shift there, wrong by at most `half_ns`."""

    at_ns: int
    shift_ns: int
    half_ns: int


def workers(trace: Trace) -> set[int]:
    """The workers of a distributed program that began in a trace."""
    return {*trace.columns["worker_began"]["worker"].tolist()}


def compared_clocks(first: Sequence[Trace], others: Sequence[Trace]) -> ClockMap | None:
    """Return the offset from the clock of `others` to that of `first`, if known.

    None, too, if what was answered cannot be true of any two clocks.

    Args:
        first: Traces that have one clock.
        others: Traces that have another.
    """
    asked = [*_asked_by(others, of=first)]
    asked += [
        _Reading(one.at_ns + one.shift_ns, -one.shift_ns, one.half_ns)
        for one in _asked_by(first, of=others)
    ]
    asked += _bounded(first, others)
    knots = _best(sorted(asked))
    if not knots:
        return None
    at = np.array([one.at_ns for one in knots])
    shift = np.array([one.shift_ns for one in knots])
    half = np.array([one.half_ns for one in knots])
    apart, doubt = np.diff(at), half[1:] + half[:-1]
    if (np.abs(np.diff(shift)) > doubt + _MAX_DRIFT * apart).any():
        return None
    rates = doubt / apart if len(apart) else np.array([_MAX_DRIFT])
    began, ended = _extent(others)
    outside = max(
        half[0] + rates[0] * max(knots[0].at_ns - began, 0),
        half[-1] + rates[-1] * max(ended - knots[-1].at_ns, 0),
    )
    uncertainty = int(np.ceil(max(outside, half.max())))
    return ClockMap(tuple(at.tolist()), tuple(shift.tolist()), uncertainty)


def _asked_by(askers: Sequence[Trace], *, of: Sequence[Trace]) -> list[_Reading]:
    """Return the readings of other clocks that some asked for, on their own clocks."""
    peers = {rank for trace in of for rank in workers(trace)}
    found = []
    for trace in askers:
        table = trace.columns["clock_compared"]
        before: dict[int, int] = {}
        for thread, t_ns, peer, peer_ns in table.rows(
            "thread", "t_ns", "peer", "peer_ns"
        ):
            asked_ns = before.get(thread)
            before[thread] = t_ns
            if asked_ns is None or peer not in peers:
                continue
            if 0 <= asked_ns <= t_ns < _MAX_NS and 0 <= peer_ns < _MAX_NS:
                middle = (asked_ns + t_ns) // 2
                half = (t_ns - asked_ns + 1) // 2 + 1
                found.append(_Reading(middle, peer_ns - middle, half))
    return found


def _bounded(first: Sequence[Trace], others: Sequence[Trace]) -> Iterator[_Reading]:
    """Yield the bounds that collectives set on the clock of `others`.

    What cannot all be true of two clocks says nothing: it was matched wrongly.
    """
    for one, other in itertools.product(first, others):
        bounds = [*clock_bounds(one, other)]
        if not bounds:
            continue
        at, least, most = zip(*bounds, strict=True)
        if max(least) - min(most) > _MAX_DRIFT * (max(at) - min(at)):
            continue
        for at_ns, least_ns, most_ns in bounds:
            if 0 <= at_ns < _MAX_NS and least_ns > -_MAX_NS and most_ns < _MAX_NS:
                half_ns = (most_ns - least_ns + 1) // 2 + 1
                yield _Reading(at_ns, (least_ns + most_ns) // 2, half_ns)


def _best(readings: Sequence[_Reading]) -> list[_Reading]:
    """Of readings in order the best of each window."""
    found: list[_Reading] = []
    last_ns = 0
    for one in readings:
        if not found or one.at_ns - last_ns > _WINDOW_NS:
            found.append(one)
        elif one.half_ns < found[-1].half_ns:
            found[-1] = one
        last_ns = one.at_ns
    # One that spans the time between two windows lies in neither and says nothing.
    return [one for one in found if one.half_ns < _WINDOW_NS]


def _extent(traces: Sequence[Trace]) -> tuple[int, int]:
    """The first and the last moment of some traces."""
    tables = [table for one in traces for table in one.columns.values()]
    times = [table["t_ns"] for table in tables if table.num_rows]
    return min(int(one.min()) for one in times), max(int(one.max()) for one in times)
