"""Collectives of data-parallel programs: the same one on all ranks, side by side.

The n-th collective of a process group on each rank is one collective. Where ranks have
different numbers of them, one lacks its part on some: then those that overlap in time
are one, for no rank ends a collective before the last one has begun it.
"""

import bisect
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from gradviz.trace.format.model import Trace


class BucketedGradient(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A gradient that went into a bucket.

    Attributes:
        node: The node that accumulated it.
        parameters: The names of its parameter.
        ready_ns: Time of its accumulation, on the trace's clock.
        size_bytes: Size of the gradient; None if unknown.
    """

    node: int
    parameters: tuple[str, ...]
    ready_ns: int
    size_bytes: int | None


class CollectivePart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one rank in a collective.

    Attributes:
        collective: Its id on this rank.
        rank: The rank; None if unknown.
        process: A place in the trace's processes.
        thread: The thread of the backend that ran it.
        task: The pass that launched it; None if unknown.
        node: The node that launched it; None if unknown.
        launched_ns: Time at which that node accumulated the gradient that filled the
            bucket, on the trace's clock; None if unknown.
        began_ns: Time of its start, on the trace's clock.
        ended_ns: Time of its end on this rank; None if the trace lacks that.
        gradients: Gradients that filled its bucket, in that order.
        began_seq: The event of its start.
        ended_seq: The event of its end, -1 if the trace lacks it.
    """

    collective: int
    rank: int | None
    process: int
    thread: int
    task: int | None
    node: int | None
    launched_ns: int | None
    began_ns: int
    ended_ns: int | None
    gradients: tuple[BucketedGradient, ...]
    began_seq: int
    ended_seq: int


class CollectiveFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a collective that all its ranks share.

    Attributes:
        name: Of the backend and the operation, such as ``gloo:all_reduce``.
        number: Its place among those of its name and group, from 0.
        group: Its process group; None if unknown.
        world_size: The number of ranks in that; None if unknown.
        model: The data-parallel model whose bucket it reduces; None if unknown.
        bucket: The index of that bucket; None if unknown.
        size_bytes: Size of the data that it reduces; None if unknown.
    """

    name: str
    number: int
    group: str | None
    world_size: int | None
    model: str | None
    bucket: int | None
    size_bytes: int | None


class Collective(CollectiveFacts, frozen=True, kw_only=True):
    """A collective of several ranks.

    Attributes:
        parts: Parts of the ranks, by their numbers; only those that the trace has.
    """

    parts: tuple[CollectivePart, ...]

    @property
    def began_ns(self) -> int:
        """The time at which the first rank began it."""
        return min(one.began_ns for one in self.parts)


class _Operation(msgspec.Struct, frozen=True):
    """Facts that all parts of a collective share, and those of others may share."""

    group: str
    name: str


class _Begun(msgspec.Struct, frozen=True):
    """A part, and its start's facts about the whole."""

    part: CollectivePart
    world_size: int
    model: str
    bucket: int
    size_bytes: int


#: Collectives of traces that somebody holds: the path of each pass asks for them.
_found: Final[weakref.WeakKeyDictionary[Trace, tuple[Collective, ...]]] = (
    weakref.WeakKeyDictionary()
)


def collectives(trace: Trace) -> tuple[Collective, ...]:
    """Return the collectives of a trace in the order in which they began."""
    if trace not in _found:
        _found[trace] = _collectives(trace)
    return _found[trace]


def _collectives(trace: Trace) -> tuple[Collective, ...]:
    by_kind: dict[_Operation, dict[int, list[_Begun]]] = defaultdict(dict)
    for kind, begun in _begun(trace):
        by_kind[kind].setdefault(begun.part.process, []).append(begun)
    found = [
        _joined(kind, number, parts)
        for kind, of_process in by_kind.items()
        for number, parts in enumerate(_matched(list(of_process.values())))
    ]
    return tuple(sorted(found, key=lambda one: one.began_ns))


def outermost_pass(task: int, parents: Mapping[int, int]) -> int:
    """Return the pass that no other is around.

    Args:
        task: A pass inside of it, or that itself.
        parents: The pass around each, -1 for none.
    """
    seen = {task}
    while (parent := parents.get(task, -1)) >= 0 and parent not in seen:
        seen.add(parent)  # a damaged trace may have a pass inside of itself
        task = parent
    return task


def _begun(trace: Trace) -> Iterator[tuple[_Operation, _Begun]]:
    process_of = {
        thread: place
        for place, process in enumerate(trace.processes)
        for thread in process.threads
    }
    ends = {
        collective: (t_ns, seq)
        for collective, t_ns, seq in trace.columns["collective_ended"].rows(
            "collective", "t_ns", "seq"
        )
    }
    gradients, ready = _gradients(trace, process_of)
    strings = trace.strings
    columns = ("seq", "t_ns", "thread", "task", "node", "collective", "name", "group")
    others = ("rank", "world_size", "size_bytes", "model", "bucket")
    for row in trace.columns["collective_began"].rows(*columns, *others):
        seq, t_ns, thread, task, node, collective, name, group = row[:8]
        rank, world_size, size, model, bucket = row[8:]
        process = process_of.get(thread, 0)
        ended_ns, ended_seq = ends.get(collective, (None, -1))
        filled = gradients.get((process, strings[model], bucket), [])
        own = [one for one in filled if one.ready_ns <= t_ns]
        del filled[: len(own)]  # what later passes put there is of later collectives
        part = CollectivePart(
            collective=collective,
            rank=None if rank < 0 else rank,
            process=process,
            thread=thread,
            task=None if task < 0 else task,
            node=None if node < 0 else node,
            launched_ns=_last(ready.get((process, node), ()), t_ns),
            began_ns=t_ns,
            ended_ns=ended_ns,
            gradients=tuple(own),
            began_seq=seq,
            ended_seq=ended_seq,
        )
        begun = _Begun(part, world_size, strings[model], bucket, size)
        yield _Operation(strings[group], strings[name]), begun


def _last(times: Sequence[int], until_ns: int) -> int | None:
    """Return the last of some times, in order, until a moment; None if none is."""
    place = bisect.bisect_right(times, until_ns)
    return times[place - 1] if place else None


class _Gradients(NamedTuple):
    """Gradients of buckets.

    Attributes:
        filled: Those in each bucket of a model in a process, in order.
        ready: The times at which each node of a process accumulated one, in order.
    """

    filled: dict[tuple[int, str, int], list[BucketedGradient]]
    ready: dict[tuple[int, int], list[int]]


def _gradients(trace: Trace, process_of: Mapping[int, int]) -> _Gradients:
    found = _Gradients(defaultdict(list), defaultdict(list))
    table = trace.columns["gradient_bucketed"]
    for thread, t_ns, node, model, bucket, size in table.rows(
        "thread", "t_ns", "node", "model", "bucket", "size_bytes"
    ):
        known = trace.nodes.get(node)
        one = BucketedGradient(
            node=node,
            parameters=() if known is None else known.parameters,
            ready_ns=t_ns,
            size_bytes=None if size < 0 else size,
        )
        process = process_of.get(thread, 0)
        found.filled[process, trace.strings[model], bucket].append(one)
        bisect.insort(found.ready[process, node], t_ns)
    return found


def _matched(of_processes: Sequence[Sequence[_Begun]]) -> Iterable[Sequence[_Begun]]:
    """Return which parts are of one collective, in order."""
    if len({len(parts) for parts in of_processes}) == 1:
        return zip(*of_processes, strict=True)
    return _overlapping([list(reversed(parts)) for parts in of_processes])


def _overlapping(waiting: list[list[_Begun]]) -> Iterator[Sequence[_Begun]]:
    """Yield parts that overlap in time; `waiting` has the next of each process last."""
    while waiting := [parts for parts in waiting if parts]:
        nexts = [parts[-1].part for parts in waiting]
        ends = [one.ended_ns for one in nexts if one.ended_ns is not None]
        first_end = min(ends, default=max(one.began_ns for one in nexts))
        together = [
            parts.pop() for parts in waiting if parts[-1].part.began_ns <= first_end
        ]
        if not together:  # a part that ended before it began: of a damaged trace
            together = [parts.pop() for parts in waiting]
        yield together


def _joined(kind: _Operation, number: int, parts: Sequence[_Begun]) -> Collective:
    """Return a collective; contradictions of its parts become unknown."""

    def agreed(name: str) -> int | None:
        numbers = {getattr(one, name) for one in parts} - {-1}
        return numbers.pop() if len(numbers) == 1 else None

    models = {one.model for one in parts} - {""}
    ordered = sorted(
        (one.part for one in parts), key=lambda one: (one.rank or 0, one.process)
    )
    return Collective(
        name=kind.name,
        number=number,
        group=kind.group or None,
        world_size=agreed("world_size"),
        model=models.pop() if len(models) == 1 else None,
        bucket=agreed("bucket"),
        size_bytes=agreed("size_bytes"),
        parts=tuple(ordered),
    )
