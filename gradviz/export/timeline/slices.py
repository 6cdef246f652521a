"""Slices: spans of one track, and the division of spans into tracks.

Viewers want the slices of a track to nest. Those of a thread do, unless an error or an
interrupt left something open; what does not nest goes to a track of its own. Passes are
on no thread's: one ends with its last node, wherever that ran, while its caller may
still sleep.
"""

import heapq
import itertools
from array import array
from collections.abc import Container, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.export.timeline.activity import Activity
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Narrow

PASS: Final = "pass"
FORWARD: Final = "forward"
OPTIMIZER: Final = "optimizer"
NODE: Final = "node"
SLEEP: Final = "sleep"
PUSH: Final = "push"
#: Not on the track of a thread:
QUEUED: Final = "queue"
KERNEL: Final = "kernel"

#: Of slices that begin and end together, the outer one first.
KINDS: Final = (PASS, FORWARD, OPTIMIZER, NODE, SLEEP, PUSH, QUEUED, KERNEL)

#: Number of slices made at a time.
_BATCH: Final = 1 << 12


class Slice(NamedTuple):
    """A pass, or something that a thread did for a while.

    Attributes:
        begin_ns: Time of its start, on the clock of the trace.
        end_ns: Time of its end; of a push, which takes no time, the same.
        kind: A pass, the call of a module, a step of an optimizer, a node that a thread
            ran, its sleep on an empty queue, a push.
        place: Among the passes, the calls of modules, the steps, the runs, the sleeps,
            or what was queued.
    """

    begin_ns: int
    end_ns: int
    kind: str
    place: int


class Slices:
    """Many slices, kept as columns: a long trace has millions.

    Attributes:
        begin_ns: As of a `Slice`.
        end_ns: As of a `Slice`.
        kind: Places in `KINDS`.
        place: As of a `Slice`.
    """

    def __init__(
        self, begin_ns: Column, end_ns: Column, kind: Narrow, place: Narrow
    ) -> None:
        self.begin_ns, self.end_ns, self.kind, self.place = (
            begin_ns,
            end_ns,
            kind,
            place,
        )

    def __len__(self) -> int:
        return len(self.begin_ns)

    def __iter__(self) -> Iterator[Slice]:
        for first in range(0, len(self), _BATCH):
            some = self.at(slice(first, first + _BATCH))
            columns = some.begin_ns, some.end_ns, some.kind, some.place
            for begin_ns, end_ns, kind, place in zip(
                *(one.tolist() for one in columns), strict=True
            ):
                yield Slice(begin_ns, end_ns, KINDS[kind], place)

    def at(self, places: "slice | npt.NDArray[Any]") -> "Slices":
        """Some of them."""
        columns = self.begin_ns, self.end_ns, self.kind, self.place
        return Slices(*(one[places] for one in columns))

    def of(self, kind: str) -> "Slices":
        """Those of a kind."""
        return self.at(self.kind == KINDS.index(kind))

    def in_order(self) -> "Slices":
        """Return the slices by start, the longer first where several start together."""
        return self.at(np.lexsort((self.kind, ~self.end_ns, self.begin_ns)))


def thread_slices(trace: Trace, what: Activity) -> Iterator[tuple[int, Slices]]:
    """Yield each thread of a trace with its spans, in order."""
    sleeps = trace.columns["queue_waited"]
    woken_ns = sleeps["t_ns"]
    # A thread may have fallen asleep hours before the recording began.
    asleep_ns = np.maximum(
        woken_ns - np.maximum(sleeps["waited_ns"], 0), what.origin_ns
    )
    pushed_ns = what.queueing.begin_ns
    parts = [
        *(
            (kind, calls.thread, calls.begin_ns, calls.end_ns)
            for kind, calls in ((FORWARD, what.forward), (OPTIMIZER, what.optimizer))
        ),
        (NODE, what.runs.thread, what.runs.start_ns, what.run_ends),
        (PUSH, what.queueing.thread, pushed_ns, pushed_ns),
        (SLEEP, sleeps["thread"], asleep_ns, woken_ns),
    ]
    threads = np.concatenate([thread for _, thread, _, _ in parts])
    every = Slices(
        np.concatenate([begin_ns for _, _, begin_ns, _ in parts]),
        np.concatenate([np.maximum(begin, end) for _, _, begin, end in parts]),
        np.concatenate(
            [
                np.full(len(thread), KINDS.index(kind), np.int8)
                for kind, thread, _, _ in parts
            ]
        ),
        np.concatenate(
            [np.arange(len(thread), dtype=np.int32) for _, thread, _, _ in parts]
        ),
    )
    for thread in np.unique(threads).tolist():
        yield thread, every.at(threads == thread).in_order()


