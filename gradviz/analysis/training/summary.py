"""The figures of a trace: counts, times, and failures."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from gradviz.analysis.nodes.processor_waits import processor_waits
from gradviz.analysis.tables.executions import (
    MAX_SHOWN,
    Execution,
    Executions,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
    failed_places,
    places_in_order,
)
from gradviz.analysis.tables.passes import MAX_PASSES, Status, passes
from gradviz.analysis.tables.worker_parts import (
    numbers_of,
    whole_of,
    wholes_of,
    with_parts,
    worker_parts,
)
from gradviz.analysis.training.steps import Steps, find_steps
from gradviz.trace.format.model import Losses, ProcessDefinition, Trace
from gradviz.trace.format.table import Column, different

if TYPE_CHECKING:
    from gradviz.analysis.training.not_finite import NotFiniteValue

SCHEMA: Final = "gradviz.summary"
VERSION: Final = 1

NUM_LONGEST: Final = 10


class PassSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One backward pass.

    Attributes:
        task: Its number.
        parent: The pass from inside which it was called, -1 for none.
        duration_ns: None if the trace does not say when it ended.
        runs: Nodes started, on all workers.
        edges: Edges counted when the graph was walked; 0 if the trace does not say.
        status: Outcome of the pass.
        error: Error that it failed with, empty if it did not.
        location: The line of the program that called for it, empty if unknown.
        workers: Workers that ran a part of it; none if it was not distributed.
    """

    task: int
    parent: int
    duration_ns: int | None
    runs: int
    edges: int
    status: Status
    error: str
    location: str = ""
    workers: tuple[int, ...] = ()


class ThreadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one thread: runs of nodes, and the time in which it ran any."""

    thread: int
    name: str
    runs: int
    busy_ns: int


class NameSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of nodes of one name: how many, their time together, the longest."""

    name: str
    runs: int
    total_ns: int
    longest_ns: int


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node in one pass: one that took long, or one that failed.

    `thread_time_ns`, `processor_wait_ns`, `parameters` and `index` are those of an
    `OrderRow`.
    """

    task: int
    node: int
    name: str
    device: str
    location: str
    duration_ns: int
    status: NodeStatus
    error: str
    thread_time_ns: int | None = None
    processor_wait_ns: int = 0
    parameters: tuple[str, ...] = ()
    index: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a trace, or of some of its passes.

    Attributes:
        path: The file, empty for a trace in memory.
        duration_ns: From the first event to the last.
        num_events: Events, of which `events` counts each kind.
        events: Kind -> number.
        num_runs: Nodes started; a node that ran in two passes counts twice.
        num_nodes: Different nodes among them.
        num_edges: Edges counted when the graphs were walked.
        passes: Each backward pass, in order.
        threads: Each thread that ran a node.
        names: Each name of nodes, those that took most time first.
        longest: The nodes that took longest, the longest first.
        failed: The nodes that raised, in order.
        losses: Parts of the trace that are missing.
        left_out: Parts that the recording left out on purpose, a few words each.
        omitted_passes: Number of further passes, which are not told of.
        steps: The steps of the training; None of a part of a trace.
        processes: Those that a trace was merged of; none of a single one.
        not_finite: The first values that are not finite, of a whole trace.
        num_not_finite: Number of all such values.
    """

    path: str
    duration_ns: int
    num_events: int
    events: dict[str, int]
    num_runs: int
    num_nodes: int
    num_edges: int
    passes: tuple[PassSummary, ...]
    threads: tuple[ThreadSummary, ...]
    names: tuple[NameSummary, ...]
    longest: tuple[NodeSummary, ...]
    failed: tuple[NodeSummary, ...]
    losses: Losses
    omitted_passes: int = 0
    left_out: tuple[str, ...] = ()
    steps: Steps | None = None
    processes: tuple[ProcessDefinition, ...] = ()
    not_finite: "tuple[NotFiniteValue, ...]" = ()
    num_not_finite: int = 0


def summarize(trace: Trace, tasks: Sequence[int] | None = None) -> Summary:
    """The figures of a trace.

    Args:
        trace: The trace.
        tasks: Count only what belongs to these passes; None counts everything.
    """
    num_passes = len(numbers_of(trace, trace.tasks))
    if tasks is not None:
        tasks = sorted(with_parts(trace, tasks))
    events, duration_ns = _events(trace, tasks)
    # First, as it has columns of all nodes that ran of its own.
    steps = find_steps(trace) if tasks is None else None
    runs = execution_columns(trace, tasks)
    per_pass = _passes(trace, tasks, runs)
    places = places_in_order(trace, runs)
    longest = np.argsort(-runs.took_ns, kind="stable")[:NUM_LONGEST]
    failed = failed_places(runs)[:MAX_SHOWN]
    num_not_finite = trace.columns["not_finite"].num_rows if tasks is None else 0
    return Summary(
        path=str(trace.path) if trace.path else "",
        duration_ns=duration_ns,
        num_events=sum(events.values()),
        events=events,
        num_runs=len(runs.node),
        num_nodes=len(different(runs.node)),
        num_edges=sum(one.edges for one in per_pass),
        passes=per_pass,
        threads=_threads(trace, runs),
        names=_names(trace, runs),
        longest=_nodes(trace, runs.at(longest), places[longest]),
        failed=_nodes(trace, runs.at(failed), places[failed]),
        losses=trace.losses,
        omitted_passes=max(num_passes - MAX_PASSES, 0) if tasks is None else 0,
        left_out=tuple(trace.header.scope.in_words()),
        steps=steps,
        processes=trace.processes if len(trace.processes) > 1 else (),
        num_not_finite=num_not_finite,
        not_finite=_not_finite(trace) if num_not_finite else (),
    )


