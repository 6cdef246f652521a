"""Nodes that make the host wait for a device inside of a backward pass."""

import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.tables.executions import definition, execution_columns
from gradviz.analysis.tables.passes import passes
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

_MAX_STREAM: Final = 100

#: Waits of the host, and the column that names what it waited for.
_WAITS: Final = {
    "stream_synchronized": "stream",
    "device_synchronized": "device",
    "event_synchronized": "",
}

#: Nodes that bring a gradient to the device of a tensor: to the host that waits.
_COPIES: Final = frozenset({"ToCopyBackward0", "CopyBackwards"})

#: Maximum number of runs of nodes on a thread searched for the one that goes on.
_MAX_LOOKS: Final = 1_000


class _NodeRun(NamedTuple):
    """A node that ran on a thread."""

    start_ns: int
    end_ns: int
    task: int
    node: int


class _Wait(NamedTuple):
    """A wait of the host, with the time since its node began; None if unknown."""

    task: int
    cost_ns: int | None


def host_wait(trace: Trace) -> Iterator[CostlyFinding]:
    """Nodes within which the host has waited for a stream, a device or an event.

    Until then the thread launches nothing, and the device may run dry. A wait ends with
    its event; when it began is not known, so it costs at most the time since its node
    began. A producer may tell the pass and the node of a wait; of others they are those
    of the node that its thread was running. A wait of a pass that is in none of its
    nodes is one of a hook, or of the engine. A copy to the host has to wait.
    """
    waits: dict[tuple[int, int, str], list[_Wait]] = defaultdict(list)
    for awaited, run in _waits(trace):
        of_pass = -1 if run.node >= 0 else run.task
        cost = run.end_ns - run.start_ns if run.node >= 0 else None
        waits[of_pass, run.node, awaited].append(_Wait(run.task, cost))
    for (of_pass, node, awaited), found in waits.items():
        costs = [one.cost_ns for one in found if one.cost_ns is not None]
        known = definition(trace, node) if node >= 0 else None
        if known is not None and known.name in _COPIES:
            continue
        line = _line_of_pass(trace, of_pass) if known is None else known.location
        yield CostlyFinding(
            rule="host_wait",
            certainty="certain",
            location=line,
            cost_ns=sum(costs) if costs else None,
            times=len({one.task for one in found}),
            task=found[-1].task,
            node=node,
            name="" if known is None else known.name,
            module="" if known is None else known.module,
            count=len(found),
            detail=awaited,
        )


def _line_of_pass(trace: Trace, task: int) -> str:
    """Return the line that called for a pass; empty if a damaged trace lacks that."""
    return "".join(one.location for one in passes(trace, tasks=[task]))


def _waits(trace: Trace) -> Iterator[tuple[str, _NodeRun]]:
    """Yield what was waited for, and the node from its start to the end of the wait."""
    kinds = [kind for kind in _WAITS if trace.columns[kind].num_rows]
    runs = _runs(trace) if kinds else {}
    for kind in kinds:
        rows, column = trace.columns[kind], _WAITS[kind]
        what = rows[column].tolist() if column else [-1] * rows.num_rows
        moments = rows.rows("thread", "task", "node", "t_ns")
        for (thread, task, node, t_ns), place in zip(moments, what, strict=True):
            told = _NodeRun(t_ns, t_ns, task, node)
            run = _waiting(told, runs.get(thread, []))
            if run.task < 0:
                continue  # outside of all passes
            name = "an event" if place < 0 else trace.strings[place]
            yield shortened(name, _MAX_STREAM), run._replace(end_ns=t_ns)


def _waiting(told: _NodeRun, runs: Sequence[_NodeRun]) -> _NodeRun:
    """Return the node that waited.

    Args:
        told: The moment, with the pass and the node as far as the producer tells them.
        runs: The runs of nodes on the thread that waited.
    """
    run = _running(runs, told.end_ns)
    if run is None:
        return told
    is_other_pass = told.task >= 0 and told.task != run.task
    is_other_node = told.task >= 0 and told.node >= 0 and told.node != run.node
    return told if is_other_pass or is_other_node else run


def _runs(trace: Trace) -> dict[int, list[_NodeRun]]:
    """Return the runs of nodes by thread, in the order in which they began."""
    found: dict[int, list[_NodeRun]] = defaultdict(list)
    runs = execution_columns(trace)
    columns = (runs.thread, runs.start_ns, runs.end_ns, runs.task, runs.node)
    for thread, *run in zip(*(one.tolist() for one in columns), strict=True):
        found[thread].append(_NodeRun(*run))
    for some in found.values():
        some.sort()
    return found


def _running(runs: Sequence[_NodeRun], t_ns: int) -> _NodeRun | None:
    """Return the innermost node that a thread was running at a moment."""
    last = bisect.bisect_left(runs, t_ns, key=lambda one: one.start_ns)
    for one in reversed(runs[max(last - _MAX_LOOKS, 0) : last]):
        if one.end_ns >= t_ns:
            return one
    return None
