"""Branches that could run at once and did not."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import numpy as np

from gradviz.analysis.findings.time_findings import hook_calls
from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.tables.executions import Executions, definition, execution_columns
from gradviz.analysis.tables.spans import NEVER
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: Branches are told if all of a pass's work takes so much longer than its longest path.
LEAST_WORK_BY_SPAN: Final = 2.0

#: Unless one thread did this part of the work, others took part in it.
ONE_THREAD: Final = 0.9

#: Passes with less work are not looked at.
LEAST_NS: Final = 1_000_000

#: A node that takes less time is not worth a hand-over to another thread.
MIN_NODE_NS: Final = 200_000

#: Maximum number of passes, those with most work first, and of nodes in each, in which
#: branches are searched for.
MAX_PASSES: Final = 200
MAX_NODES: Final = 20_000


def branches_in_turn(trace: Trace) -> Iterator[CostlyFinding]:
    """Passes that one thread worked at, though paths of its graph do not need it.

    Most passes of a line have to be so, not the one that was disturbed. How much time
    is to be had is the difference between all work and the longest path of the graph,
    which only as many threads as there are branches would gain.
    """
    runs = execution_columns(trace)
    own = runs.took_ns - _in_hooks(trace, runs)
    took = np.where(own >= MIN_NODE_NS, own, 0)
    tasks, place = np.unique(runs.task, return_inverse=True)
    work = np.bincount(place, took, len(tasks))
    busiest = np.zeros(len(tasks))
    threads, of_thread = np.unique(runs.thread, return_inverse=True)
    for number in range(min(len(threads), MAX_PASSES)):
        mine = of_thread == number
        done = np.bincount(place[mine], took[mine], len(tasks))
        busiest = np.maximum(busiest, done)
    begun = trace.columns["task_begun"]
    lines = begun.rows("task", "location")
    called_at = {task: line for task, line in lines}  # noqa: C416 - typed so
    num_passes = Counter(begun["location"].tolist())
    found: dict[int, list[CostlyFinding]] = defaultdict(list)
    for number in np.argsort(-work)[:MAX_PASSES].tolist():
        if work[number] < LEAST_NS:
            break
        task = int(tasks[number])
        line = called_at.get(task, -1)
        if busiest[number] < ONE_THREAD * work[number]:
            continue
        mine = np.flatnonzero(place == number)[:MAX_NODES]
        if work[number] < LEAST_WORK_BY_SPAN * took[mine].max():
            continue  # no path is shorter than its longest node
        span, aside = _longest_path(trace, task, runs.node[mine], took[mine])
        if work[number] >= LEAST_WORK_BY_SPAN * span:
            known = definition(trace, aside)
            found[line].append(
                CostlyFinding(
                    rule="branches_in_turn",
                    certainty="likely",
                    location=known.location,
                    cost_ns=int(work[number]) - span,
                    task=task,
                    node=aside,
                    name=known.name,
                    module=known.module,
                )
            )
    for line, findings in found.items():
        if 2 * len(findings) > min(num_passes[line], MAX_PASSES):
            yield from findings


def _in_hooks(trace: Trace, runs: Executions) -> Column:
    """Return each node's time in its hooks, which another rule covers."""
    called, took = hook_calls(trace)
    if not called.num_rows:
        return np.zeros(len(runs.node), np.int64)
    spent: Counter[tuple[int, ...]] = Counter()
    for key, took_ns in zip(called.rows("task", "node"), took.tolist(), strict=True):
        spent[key] += took_ns
    pairs = zip(runs.task.tolist(), runs.node.tolist(), strict=True)
    return np.array([spent[pair] for pair in pairs], np.int64)


def _longest_path(
    trace: Trace, task: int, nodes: Column, took_ns: Column
) -> tuple[int, int]:
    """Return the duration of the longest path, and the longest node beside it.

    Args:
        trace: Has the edges.
        task: The pass.
        nodes: Its nodes, in the order in which they started: the sender of a gradient
            started before its receiver.
        took_ns: Duration of each.
    """
    number = {node: place for place, node in enumerate(nodes.tolist())}
    took = took_ns.tolist()
    edges = trace.columns["gradient_buffered"].having("task", [task])
    into: list[list[int]] = [[] for _ in took]
    for producer, node in edges.rows("producer", "node"):
        if number.get(producer, NEVER) < number.get(node, -1):
            into[number[node]].append(number[producer])
    reached: list[int] = []
    before: list[int] = []
    for place, duration_ns in enumerate(took):
        last = max(into[place], key=reached.__getitem__, default=-1)
        before.append(last)
        reached.append(duration_ns + (reached[last] if last >= 0 else 0))
    place = max(range(len(took)), key=reached.__getitem__)
    span, on_path = reached[place], set()
    while place >= 0:
        on_path.add(place)
        place = before[place]
    aside = [place for place in range(len(took)) if place not in on_path]
    longest = max(aside or [0], key=took.__getitem__)
    return span, int(nodes[longest])
