"""Spans: from which event to which something lasted, of all things of a kind at once.

What lies in a queue, runs, or is held in memory at a moment is what has begun by then
and has not ended: a comparison of two columns. So any moment of a trace is as far away
as any other one, and nothing has to be replayed to get there.

How many of them there are changes over time. A `Points` is that curve, as so many
points as can be shown.
"""

import weakref
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Narrow, Table, different

#: The `seq` at which something ends whose end the trace does not have.
NEVER: Final = np.iinfo(np.int64).max

#: Of traces that somebody holds what `last_events` found: two numbers a pass.
_last_events: Final[weakref.WeakKeyDictionary[Trace, tuple[Column, Column]]] = (
    weakref.WeakKeyDictionary()
)

#: Numbers below this one fit into a product with the number of an event.
_MOST: Final = 1 << 31

#: Columns that together tell things apart.
Key: TypeAlias = Sequence[Narrow]

#: A curve has no more points than this.
MAX_POINTS: Final = 2_000

#: When it got which height; until the next point it stays as high.
Points: TypeAlias = tuple[tuple[int, int], ...]


class Spans(NamedTuple):
    """Things that lasted for a while, in the order in which they began.

    Attributes:
        rows: The events that began them.
        begin: Their `seq`.
        end: The `seq` of those that ended them; `NEVER` where there is none.
    """

    rows: Table
    begin: Column
    end: Column

    def open_at(self, seq: int) -> Column:
        """Return which spans began with event `seq` or before, and end after it."""
        begun = int(np.searchsorted(self.begin, seq, side="right"))
        return np.flatnonzero(self.end[:begun] > seq)


def spans(begins: Table, ends: Table, key: Sequence[str]) -> Spans:
    """Return spans: each start of a key with the next end of it that is still free.

    An end before which all starts have ended is of one that the trace has lost.

    Args:
        begins: The events that begin something, in the order of `seq`.
        ends: The events that end something, in that order too.
        key: The columns that an event and the one that ends it have in common.
    """
    many = [(begins.narrow(name), ends.narrow(name)) for name in key]
    keys, end_keys = _numbers([a for a, _ in many], [b for _, b in many])
    begin, end = begins["seq"], ends["seq"]
    ended = _nth_ends(keys, end_keys, end)
    if (ended < begin).any():  # seldom: the trace has lost a start
        has_start = _have_starts(keys, begin, end_keys, end)
        ended = _nth_ends(keys, end_keys[has_start], end[has_start])
    return Spans(begins, begin, ended)


def _nth_ends(keys: Column, end_keys: Column, end: Column) -> Column:
    """Return, for the n-th start of each key, its n-th end."""
    one, other = keys.copy(), end_keys.copy()
    _add_ranks(one, other)
    partner = _partners(one, other)
    ended = np.full(len(keys), NEVER)
    has_end = partner >= 0
    ended[has_end] = end[partner[has_end]]
    return ended


def _have_starts(
    keys: Column, begin: Column, end_keys: Column, end: Column
) -> npt.NDArray[np.bool_]:
    """Return of each end if a start of its key comes before it that is still open.

    The number of open ones goes up and down. One that falls lower than ever before, and
    below zero, falls by the end of a start that is not here.
    """
    key, seq = np.concatenate((keys, end_keys)), np.concatenate((begin, end))
    order = np.lexsort((seq, key))
    is_end = order >= len(keys)
    num_open = np.cumsum(np.where(is_end, -1, 1))
    firsts = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
    of_key = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, len(order))))
    num_open -= np.concatenate(([0], num_open[firsts[1:] - 1]))[of_key]
    # Each key lies so far below the one before that its lowest number is its own.
    far = num_open - of_key * (2 * len(order) + 1)
    lowest = np.minimum.accumulate(far)
    is_lowest = np.append(True, far[1:] < lowest[:-1])
    is_lost = is_end & is_lowest & (num_open < 0)
    has_start = np.ones(len(end), np.bool_)
    has_start[order[is_lost] - len(keys)] = False
    return has_start


def following(begins: Table, ends: Table, key: Sequence[str]) -> Column:
    """Of each event the place, in `ends`, of the next one with its key; -1 for none.

    Other than by `spans`, one event may follow many.

    Args:
        begins: The events that are followed by others.
        ends: Those that may follow, in the order of `seq`.
        key: The columns that an event and the one that follows have in common.
    """
    begin, end = begins["seq"], ends["seq"]
    if not len(begin) or not len(end):
        return np.full(len(begin), -1)
    one, other = _numbers(
        [begins.narrow(name) for name in key], [ends.narrow(name) for name in key]
    )
    length = int(max(begin.max(), end.max())) + 1
    order = np.argsort(other, kind="stable")
    places = np.searchsorted(
        other[order] * length + end[order], one * length + begin, side="right"
    )
    found = order[np.minimum(places, len(order) - 1)]
    return np.where((places < len(order)) & (other[found] == one), found, -1)


