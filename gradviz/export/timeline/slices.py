"""Slices: spans of one track, and the division of spans into tracks.

Viewers want the slices of a track to nest. Those of a thread do, unless an error or an
interrupt left something open; what does not nest goes to a track of its own. Passes are
on no thread's: one ends with its last node, wherever that ran, while its caller may
still sleep.
"""

import heapq
from array import array
from collections.abc import Container, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

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

#: Of slices that begin and end together, the outer one first.
_KINDS: Final = (PASS, FORWARD, OPTIMIZER, NODE, SLEEP, PUSH)

#: Number of slices made at a time.
_BATCH: Final = 1 << 12


class Slice(NamedTuple):
    """A pass, or something that a thread did for a while.

    Attributes:
        begin_ns: Time of its start, on the clock of the trace.
        end_ns: Time of its end; of a push, which takes no time, the same.
        kind: A pass, the call of a module, a step of an optimizer, a node that a thread
            ran, its sleep on an empty queue, a push.
        place: Among the passes, the calls of modules, the steps, the runs, or what was
            queued; of a sleep its queue.
    """

    begin_ns: int
    end_ns: int
    kind: str
    place: int


class Slices:
    """Many slices, kept as columns: a long trace has millions."""

    def __init__(
        self, begin_ns: Column, end_ns: Column, kind: Narrow, place: Column
    ) -> None:
        self._columns = begin_ns, end_ns, kind, place

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Slice]:
        for first in range(0, len(self), _BATCH):
            some = (one[first : first + _BATCH].tolist() for one in self._columns)
            for begin_ns, end_ns, kind, place in zip(*some, strict=True):
                yield Slice(begin_ns, end_ns, _KINDS[kind], place)

    def at(self, places: "npt.NDArray[Any]") -> "Slices":
        """Some of them."""
        return Slices(*(one[places] for one in self._columns))

    def of(self, kind: str) -> "Slices":
        """Those of a kind."""
        return self.at(self._columns[2] == _KINDS.index(kind))

    def in_order(self) -> "Slices":
        """Return the slices by start, the longer first where several start together."""
        begin_ns, end_ns, kind, _ = self._columns
        return self.at(np.lexsort((kind, ~end_ns, begin_ns)))


Some = TypeVar("Some")


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
            (kind, calls.thread, calls.begin_ns, calls.end_ns, None)
            for kind, calls in ((FORWARD, what.forward), (OPTIMIZER, what.optimizer))
        ),
        (NODE, what.runs.thread, what.runs.start_ns, what.run_ends, None),
        (PUSH, what.queueing.thread, pushed_ns, pushed_ns, None),
        (SLEEP, sleeps["thread"], asleep_ns, woken_ns, sleeps["queue"]),
    ]
    threads = np.concatenate([thread for _, thread, *_ in parts])
    every = Slices(
        np.concatenate([begin_ns for _, _, begin_ns, *_ in parts]),
        np.concatenate([np.maximum(begin, end) for _, _, begin, end, _ in parts]),
        np.concatenate(
            [
                np.full(len(thread), _KINDS.index(kind), np.int8)
                for kind, thread, *_ in parts
            ]
        ),
        np.concatenate(
            [
                np.arange(len(thread)) if place is None else place
                for _, thread, _, _, place in parts
            ]
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
    kind = np.full(len(found), _KINDS.index(PASS), np.int8)
    return Slices(begin_ns, end_ns, kind, place).in_order()


def nesting(slices: Slices) -> list[Slices]:
    """The same on as few tracks as it takes for those of each to nest.

    Args:
        slices: In order.
    """
    numbers = np.empty(len(slices), np.int32)
    still_open: list[array[int]] = []  # of each track the ends of what is open
    for place, one in enumerate(slices):
        for number, ends in enumerate(still_open):
            while ends and ends[-1] <= one.begin_ns:
                ends.pop()
            if not ends or one.end_ns <= ends[-1]:
                ends.append(one.end_ns)
                numbers[place] = number
                break
        else:
            numbers[place] = len(still_open)
            still_open.append(array("q", [one.end_ns]))
    return [slices.at(numbers == number) for number in range(len(still_open))]


def begins_and_ends(track: Slices) -> Iterator[tuple[int, Slice, bool]]:
    """Slices that nest, by their begins and ends: when, which, and if it begins."""
    # As many as a file likes may be open at once: four numbers each take little.
    still_open = array("q")

    def last() -> Slice:
        begin_ns, end_ns, kind, place = still_open[-4:]
        del still_open[-4:]
        return Slice(begin_ns, end_ns, _KINDS[kind], place)

    for one in track:
        while still_open and still_open[-3] <= one.begin_ns:
            ended = last()
            yield ended.end_ns, ended, False
        yield one.begin_ns, one, True
        still_open.extend((*one[:2], _KINDS.index(one.kind), one.place))
    while still_open:
        ended = last()
        yield ended.end_ns, ended, False


def apart(
    lasting: Sequence[tuple[int, int, Some]],
) -> list[list[tuple[int, int, Some]]]:
    """Spread spans over as few tracks as possible without overlaps.

    Args:
        lasting: Start, end, and the item, in order of start.
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
