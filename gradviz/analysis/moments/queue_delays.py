"""Delays of tasks in their queues: the tasks ahead, and the threads' work.

For many tasks at once, as columns: one of them is what `gradviz explain` tells, all of
them are what a page has.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.moments.precedence import precedences
from gradviz.analysis.tables.executions import Executions
from gradviz.analysis.tables.queue_waits import QueueWaits
from gradviz.analysis.tables.spans import NEVER
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table, different

#: Of so many tasks that went first it is told which they are; all are counted.
MAX_AHEAD: Final = 10


class Overtakings(NamedTuple):
    """Tasks that left a queue while another task waited in it, as columns.

    Those of one task follow each other, in the order in which they left.

    Attributes:
        wait: The task that lay there: a place among those asked for.
        ahead: The one that left first: a place among all waits.
        why: Reason that it was the first of both: a place in `PRECEDENCES`, or -1.
    """

    wait: Column
    ahead: Column
    why: Column


class QueueDelays(NamedTuple):
    """Events while tasks waited in queues, as columns.

    Attributes:
        busy_ns: Time that the thread that ran the task meanwhile spent on other nodes
            that were done by then, but for the one that pushed the task and was about
            to end.
        slept_ns: Time from its push until that thread, which slept by then, woke up.
        num_ahead: Number of tasks that left the queue first.
        overtakings: The first ones of these.
    """

    busy_ns: Column
    slept_ns: Column
    num_ahead: Column
    overtakings: Overtakings


def queue_delays(
    trace: Trace, runs: Executions, waits: QueueWaits, places: Column
) -> QueueDelays:
    """Return the events during some tasks' queue waits.

    Args:
        trace: The trace.
        runs: Nodes that threads ran, in the order of start.
        waits: Tasks in queues.
        places: Indices of those asked for; of all it is told that they went first.
    """
    pushes = waits.pushes.at(places)
    run = _first_runs(runs, pushes["task"], pushes["node"])
    threads = np.where(run >= 0, np.append(runs.thread, -1)[run], -1)
    num_ahead, overtakings = _overtakings(waits, places)
    is_popped = waits.popped[places] != NEVER
    threads = np.where(is_popped, threads, -1)
    begin_ns = pushes["t_ns"]
    end_ns = np.where(is_popped, begin_ns + waits.waited_ns[places], 0)
    slept = trace.columns["queue_waited"]
    pushers = _first_runs(runs, pushes["task"], pushes["pushed_by"])
    busy_ns, slept_ns = np.zeros((2, len(places)), np.int64)
    for thread in different(threads[threads >= 0]).tolist():
        own = np.flatnonzero(threads == thread)
        lay = begin_ns[own], end_ns[own]
        slept_ns[own] = _slept_ns(slept.at(slept.narrow("thread") == thread), *lay)
        ran = np.flatnonzero(runs.thread == thread)
        spans = runs.start_ns[ran], runs.end_ns[ran]
        busy_ns[own] = _busy_ns(*spans, *lay, _places_in(ran, pushers[own]))
    return QueueDelays(busy_ns, slept_ns, num_ahead, overtakings)


def _overtakings(waits: QueueWaits, places: Column) -> tuple[Column, Overtakings]:
    """Count the tasks that left the queue of each first, and list the first of them."""
    num_ahead, first = np.zeros((2, len(places)), np.int64)
    queues, popped = waits.pushes["queue"], np.flatnonzero(waits.popped != NEVER)
    pushed = waits.pushed
    in_turn = popped[np.lexsort((waits.popped[popped], queues[popped]))]
    is_popped = waits.popped[places] != NEVER
    for queue, begin, end in _groups(queues[in_turn]):
        own = np.flatnonzero((queues[places] == queue) & is_popped)
        left = waits.popped[in_turn[begin:end]]
        first[own] = begin + np.searchsorted(left, pushed[places[own]])
        last = begin + np.searchsorted(left, waits.popped[places[own]])
        num_ahead[own] = np.maximum(last - first[own], 0)
    num_told = np.minimum(num_ahead, MAX_AHEAD)
    wait = np.repeat(np.arange(len(places)), num_told)
    number = np.arange(len(wait)) - np.repeat(np.cumsum(num_told) - num_told, num_told)
    ahead = in_turn[first[wait] + number]
    why = precedences(waits.pushes.at(ahead), waits.pushes.at(places[wait]))
    return num_ahead, Overtakings(wait, ahead, why)


def _groups(ordered: Column) -> Iterator[tuple[int, int, int]]:
    """Yield each number of a sorted column, with its range there."""
    every = different(ordered)
    begins = np.searchsorted(ordered, every).tolist()
    ends = np.searchsorted(ordered, every, "right").tolist()
    yield from zip(every.tolist(), begins, ends, strict=True)


def _slept_ns(slept: Table, begin_ns: Column, end_ns: Column) -> Column:
    """Return the time from each begin until a thread woke that slept by then.

    Args:
        slept: The sleeps of that thread.
        begin_ns: The begins.
        end_ns: The ends.
    """
    woken = slept["t_ns"]
    if not len(woken):
        return np.zeros(len(begin_ns), np.int64)
    fell_asleep = woken - slept["waited_ns"]
    order = np.argsort(fell_asleep, kind="stable")
    last = np.searchsorted(fell_asleep[order], begin_ns, "right") - 1
    woke = woken[order[np.maximum(last, 0)]]
    is_meant = (last >= 0) & (woke > begin_ns) & (woke <= end_ns)
    return np.where(is_meant, woke - begin_ns, 0)


def _busy_ns(
    starts: Column, ends: Column, begin_ns: Column, end_ns: Column, pushers: Column
) -> Column:
    """Return the time in which a thread ran nodes that were done by each end.

    Its runs lie one after the other, or one inside of another one, and what is inside
    counts once. In the order of their ends, the time covered by the first so many of
    them is all that is needed.

    Args:
        starts: The starts of the nodes that the thread ran.
        ends: Their ends.
        begin_ns: The begins.
        end_ns: The ends of the waits.
        pushers: Index of the run that pushed each task, -1 for none: it does not count.
    """
    order = np.argsort(ends, kind="stable")
    starts, ends = starts[order], ends[order]
    covered = _covered(starts, ends)
    first, last = (np.searchsorted(ends, at, "right") for at in (begin_ns, end_ns))
    # A span that began before and goes on: of several the outermost, which covers all.
    outermost = np.minimum(_least(starts, first, last), begin_ns)
    until = covered[np.searchsorted(ends, outermost, "right")] + begin_ns - outermost
    busy = covered[last] - np.where(outermost < begin_ns, until, covered[first])
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order))
    pusher = turn[np.maximum(pushers, 0)] if len(order) else pushers
    counts = (pushers >= 0) & (pusher >= first) & (pusher < last)
    pusher = np.where(counts, pusher, 0)
    own = (
        ends[pusher] - begin_ns - covered[pusher] + covered[first] if len(order) else 0
    )
    return np.maximum(busy - np.where(counts, own, 0), 0)


def _covered(starts: Column, ends: Column) -> Column:
    """Return the time that the first so many spans cover, from none of them to all.

    Args:
        starts: The starts.
        ends: The ends, in order.
    """
    took = ends - starts
    if (starts[1:] >= ends[:-1]).all() and took.min(initial=0) >= 0:
        return np.append(0, np.cumsum(took))  # one after the other, as mostly
    sums = [0]
    before = np.searchsorted(ends, starts, "right").tolist()
    for at, one in enumerate(took.tolist()):
        sums.append(sums[min(before[at], at)] + one)
    return np.array(sums, np.int64)


def _least(numbers: Column, first: Column, last: Column) -> Column:
    """Return the least number of each part of a column; a large one of an empty part.

    From the least of all parts whose length is a power of two.
    """
    found = np.full(len(first), NEVER)
    length, parts = 1, numbers
    remaining = np.maximum(last - first, 0)
    while length <= int(remaining.max(initial=0)):
        fits = np.flatnonzero((remaining >= length) & (remaining < 2 * length))
        both = parts[first[fits]], parts[last[fits] - length]
        found[fits] = np.minimum(*both)
        parts = np.minimum(parts[: max(len(parts) - length, 0)], parts[length:])
        length *= 2
    return found


def _first_runs(runs: Executions, task: Column, node: Column) -> Column:
    """Return the first run of each node in its pass, -1 for none."""
    tasks = different(np.concatenate((runs.task, task)))
    nodes = different(np.concatenate((runs.node, node)))

    def keys(task: Column, node: Column) -> Column:
        place = np.searchsorted(tasks, task) * len(nodes)
        return place + np.searchsorted(nodes, node)

    ran = keys(runs.task, runs.node)
    order = np.argsort(ran, kind="stable")
    found = _places_in(ran[order], keys(task, node))
    return np.where((node >= 0) & (found >= 0), np.append(order, -1)[found], -1)


def _places_in(some: Column, numbers: Column) -> Column:
    """Return the place of each number in a sorted column, -1 for none."""
    if not len(some):
        return np.full(len(numbers), -1)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.where(some[at] == numbers, at, -1)
