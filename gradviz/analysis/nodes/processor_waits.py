"""Waits for the processor: nodes with lost time.

Such a node looks slow and is innocent: its thread was preempted, or another one held
the interpreter's lock. (Or its own code slept or waited for something that no event
tells of; a trace cannot tell these apart.)

Note [Who waited for the processor]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The time that a node took less the time for which its thread was running is what its
thread lost. Taken off is what the thread did not run of the backwards that the node
called: they slept on an empty queue, another thread ran them, or their own nodes lost
it and are told of themselves. A node within which its thread came to know that a
stream, an event or a device had come so far, or took what another thread had left for
it, may have waited for that, nobody knows how long, and is not told of. What is left
counts if it is at least `LEAST_NS`, twice of what a recording may be wrong, and at
least one part in `LEAST_PART` of the node.
"""

from typing import Final

import numpy as np

from gradviz.analysis.tables.executions import Executions, execution_columns
from gradviz.analysis.tables.spans import NEVER, spans, times
from gradviz.trace.format.clock import SHORT_NS
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, different

LEAST_NS: Final = 2 * SHORT_NS
LEAST_PART: Final = 10

#: Events for which a node may have waited.
_WAITS: Final = (
    "event_synchronized",
    "stream_synchronized",
    "device_synchronized",
    "taken_over",
)


def processor_waits(trace: Trace, runs: Executions) -> Column:
    """Return each node's wait for the processor, 0 for those without one."""
    took = runs.took_ns
    waited = np.where(runs.thread_time_ns < 0, 0, took - runs.thread_time_ns)
    waited = _counted(waited, took)
    (place,) = np.nonzero(waited)
    some = runs.at(place)
    waited[place] = _counted(waited[place] - _nested(trace, some), took[place])
    waited[place[_may_have_waited(trace, some)]] = 0
    return waited


def _counted(lost: Column, took: Column) -> Column:
    is_much = (lost >= LEAST_NS) & (lost >= took // LEAST_PART)
    return np.where(is_much, lost, 0)


def _may_have_waited(trace: Trace, some: Executions) -> Column:
    """Return which nodes have an event within them that may explain a wait."""
    tables = [trace.columns[kind] for kind in _WAITS]
    thread, t_ns = (
        np.concatenate([table[name] for table in tables]) for name in ("thread", "t_ns")
    )
    return np.flatnonzero(
        _sums_within(some, some.thread, thread, t_ns, np.ones_like(t_ns))
    )


def _nested(trace: Trace, some: Executions) -> Column:
    """Return the lost time of nested backwards of each node's thread."""
    entered = trace.columns["reentrant_entered"]
    if not len(some.node) or not entered.num_rows:
        return np.zeros(len(some.node), np.int64)
    calls = spans(entered, trace.columns["reentrant_left"], ("task", "thread"))
    is_over = calls.end != NEVER
    left_ns = times(trace)[calls.end[is_over]]
    task, thread, t_ns = (
        calls.rows[name][is_over] for name in ("task", "thread", "t_ns")
    )
    inner = execution_columns(trace, task.tolist())
    ran_ns = np.maximum(inner.thread_time_ns, 0)
    ran = _sums(_pairs(inner.task, inner.thread), ran_ns, _pairs(task, thread))
    explained = np.maximum(left_ns - t_ns - ran, 0)
    begun = trace.columns["task_begun"]
    callers = _pairs(_sums(begun["task"], begun["parent"], task), thread)
    own = _pairs(some.task, some.thread)
    return _sums_within(some, own, callers, t_ns, explained)


def _pairs(task: Column, thread: Column) -> Column:
    """A number for each pair."""
    return (task << 32) + thread


def _sums(of: Column, numbers: Column, wanted: Column) -> Column:
    """The sum of the numbers that belong to each of the wanted ones."""
    known, place = np.unique(of, return_inverse=True)
    sums = np.zeros(len(known) + 1, np.int64)
    np.add.at(sums, place, numbers)
    found = np.searchsorted(known, wanted)
    is_there = np.append(known, 0)[found] == wanted
    return np.where(is_there & (found < len(known)), sums[found], 0)


def _sums_within(
    some: Executions, groups: Column, of: Column, t_ns: Column, numbers: Column
) -> Column:
    """The sums of the numbers at moments within nodes, of the group of each node."""
    known = different(groups)
    moments = different(np.concatenate((t_ns, some.start_ns, some.end_ns)))

    def keys(group: Column, t_ns: Column) -> Column:
        place = np.searchsorted(known, group)
        return place * len(moments) + np.searchsorted(moments, t_ns)

    is_meant = np.isin(of, known)
    at = keys(of[is_meant], t_ns[is_meant])
    order = np.argsort(at, kind="stable")
    reached = np.append(0, np.cumsum(numbers[is_meant][order]))
    first = np.searchsorted(at[order], keys(groups, some.start_ns))
    last = np.searchsorted(at[order], keys(groups, some.end_ns), side="right")
    sums: Column = reached[last] - reached[first]
    return sums
