"""Collectives of several ranks as evidence about clocks and missing ranks.

The n-th collective of a process group on each rank is one collective. None of its ranks
can end it before all have begun it, whatever their clocks say.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from gradviz.trace.format.model import Trace

#: Operations in which each rank waits for all others.
_TOGETHER: Final = ("all", "_all", "barrier", "reduce_scatter", "_reduce_scatter")

#: A process group and the name of an operation.
_Series: TypeAlias = tuple[str, str]


class CollectiveTimes(NamedTuple):
    """Begin and end of a collective on one rank, by that rank's clock."""

    began_ns: int
    ended_ns: int


class ClockBounds(NamedTuple):
    """Bounds that one collective sets on the offset of two clocks.

    Attributes:
        at_ns: Time at which it ran, on the second clock.
        least_ns: Time to add to that for the first clock, at least,
        most_ns: and at most.
    """

    at_ns: int
    least_ns: int
    most_ns: int


def clock_bounds(first: Trace, second: Trace) -> Iterator[ClockBounds]:
    """Yield the bounds that collectives set on the clocks of two ranks.

    Those of which one rank has more than the other say nothing.
    """
    ours, theirs = _spans(first), _spans(second)
    for kind in ours.keys() & theirs.keys():
        if len(ours[kind]) != len(theirs[kind]):
            continue
        for one, other in zip(ours[kind], theirs[kind], strict=True):
            if one is None or other is None:
                continue
            least_ns = one.began_ns - other.ended_ns
            most_ns = one.ended_ns - other.began_ns
            if least_ns <= most_ns:
                at_ns = (other.began_ns + other.ended_ns) // 2
                yield ClockBounds(at_ns, least_ns, most_ns)


def uneven_in_words(named: Sequence[tuple[str, Trace]]) -> list[str]:
    """Return a report on ranks that lack collectives, or are missing.

    Args:
        named: Traces, each with the name of its process; empty if it is of several.
    """
    ranks = [(name, trace) for name, trace in named if name and _has_any(trace)]
    numbers: dict[_Series, dict[str, int]] = defaultdict(dict)
    for name, trace in ranks:
        for kind, spans in _begun(trace).items():
            numbers[kind][name] = len(spans)
    found = []
    for (group, operation), counts in sorted(numbers.items()):
        size = max(_world_size(trace, group) for _, trace in ranks)
        if len(counts) < size == len(ranks) or len({*counts.values()}) > 1:
            each = ", ".join(f"{name} {counts.get(name, 0):,}" for name, _ in ranks)
            of = f" of process group {group}" if group else ""
            found.append(f"ranks ran different numbers of {operation}{of}: {each}")
    size = max((_world_size(trace) for _, trace in ranks), default=0)
    if 1 < len(ranks) < size:
        found.append(f"traces of {len(ranks)} ranks of {size} are here")
    return found


def _has_any(trace: Trace) -> bool:
    return bool(trace.columns["collective_began"].num_rows)


def _world_size(trace: Trace, group: str | None = None) -> int:
    """Return the number of ranks of a process group, or of the largest."""
    strings = trace.strings
    sizes = (
        size
        for name, size in trace.columns["collective_began"].rows("group", "world_size")
        if group is None or strings[name] == group
    )
    return max(sizes, default=-1)


def _begun(trace: Trace) -> Mapping[_Series, list[tuple[int, int]]]:
    """Return when collectives began, and their ids, by their kind and in order."""
    found: dict[_Series, list[tuple[int, int]]] = defaultdict(list)
    strings = trace.strings
    for group, name, t_ns, collective in trace.columns["collective_began"].rows(
        "group", "name", "t_ns", "collective"
    ):
        found[strings[group], strings[name]].append((t_ns, collective))
    return found


def _spans(trace: Trace) -> Mapping[_Series, list[CollectiveTimes | None]]:
    """Return collectives in which ranks wait for each other; None for one unended."""
    ends = trace.columns["collective_ended"]
    ended = dict(zip(ends["collective"].tolist(), ends["t_ns"].tolist(), strict=True))
    return {
        kind: [
            CollectiveTimes(t_ns, ended[number]) if number in ended else None
            for t_ns, number in begun
        ]
        for kind, begun in _begun(trace).items()
        if kind[1].rpartition(":")[2].startswith(_TOGETHER)
    }
