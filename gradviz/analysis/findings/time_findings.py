"""Time that passes lose: to one leaf, to hooks, to deep nesting.

Times are those of the clock on the wall, as a host has them: what a device does behind
its host's back is not in them.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.memory.kept_graphs import line_of, lines_of
from gradviz.analysis.tables.executions import definition, execution_columns
from gradviz.analysis.tables.passes import pass_parts
from gradviz.analysis.tables.spans import NEVER, spans, times
from gradviz.trace.events import label
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table
from gradviz.trace.probe import Hook, How

#: Depth to which passes may nest before an engine goes on in another thread:
#: `gradviz.engine.engine.MAX_DEPTH`, unless an engine was made otherwise.
MAX_DEPTH: Final = 60

#: Nesting is deep from this part of it on.
DEEP: Final = 0.75

#: Hooks and leaves are told if they take this part of their passes. Weights that a
#: recurrent layer uses at each step take some hundredths.
LEAST_HOOKS: Final = 0.2
LEAST_LEAF: Final = 0.1

#: A leaf is told if so many gradients came to it in one pass.
MIN_GRADIENTS: Final = 8

#: Findings that cost less time in all are not told.
LEAST_NS: Final = 1_000_000

#: Maximum number of leaves, and of groups of hooks, told.
MAX_TOLD: Final = 50


def deep_nesting(trace: Trace) -> Iterator[CostlyFinding]:
    """Passes that are nested nearly as deep as a thread may, or deeper."""
    begun = trace.columns["task_begun"]
    depth = begun["reentrant_depth"]
    deep = np.flatnonzero(depth >= DEEP * MAX_DEPTH)
    if len(deep):
        deepest = int(deep[depth[deep].argmax()])
        spawned = trace.columns["pool_thread_spawned"]
        yield CostlyFinding(
            rule="deep_nesting",
            certainty="certain",
            location=line_of(trace, int(begun["location"][deepest])),
            times=len(deep),
            task=int(begun["task"][deepest]),
            count=int(depth[deepest]),
            detail=str(spawned.num_rows) if spawned.num_rows else "",
        )


def one_leaf(trace: Trace) -> Iterator[CostlyFinding]:
    """Leaves to which so many gradients come that adding them up takes much time."""
    rows = trace.columns["gradient_buffered"]
    if not rows.num_rows:
        return
    names, place = trace.nodes.names(rows.narrow("node"))
    is_leaf = np.array([name == "AccumulateGrad" for name in names], np.bool_)
    rows = rows.at(is_leaf[place])
    leaves, of_row = np.unique(rows.narrow("node"), return_inverse=True)
    tasks, of_task = np.unique(rows.narrow("task"), return_inverse=True)
    pairs, num = np.unique(of_row * len(tasks) + of_task, return_counts=True)
    if num.max(initial=0) < MIN_GRADIENTS:  # as mostly: the rest takes long
        return
    leaf, task = pairs // len(tasks), tasks[pairs % len(tasks)].astype(np.int64)
    most = np.zeros(len(leaves), np.int64)
    np.maximum.at(most, leaf, num)
    is_sum = np.isin(rows.narrow("how"), (How.IN_PLACE, How.OUT_OF_PLACE))
    adding = np.where(is_sum, rows["t_ns"] - _told_before(trace, rows["seq"]), 0)
    cost = np.bincount(of_row, adding, len(leaves))
    runs = execution_columns(trace)
    runs = runs.at(np.flatnonzero(np.isin(runs.node, leaves)))
    of_run = np.searchsorted(leaves, runs.node)
    cost += np.bincount(of_run, runs.took_ns, len(leaves))
    whole = np.bincount(leaf, _durations(trace, task), len(leaves))
    is_meant = (most >= MIN_GRADIENTS) & (cost >= LEAST_NS)
    is_meant &= cost >= LEAST_LEAF * whole
    for one in np.flatnonzero(is_meant)[:MAX_TOLD].tolist():
        known = definition(trace, int(leaves[one]))
        its = task[leaf == one]
        yield CostlyFinding(
            rule="one_leaf",
            certainty="likely",
            location=known.location,
            cost_ns=int(cost[one]),
            times=len(its),
            task=int(its[-1]),
            node=known.id,
            name=known.name,
            module=known.module,
            count=int(most[one]),
        )


def slow_hooks(trace: Trace) -> Iterator[CostlyFinding]:
    """Hooks that take much of the time of the passes that call them."""
    called, took = hook_calls(trace)
    line = lines_of(trace, called["node"])
    groups, of_row = np.unique(
        np.stack((line, called["hook"])), axis=1, return_inverse=True
    )
    of_row = of_row.ravel()
    cost = np.bincount(of_row, took, groups.shape[1])
    pairs = np.unique(np.stack((of_row, called["task"])), axis=1)
    whole = np.bincount(pairs[0], _durations(trace, pairs[1]), groups.shape[1])
    is_meant = (cost >= LEAST_NS) & (cost >= LEAST_HOOKS * whole)
    for group in np.flatnonzero(is_meant)[:MAX_TOLD].tolist():
        mine = np.flatnonzero(of_row == group)
        known = definition(trace, int(called["node"][mine[took[mine].argmax()]]))
        tasks = pairs[1][pairs[0] == group]
        # Of PyTorch's hooks the times are those between functions of nodes.
        is_inferred = bool(called["inferred"][mine].any())
        yield CostlyFinding(
            rule="slow_hooks",
            certainty="likely" if is_inferred else "certain",
            location=line_of(trace, int(groups[0, group])),
            cost_ns=int(cost[group]),
            times=len(tasks),
            task=int(tasks[-1]),
            node=known.id,
            name=known.name,
            module=known.module,
            count=len(mine),
            detail=label(Hook(int(groups[1, group]))),
        )


def hook_calls(trace: Trace) -> tuple[Table, Column]:
    """Return calls of hooks with their times, except those that retain gradients."""
    called = trace.columns["hook_called"]
    called = called.at(called.narrow("hook") != Hook.RETAINS_GRAD)
    if not called.num_rows:
        return called, np.empty(0, np.int64)
    key = ("thread", "task", "node", "hook", "index")
    calls = spans(called, trace.columns["hook_returned"], key)
    done = np.flatnonzero(calls.end != NEVER)
    t_ns = times(trace)
    return called.at(done), t_ns[calls.end[done]] - t_ns[calls.begin[done]]


def _told_before(trace: Trace, seq: Column) -> Column:
    """Of some events, in order, the time at which their thread had reported before."""
    tables = [table for table in trace.columns.values() if table.num_rows]
    threads = [table.narrow("thread") for table in tables]
    thread = np.empty(trace.num_events, np.result_type(*threads))
    for table, own in zip(tables, threads, strict=True):
        thread[table.narrow("seq")] = own
    order = np.argsort(thread, kind="stable")
    is_meant = np.zeros(len(thread), np.bool_)
    is_meant[seq] = True
    at = np.flatnonzero(is_meant[order])
    event, before = order[at], order[at - 1]
    before = np.where((at > 0) & (thread[before] == thread[event]), before, event)
    return times(trace)[before[np.argsort(event)]]


def _durations(trace: Trace, tasks: Column) -> Column:
    """Durations of some parts of passes; 0 if not known."""
    known = {one.task: one.duration_ns or 0 for one in pass_parts(trace)}
    return np.array([known.get(task, 0) for task in tasks.tolist()], np.int64)