def _not_finite(trace: Trace) -> "tuple[NotFiniteValue, ...]":
    # Loaded where there is something to tell.
    from gradviz.analysis.training.not_finite import (  # noqa: PLC0415
        not_finite_values,
    )

    return not_finite_values(trace, NUM_LONGEST)


def summary_document(
    trace: Trace, tasks: Sequence[int] | None = None
) -> dict[str, Any]:
    """Return the output of ``gradviz show summary --json``."""
    summary = msgspec.to_builtins(summarize(trace, tasks))
    return {"schema": SCHEMA, "version": VERSION, **summary}


def _events(trace: Trace, tasks: Sequence[int] | None) -> tuple[dict[str, int], int]:
    """The number of events of each kind, and the time from the first to the last."""
    counts = {}
    moments: list[int] = []
    for kind, table in trace.columns.items():
        t_ns = table.narrow("t_ns")
        if tasks is not None:
            t_ns = t_ns[np.isin(table.narrow("task"), np.array(tasks, np.int64))]
        if len(t_ns):
            counts[kind] = len(t_ns)
            moments += (int(t_ns.min()), int(t_ns.max()))
    return counts, max(moments, default=0) - min(moments, default=0)


def _passes(
    trace: Trace, tasks: Sequence[int] | None, runs: Executions
) -> tuple[PassSummary, ...]:
    num_runs = Counter(wholes_of(trace, runs.task).tolist())
    counted = trace.columns["dependencies_counted"]
    edges: Counter[int] = Counter()
    for task, num_edges in counted.rows("task", "num_edges"):
        edges[whole_of(trace, task)] += num_edges
    parts = worker_parts(trace)
    return tuple(
        PassSummary(
            task=one.task,
            parent=one.parent,
            duration_ns=one.duration_ns,
            runs=num_runs[one.task],
            edges=edges[one.task],
            status=one.status,
            error=one.error,
            location=one.location,
            workers=tuple(
                sorted({parts[part].worker for part in one.parts if part in parts})
            ),
        )
        for one in passes(trace, tasks=tasks)
    )


def _threads(trace: Trace, runs: Executions) -> tuple[ThreadSummary, ...]:
    threads, how_many = np.unique(runs.thread, return_counts=True)
    order = np.argsort(runs.thread, kind="stable")
    parts = np.split(order, np.cumsum(how_many)[:-1])
    return tuple(
        ThreadSummary(
            thread=thread,
            name=trace.threads[thread].name if thread in trace.threads else "",
            runs=len(own),
            busy_ns=_union(runs.start_ns[own], runs.end_ns[own]),
        )
        for thread, own in zip(threads.tolist(), parts, strict=False)
    )


def _union(start_ns: Column, end_ns: Column) -> int:
    """Return the length of the union of spans, which are sorted by their starts."""
    reached = np.maximum.accumulate(np.append(start_ns[:1], end_ns))[:-1]
    return int(np.maximum(end_ns - np.maximum(start_ns, reached), 0).sum())


def _names(trace: Trace, runs: Executions) -> tuple[NameSummary, ...]:
    names, place = trace.nodes.names(runs.node)
    took = runs.took_ns
    num_runs = np.bincount(place, minlength=len(names))
    total, longest = np.zeros((2, len(names)), np.int64)
    np.add.at(total, place, took)
    np.maximum.at(longest, place, took)
    found = [
        NameSummary(name=name, runs=number, total_ns=total_ns, longest_ns=longest_ns)
        for name, number, total_ns, longest_ns in zip(
            names, num_runs.tolist(), total.tolist(), longest.tolist(), strict=True
        )
    ]
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))


def _nodes(trace: Trace, runs: Executions, places: Column) -> tuple[NodeSummary, ...]:
    lost_ns = processor_waits(trace, runs).tolist()
    told = zip(as_list(trace, runs), lost_ns, places.tolist(), strict=True)
    return tuple(_node(trace, *one) for one in told)


def _node(trace: Trace, run: Execution, lost_ns: int, index: int) -> NodeSummary:
    node = definition(trace, run.node)
    return NodeSummary(
        task=whole_of(trace, run.task),
        node=run.node,
        name=node.name,
        device=node.device,
        location=node.location,
        duration_ns=run.took_ns or 0,
        status=run.status,
        error=run.error,
        thread_time_ns=run.thread_time_ns,
        processor_wait_ns=lost_ns,
        parameters=node.parameters,
        index=index,
    )
