"""The time that a pass would take if some of its nodes took none.

Every time is computed anew over the whole graph of causes, not added up: what a node
gives away another way through the graph may take. The order of nodes on each thread
stays as recorded, and so does what lies between them; see
Note [Moments and what they wait for].
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.causes.causal_graph import Causes
from gradviz.analysis.causes.thread_lanes import Act
from gradviz.trace.format.table import Column

#: Maximum number of stops gone through, over all rounds,
_MAX_STEPS: Final = 500_000
#: for so many nodes at once at the most,
_MOST_AT_ONCE: Final = 20_000
#: with so many numbers that are remembered at a time, and so many that are computed.
_MAX_REMEMBERED: Final = 4_000_000
_MAX_COMPUTED: Final = 200_000_000


class Stops(NamedTuple):
    """The moments at which ways from lane to lane begin or end; see `Causes`.

    All others follow each other on their lanes without anything else to wait for.

    Attributes:
        moment: Each of them, the first the start of the pass and the last its end.
        before: The stop before it on its lane, by its place here; 0 for none.
        gap_ns: From that one to the last moment before this one on its lane.
        took_ns: Time between all that it waits for and itself.
        of: Of every moment the next stop on its lane, itself included; -1 for none.
        ways: Of each stop from which others it is reached.
    """

    moment: Column
    before: Column
    gap_ns: Column
    took_ns: Column
    of: Column
    ways: Sequence[Sequence[int]]


def find_stops(causes: Causes) -> Stops:
    """The stops of a pass."""
    size = len(causes.t_ns)
    is_stop = np.zeros(size, np.bool_)
    is_stop[[0, -1]] = True
    is_stop[causes.source] = is_stop[causes.target] = True
    moment = np.flatnonzero(is_stop)
    number = np.cumsum(is_stop) - 1
    in_lanes = np.argsort(causes.lane, kind="stable")
    lanes, here = causes.lane[in_lanes], is_stop[in_lanes]
    # The next stop at or after each place of the lanes put one after the other.
    place = np.where(here, np.arange(size), size)
    place = np.minimum.accumulate(place[::-1])[::-1]
    following = np.append(in_lanes, -1)[place]
    is_own = (following >= 0) & (causes.lane[following] == lanes)
    of = np.empty(size, np.int64)
    of[in_lanes] = np.where(is_own, number[following], -1)
    at = np.flatnonzero(here)
    before = np.zeros(len(moment), np.int64)
    is_own = lanes[at[1:]] == lanes[at[:-1]]
    before[number[in_lanes[at[1:]]]] = np.where(is_own, number[in_lanes[at[:-1]]], 0)
    t_ns, previous = causes.t_ns, causes.before[moment]
    ways: list[list[int]] = [[] for _ in moment]
    for source, target in zip(
        number[causes.source].tolist(), number[causes.target].tolist(), strict=True
    ):
        ways[target].append(source)
    return Stops(
        moment=moment,
        before=before,
        gap_ns=t_ns[previous] - t_ns[moment[before]],
        took_ns=causes.took_ns[moment],
        of=of,
        ways=ways,
    )


def tails(causes: Causes, stops: Stops) -> Column:
    """The longest way from each moment to the end of the pass; -1 where none leads."""
    found = [-1] * len(stops.moment)
    found[-1] = 0
    before, gap_ns = stops.before.tolist(), stops.gap_ns.tolist()
    took_ns = stops.took_ns.tolist()
    for place in range(len(found) - 1, 0, -1):
        if found[place] < 0:
            continue
        tail = found[place] + took_ns[place]
        one = before[place]
        found[one] = max(found[one], tail + gap_ns[place])
        for source in stops.ways[place]:
            found[source] = max(found[source], tail)
    tail_of = np.array(found, np.int64)
    stop = stops.moment[stops.of]
    length = causes.t_ns[causes.before[stop]] - causes.t_ns + causes.took_ns[stop]
    length[stop == np.arange(len(stop))] = 0
    reached = (stops.of >= 0) & (tail_of[stops.of] >= 0)
    return np.where(reached, length + tail_of[stops.of], -1)


def durations_without(
    causes: Causes, stops: Stops, owner: Column, candidates: Column
) -> Column:
    """Return the durations of the pass if each of some nodes takes no time.

    Args:
        causes: The pass.
        stops: Its stops.
        owner: For each moment the number of the node that ran, or whose kernel ran,
            until then; -1 for none.
        candidates: Numbers of nodes, those that matter most first.

    Returns:
        The durations of the first candidates, as many as `_MAX_STEPS` allows.
    """
    size, last_use = len(stops.moment), _last_uses(stops)
    ended = np.cumsum(np.bincount(last_use, minlength=size))
    most = int((np.arange(1, size + 1) - ended).max()) + 1
    at_once = min(_MAX_REMEMBERED // most, _MAX_COMPUTED // size, _MOST_AT_ONCE)
    at_once, num_rounds = max(at_once, 1), _MAX_STEPS // size
    found = [np.empty(0, np.int64)]
    for number in range(num_rounds):
        some = candidates[number * at_once : (number + 1) * at_once]
        if not len(some):
            break
        savings = _savings(causes, stops, owner, some)
        found.append(_durations(stops, savings, last_use, len(some)))
    return np.concatenate(found)


class _Saved(NamedTuple):
    """Time that some nodes save on the way to a stop: before it, or in its own."""

    stop: int
    is_own: bool
    which: Column
    saved_ns: Column


def _savings(
    causes: Causes, stops: Stops, owner: Column, some: Column
) -> Iterator[_Saved]:
    """Yield the savings of each of `some` without its time, in order of the stops."""
    is_run = np.isin(causes.act, (Act.RUNNING, Act.KERNEL)) & (stops.of >= 0)
    moments = np.flatnonzero(is_run & np.isin(owner, some))
    order = np.argsort(some)
    which = order[np.searchsorted(some[order], owner[moments])]
    at = 2 * stops.of[moments] + (stops.moment[stops.of[moments]] == moments)
    keys, place = np.unique(at * len(some) + which, return_inverse=True)
    saved_ns = np.zeros(len(keys), np.int64)
    np.add.at(saved_ns, place, causes.took_ns[moments])
    at, which = keys // len(some), keys % len(some)
    bounds = np.flatnonzero(np.diff(at, prepend=-1, append=-1)).tolist()
    for begin, end in pairwise(bounds):
        stop, is_own = divmod(int(at[begin]), 2)
        yield _Saved(stop, bool(is_own), which[begin:end], saved_ns[begin:end])


def _last_uses(stops: Stops) -> Column:
    """Of each stop the last one that is reached from it."""
    found = np.arange(len(stops.moment))
    np.maximum.at(found, stops.before, np.arange(len(found)))
    for place, sources in enumerate(stops.ways):
        for source in sources:
            found[source] = max(found[source], place)
    return found


def _durations(
    stops: Stops, savings: Iterable[_Saved], last_use: Column, width: int
) -> Column:
    """The longest ways to the end, one for each of `width` changes."""
    reached: dict[int, Column] = {0: np.zeros(width, np.int64)}
    before, gap_ns = stops.before.tolist(), stops.gap_ns.tolist()
    took_ns, last = stops.took_ns.tolist(), last_use.tolist()
    saved = {(one.stop, one.is_own): one for one in savings}
    for place in range(1, len(before)):
        row = reached[before[place]] + gap_ns[place]
        if (one := saved.get((place, False))) is not None:
            row[one.which] -= one.saved_ns
        for source in stops.ways[place]:
            np.maximum(row, reached[source], out=row)
        row += took_ns[place]
        if (one := saved.get((place, True))) is not None:
            row[one.which] -= one.saved_ns
        reached[place] = row
        for source in (before[place], *stops.ways[place]):
            if last[source] == place:
                reached.pop(source, None)
    return reached[len(before) - 1]