def in_order(*tables: Table) -> Table:
    """The rows of several tables, as far as they have the same columns, by `seq`."""
    names = [name for name in tables[0] if all(name in one for one in tables)]
    seqs = np.concatenate([one.narrow("seq") for one in tables])
    order = np.argsort(seqs, kind="stable")
    return Table(
        {
            name: np.concatenate([one.narrow(name) for one in tables])[order]
            for name in names
        }
    )


def ended_with_their_pass(trace: Trace, some: Spans) -> Spans:
    """Return `some`, with missing ends set to the last event of their pass.

    So does what an error has left in a queue, or a thread in a node. Where a trace
    does not have the outcome of a pass, all of it goes on.
    """
    if not (some.end == NEVER).any():
        return some
    done = np.concatenate(
        [
            trace.columns[kind].narrow("task")
            for kind in ("task_completed", "task_failed")
        ]
    )
    tasks, last = last_events(trace)
    place = np.minimum(np.searchsorted(tasks, some.rows["task"]), len(tasks) - 1)
    is_over = (some.end == NEVER) & np.isin(some.rows["task"], done)
    return some._replace(end=np.where(is_over, last[place] + 1, some.end))


def times(trace: Trace) -> Column:
    """Return the time of each event of a trace, by its `seq`."""
    found = np.zeros(trace.num_events, np.int64)
    for table in trace.columns.values():
        if table.num_rows:
            found[table.narrow("seq")] = table.narrow("t_ns")
    return found


def last_events(trace: Trace) -> tuple[Column, Column]:
    """The ids of all passes, sorted, and of each the `seq` of its last event.

    Worked out once for a trace: what looks at many passes asks for each of them.
    """
    known = _last_events.get(trace)
    if known is None:
        known = _last_events[trace] = _find_last_events(trace)
    return known


def thinned(when: Column, heights: Column) -> Points:
    """Return the times and heights; of very many points those that show the curve."""
    chosen = telling(when, heights)
    return tuple(zip(when[chosen].tolist(), heights[chosen].tolist(), strict=True))


def telling(when: Column, heights: Column) -> Column:
    """Return the points that show a curve: all, or two of each slice of the time.

    They are the first of the highest, so that no peak is lost, and the last one, which
    may stay for long after the slice.
    """
    if len(when) <= MAX_POINTS:
        return np.arange(len(when))
    span = int(when[-1] - when[0]) + 1
    piece = (when - when[0]) * (MAX_POINTS // 2) // span
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    last = np.append(first[1:], len(when)) - 1
    highest = np.lexsort((-heights, piece))[first]  # a stable sort: the first of them
    return different(np.concatenate((highest, last)))


def _find_last_events(trace: Trace) -> tuple[Column, Column]:
    tables = [table for table in trace.columns.values() if table.num_rows]
    each = [different(one.narrow("task")) for one in tables]
    tasks = different(np.concatenate([np.empty(0, np.int64), *each]))
    last = np.zeros(len(tasks), np.int64)
    for one in tables:
        np.maximum.at(last, np.searchsorted(tasks, one["task"]), one["seq"])
    return tasks, last


def _numbers(one: Key, other: Key) -> tuple[Column, Column]:
    """A number for each key of either, the same for equal ones."""
    size = len(one[0])
    numbers = np.zeros(size + len(other[0]), np.int64)
    most = 1
    for a, b in zip(one, other, strict=True):
        both = np.concatenate((a, b))
        least, largest = (int(both.min()), int(both.max())) if len(both) else (0, 0)
        most *= largest - least + 1
        if most <= _MOST:
            numbers *= largest - least + 1
            numbers += both
            numbers -= least
            continue
        # Ids lie far apart. Numbered anew, which takes long, so that the product fits.
        different, place = np.unique(both, return_inverse=True)
        found, numbers = np.unique(
            numbers * len(different) + place, return_inverse=True
        )
        most = len(found)
    return numbers[:size], numbers[size:]


def _add_ranks(*columns: Column) -> None:
    """Make the number of equal ones before each number in its column a part of it."""
    ranks = [_ranks(one) for one in columns]
    size = max(int(one.max(initial=0)) for one in ranks) + 1
    for column, one in zip(columns, ranks, strict=True):
        np.multiply(column, size, out=column)
        np.add(column, one, out=column)


def _ranks(numbers: Column) -> Narrow:
    """Return how many equal numbers stand before each number."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    if not (ordered[1:] == ordered[:-1]).any():
        return np.zeros(len(numbers), np.int8)
    ranks = np.empty(len(numbers), np.int64)
    ranks[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return ranks


def _partners(one: Column, other: Column) -> Column:
    """Return the place of each number among the others, -1 for none."""
    if not len(other):
        return np.full(len(one), -1)
    order = np.argsort(other, kind="stable")
    ordered = other[order]
    place = np.minimum(np.searchsorted(ordered, one), len(other) - 1)
    return np.where(ordered[place] == one, order[place], -1)
