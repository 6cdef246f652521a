"""Slices: what lasted for a while on one track, and how tracks are made of them.

Viewers want the slices of a track to nest. Those of a thread do, unless an error or an
interrupt left something open; what does not nest goes to a track of its own. Passes are
on no thread's: one ends with its last node, wherever that ran, while its caller may
still sleep.
"""

import heapq
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from gradviz.export.activity import Activity
from gradviz.trace.model import Trace

PASS: Final = "pass"
NODE: Final = "node"
SLEEP: Final = "sleep"
PUSH: Final = "push"

#: Of slices that begin and end together, the outer one.
_ORDER: Final = {NODE: 0, SLEEP: 1, PUSH: 2}


class Slice(NamedTuple):
    """A pass, or something that a thread did for a while.

    Attributes:
        begin_ns: When it began, on the clock of the trace.
        end_ns: When it ended; of a push, which takes no time, the same.
        kind: A pass, a node that a thread ran, its sleep on an empty queue, a push.
        place: Among the passes, the runs, or what was queued; of a sleep its queue.
    """

    begin_ns: int
    end_ns: int
    kind: str
    place: int


Some = TypeVar("Some")


def thread_slices(trace: Trace, what: Activity) -> Iterator[tuple[int, list[Slice]]]:
    """Each thread of a trace with what it did, in the order in which it began.

    Of two that begin together the longer one comes first.
    """
    places: dict[int, list[Slice]] = defaultdict(list)
    runs = zip(
        what.runs.thread.tolist(),
        what.runs.start_ns.tolist(),
        what.run_ends.tolist(),
        strict=True,
    )
    for place, (thread, begin_ns, end_ns) in enumerate(runs):
        places[thread].append(Slice(begin_ns, max(begin_ns, end_ns), NODE, place))
    pushes = zip(
        what.queueing.thread.tolist(), what.queueing.begin_ns.tolist(), strict=True
    )
    for place, (thread, t_ns) in enumerate(pushes):
        places[thread].append(Slice(t_ns, t_ns, PUSH, place))
    sleeps = trace.columns["queue_waited"]
    for thread, queue, end_ns, waited_ns in sleeps.rows(
        "thread", "queue", "t_ns", "waited_ns"
    ):
        begin_ns = end_ns - max(waited_ns, 0)
        places[thread].append(Slice(begin_ns, end_ns, SLEEP, queue))
    for thread in sorted(places):
        own = places.pop(thread)
        own.sort(key=lambda one: (one.begin_ns, -one.end_ns, _ORDER[one.kind]))
        yield thread, own


def pass_slices(what: Activity, threads: Container[int]) -> list[Slice]:
    """The passes that these threads called, in the order in which they began."""
    found = [
        Slice(one.begin_ns, max(one.begin_ns, what.pass_ends[one.task]), PASS, place)
        for place, one in enumerate(what.passes)
        if one.thread in threads
    ]
    return sorted(found, key=lambda one: (one.begin_ns, -one.end_ns))


def nesting(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The same on as few tracks as it takes for those of each to nest.

    Args:
        slices: In the order in which they began, the longer one first.
    """
    tracks: list[list[Slice]] = []
    still_open: list[list[int]] = []  # of each track the ends of what is open
    for one in slices:
        for track, ends in zip(tracks, still_open, strict=True):
            while ends and ends[-1] <= one.begin_ns:
                ends.pop()
            if not ends or one.end_ns <= ends[-1]:
                track.append(one)
                ends.append(one.end_ns)
                break
        else:
            tracks.append([one])
            still_open.append([one.end_ns])
    return tracks


def begins_and_ends(track: Iterable[Slice]) -> Iterator[tuple[int, Slice, bool]]:
    """Slices that nest, by their begins and ends: when, which, and if it begins."""
    still_open: list[Slice] = []
    for one in track:
        while still_open and still_open[-1].end_ns <= one.begin_ns:
            last = still_open.pop()
            yield last.end_ns, last, False
        yield one.begin_ns, one, True
        still_open.append(one)
    for last in reversed(still_open):
        yield last.end_ns, last, False


def apart(
    lasting: Sequence[tuple[int, int, Some]],
) -> list[list[tuple[int, int, Some]]]:
    """What began and ended, on as few tracks as it takes for none to overlap.

    Args:
        lasting: Begin, end, and what it is, in the order of begin.
    """
    tracks: list[list[tuple[int, int, Some]]] = []
    busy: list[tuple[int, int]] = []  # until when, which track
    free: list[int] = []
    for begin, end, what in lasting:
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            number = heapq.heappop(free)
        else:
            number = len(tracks)
            tracks.append([])
        tracks[number].append((begin, end, what))
        heapq.heappush(busy, (end, number))
    return tracks