def pass_slices(what: Activity, threads: Container[int]) -> Slices:
    """The passes that these threads called, in order."""
    found = [
        (one.begin_ns, max(one.begin_ns, what.pass_ends[one.task]), place)
        for place, one in enumerate(what.passes)
        if one.thread in threads
    ]
    begin_ns, end_ns, place = np.array(found, np.int64).reshape(-1, 3).T
    return of_kind(PASS, begin_ns, end_ns, place).in_order()


def of_kind(
    kind: str, begin_ns: Column, end_ns: Column, place: Column | None = None
) -> Slices:
    """Return slices of one kind; without places, all of that kind."""
    return Slices(
        begin_ns,
        np.maximum(begin_ns, end_ns),
        np.full(len(begin_ns), KINDS.index(kind), np.int8),
        np.arange(len(begin_ns)) if place is None else place,
    )


def nesting(slices: Slices) -> list[Slices]:
    """The same on as few tracks as it takes for those of each to nest.

    Args:
        slices: In order.
    """
    numbers = np.empty(len(slices), np.int32)
    still_open: list[array[int]] = []  # of each track the ends of what is open
    for place, (begin_ns, end_ns) in enumerate(_times(slices)):
        for number, ends in enumerate(still_open):
            while ends and ends[-1] <= begin_ns:
                ends.pop()
            if not ends or end_ns <= ends[-1]:
                ends.append(end_ns)
                numbers[place] = number
                break
        else:
            numbers[place] = len(still_open)
            still_open.append(array("q", [end_ns]))
    if len(still_open) == 1:  # as nearly always: no copy is made
        return [slices]
    return [slices.at(numbers == number) for number in range(len(still_open))]


def moments(track: Slices) -> Narrow:
    """Return the order in which slices that nest begin and end.

    A number from 0 on is the place at which one begins, `~place` the end of that one.
    """
    # Half the width: there are never as many, and a long trace has millions.
    places = np.arange(len(track), dtype=np.int32)
    # One that ends is found to have ended when a later one begins.
    later = np.searchsorted(track.begin_ns, track.end_ns).astype(np.int32)
    found = np.maximum(places + 1, later)
    # Ends stand before that begin, the innermost first.
    key = np.concatenate((2 * found[::-1], 2 * places + 1))
    ends_and_begins = np.concatenate((~places[::-1], places))
    ordered: Narrow = ends_and_begins[np.argsort(key, kind="stable")]
    return ordered


def begins_and_ends(track: Slices) -> Iterator[tuple[int, Slice, bool]]:
    """Slices that nest, by their begins and ends: when, which, and if it begins."""
    order = moments(track)
    for first in range(0, len(order), _BATCH):
        some = order[first : first + _BATCH]
        slices = track.at(np.where(some < 0, ~some, some))
        for one, begins in zip(slices, (some >= 0).tolist(), strict=True):
            yield one.begin_ns if begins else one.end_ns, one, begins


def apart(slices: Slices) -> list[Slices]:
    """The same on as few tracks as it takes for those of each not to overlap.

    Args:
        slices: In order of start.
    """
    numbers = np.empty(len(slices), np.int64)
    busy: list[tuple[int, int]] = []  # until when, which track
    free: list[int] = []
    next_track = itertools.count().__next__
    for place, (begin_ns, end_ns) in enumerate(_times(slices)):
        while busy and busy[0][0] <= begin_ns:
            heapq.heappush(free, heapq.heappop(busy)[1])
        number = heapq.heappop(free) if free else next_track()
        numbers[place] = number
        heapq.heappush(busy, (end_ns, number))
    return [slices.at(places) for _, places in grouped(numbers)]


def grouped(numbers: Column) -> Iterator[tuple[int, Column]]:
    """Yield each number that occurs, in order, and the places at which it does."""
    order = np.argsort(numbers, kind="stable")
    found, begins = np.unique(numbers[order], return_index=True)
    bounds = itertools.pairwise([*begins.tolist(), len(order)])
    for number, (begin, end) in zip(found.tolist(), bounds, strict=True):
        yield number, order[begin:end]


def _times(slices: Slices) -> Iterator[tuple[int, int]]:
    """The start and the end of each, of which few are objects at once."""
    for first in range(0, len(slices), _BATCH):
        some = slices.at(slice(first, first + _BATCH))
        yield from zip(some.begin_ns.tolist(), some.end_ns.tolist(), strict=True)
