"""One lane for each worker of a distributed program, in place of one for each thread.

A worker runs its parts of a pass on whichever thread of its pool is free, so threads
say little. The spans of all its threads are packed into as few rows as they need; what
one of them nests stays nested. Sleeps of single threads say nothing of their worker and
are left out. Time in which a worker computed nothing is its *bubble*: that in which it
ran no node, hook, kernel, forward or optimizer; in a collective it may just wait.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline, busy_ns
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.trace.format.model import Trace
from gradviz.trace.reading.worker_threads import owner_of

_Some = TypeVar("_Some", bound=msgspec.Struct)

#: Activities of a thread that say nothing of its worker.
_OF_THREADS: Final = frozenset({"wait", "setup", "finish"})

#: Activities of a worker that computes.
_WORK: Final = frozenset({"node", "hook", "kernel", "forward", "optimizer"})


def with_worker_lanes(timeline: Timeline) -> Timeline:
    """Return a timeline with one lane for each worker; as it is if there are none."""
    owners = {lane.thread: owner_of(lane.name) for lane in timeline.lanes}
    by_owner: dict[str, list[Lane]] = defaultdict(list)
    for lane in timeline.lanes:
        if lane.thread >= 0 and owners[lane.thread]:
            by_owner[owners[lane.thread]].append(lane)
    if not by_owner:
        return timeline
    first = {owner: own[0].thread for owner, own in by_owner.items()}
    lane_of = {
        lane.thread: first.get(owners[lane.thread], lane.thread)
        for lane in timeline.lanes
        if lane.thread >= 0
    }
    lanes = [_merged(owner, own) for owner, own in by_owner.items()]
    lanes += [
        lane for lane in timeline.lanes if lane.thread < 0 or not owners[lane.thread]
    ]
    return replace(
        timeline,
        lanes=tuple(lane for lane in lanes if lane.spans),
        threads={**timeline.threads, **{first[owner]: owner for owner in first}},
        pushes=tuple(
            _in_lanes(one, lane_of, "from_thread", "to_thread")
            for one in timeline.pushes
            if lane_of.get(one.from_thread, -1) != lane_of.get(one.to_thread, -2)
        ),
        messages=tuple(
            _in_lanes(one, lane_of, "thread", "to_thread")
            for one in timeline.messages
            if one.worker != one.peer
        ),
        rank_waits=tuple(
            _in_lanes(one, lane_of, "thread", "last_thread")
            for one in timeline.rank_waits
        ),
        queues=tuple(
            replace(one, thread=-1)
            if lane_of.get(one.thread) in first.values()
            else one
            for one in timeline.queues
        ),
    )


def with_ranks(trace: Trace, tasks: Sequence[int]) -> tuple[int, ...]:
    """Return passes, and those of other ranks that have collectives in common."""
    if not trace.columns["collective_began"].num_rows:
        return tuple(tasks)
    # Loaded where there are several ranks.
    from gradviz.analysis.tables.collectives import collectives  # noqa: PLC0415

    found = dict.fromkeys(tasks)
    for one in collectives(trace):
        shared = [part.task for part in one.parts if part.task is not None]
        if not found.keys().isdisjoint(shared):
            found |= dict.fromkeys(shared)
    return tuple(found)


def bubble(lane: Lane, begin_ns: int, end_ns: int) -> float:
    """Return in which part of some time a lane computed nothing, from 0 to 1."""
    ran = sorted(
        (max(one.start_ns, begin_ns), min(one.end_ns, end_ns))
        for one in lane.spans
        if one.kind in _WORK
    )
    busy = busy_ns((start, end) for start, end in ran if start < end)
    return 1.0 - busy / max(end_ns - begin_ns, 1)


def _in_lanes(one: _Some, lane_of: dict[int, int], *names: str) -> _Some:
    """Return the same with the lanes of some threads in place of them."""
    threads = {name: getattr(one, name) for name in names}
    return replace(
        one,
        **{name: lane_of.get(thread, thread) for name, thread in threads.items()},
    )


def _merged(owner: str, lanes: Sequence[Lane]) -> Lane:
    """Return one lane of all that the threads of a worker did."""
    blocks = sorted(
        (block for lane in lanes for block in _blocks(lane)),
        key=lambda block: (block[0].start_ns, -block[0].end_ns),
    )
    free_from: list[int] = []  # of each row, from when on it is free
    spans: list[Span] = []
    for block in blocks:
        height = 1 + max(one.row for one in block)
        start, end = block[0].start_ns, max(one.end_ns for one in block)
        row = _lowest(free_from, start, height)
        free_from += [0] * (row + height - len(free_from))
        free_from[row : row + height] = [end] * height
        spans += [replace(one, row=row + one.row) for one in block]
    spans.sort(key=lambda one: (one.start_ns, one.row))
    nodes = sorted((one.start_ns, one.end_ns) for one in spans if one.kind == "node")
    return replace(
        lanes[0],
        name=owner,
        num_rows=max(len(free_from), 1),
        num_runs=len(nodes),
        busy_ns=busy_ns(nodes),
        spans=tuple(spans),
    )


def _blocks(lane: Lane) -> Iterator[list[Span]]:
    """Yield the outermost spans of a thread, each with all that lies in it."""
    kept = [one for one in lane.spans if one.kind not in _OF_THREADS]
    outer = _outermost(kept)
    for begin, end in pairwise([*outer, len(kept)]):
        least = kept[begin].row
        block = [replace(one, row=max(one.row - least, 0)) for one in kept[begin:end]]
        if block:
            yield block


def _outermost(spans: Sequence[Span]) -> list[int]:
    """Return where spans begin that lie in none before them."""
    found, reached = [], -1
    for at, one in enumerate(spans):  # in order of start
        if one.start_ns >= reached:
            found.append(at)
        reached = max(reached, one.end_ns)
    return found


def _lowest(free_from: Sequence[int], start: int, height: int) -> int:
    """Return the lowest of so many rows that are free from a time on."""
    for row in range(len(free_from)):
        if all(end <= start for end in free_from[row : row + height]):
            return row
    return len(free_from)
