"""The figures of a trace: how much of what, how long, and what went wrong."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.executions import (
    MAX_SHOWN,
    Execution,
    Executions,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
    failed_places,
)
from gradviz.analysis.passes import MAX_PASSES, Status, passes
from gradviz.analysis.processor_waits import processor_waits
from gradviz.analysis.steps import Steps, find_steps
from gradviz.trace.model import Losses, ProcessDefinition, Trace
from gradviz.trace.table import Column

SCHEMA: Final = "gradviz.summary"
VERSION: Final = 1

NUM_LONGEST: Final = 10


class PassSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One backward pass.

    Attributes:
        task: Its id.
        parent: The pass from inside which it was called, -1 for none.
        duration_ns: None if the trace does not say when it ended.
        nodes: Nodes started.
        edges: Edges counted when the graph was walked; 0 if the trace does not say.
        status: How it ended.
        error: What it failed with, empty if it did not.
        location: The line of the program that called for it, empty if unknown.
    """

    task: int
    parent: int
    duration_ns: int | None
    nodes: int
    edges: int
    status: Status
    error: str
    location: str = ""


class ThreadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What one thread did: nodes started, and the time in which it ran any."""

    thread: int
    name: str
    nodes: int
    busy_ns: int


class NameSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All nodes of one name: how many ran, their time together, the longest one."""

    name: str
    nodes: int
    total_ns: int
    longest_ns: int


class NodeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One node in one pass: one that took long, or one that failed.

    `thread_time_ns`, `processor_wait_ns` and `parameters` are those of an `OrderRow`.
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


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a trace, or of some of its passes.

    Attributes:
        path: The file, empty for a trace in memory.
        duration_ns: From the first event to the last.
        num_events: Events, of which `events` counts each kind.
        events: Kind -> number.
        num_nodes: Nodes started; a node that ran in two passes counts twice.
        num_edges: Edges counted when the graphs were walked.
        passes: Each backward pass, in order.
        threads: Each thread that ran a node.
        names: Each name of nodes, those that took most time first.
        longest: The nodes that took longest, the longest first.
        failed: The nodes that raised, in order.
        losses: What of the trace is missing.
        left_out: What the recording left out on purpose, a few words each.
        omitted_passes: How many passes more there are than are told of.
        steps: The steps of the training; None of a part of a trace.
        processes: Those that a trace was merged of; none of a single one.
    """

    path: str
    duration_ns: int
    num_events: int
    events: dict[str, int]
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


def summarise(trace: Trace, tasks: Sequence[int] | None = None) -> Summary:
    """The figures of a trace.

    Args:
        trace: The trace.
        tasks: Count only what belongs to these passes; None counts everything.
    """
    events, duration_ns = _events(trace, tasks)
    runs = execution_columns(trace, tasks)
    per_pass = _passes(trace, tasks, runs)
    longest = np.argsort(-runs.took_ns, kind="stable")[:NUM_LONGEST]
    return Summary(
        path=str(trace.path) if trace.path else "",
        duration_ns=duration_ns,
        num_events=sum(events.values()),
        events=events,
        num_nodes=len(runs.node),
        num_edges=sum(one.edges for one in per_pass),
        passes=per_pass,
        threads=_threads(trace, runs),
        names=_names(trace, runs),
        longest=_nodes(trace, runs.at(longest)),
        failed=_nodes(trace, runs.at(failed_places(runs)[:MAX_SHOWN])),
        losses=trace.losses,
        omitted_passes=max(len(trace.tasks) - MAX_PASSES, 0) if tasks is None else 0,
        left_out=tuple(trace.header.scope.in_words()),
        steps=find_steps(trace) if tasks is None else None,
        processes=trace.processes if len(trace.processes) > 1 else (),
    )


def summary_document(
    trace: Trace, tasks: Sequence[int] | None = None
) -> dict[str, Any]:
    """The summary as what ``gradviz show summary --json`` prints."""
    summary = msgspec.to_builtins(summarise(trace, tasks))
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
    wanted = set(trace.tasks if tasks is None else tasks)
    with_nodes, how_many = np.unique(runs.task, return_counts=True)
    nodes = dict(zip(with_nodes.tolist(), how_many.tolist(), strict=True))
    counted = trace.columns["dependencies_counted"]
    names = ("task", "num_edges")
    edges = dict(zip(*(counted[name].tolist() for name in names), strict=True))
    return tuple(
        PassSummary(
            task=one.task,
            parent=one.parent,
            duration_ns=one.duration_ns,
            nodes=nodes.get(one.task, 0),
            edges=edges.get(one.task, 0),
            status=one.status,
            error=one.error,
            location=one.location,
        )
        for one in passes(trace)
        if one.task in wanted
    )


def _threads(trace: Trace, runs: Executions) -> tuple[ThreadSummary, ...]:
    threads, how_many = np.unique(runs.thread, return_counts=True)
    order = np.argsort(runs.thread, kind="stable")
    parts = np.split(order, np.cumsum(how_many)[:-1])
    return tuple(
        ThreadSummary(
            thread=thread,
            name=trace.threads[thread].name if thread in trace.threads else "",
            nodes=len(own),
            busy_ns=_union(runs.start_ns[own], runs.end_ns[own]),
        )
        for thread, own in zip(threads.tolist(), parts, strict=False)
    )


def _union(start_ns: Column, end_ns: Column) -> int:
    """How long the union of some spans is, which are sorted by their starts."""
    reached = np.maximum.accumulate(np.append(start_ns[:1], end_ns))[:-1]
    return int(np.maximum(end_ns - np.maximum(start_ns, reached), 0).sum())


def _names(trace: Trace, runs: Executions) -> tuple[NameSummary, ...]:
    names, place = trace.nodes.names(runs.node)
    took = runs.took_ns
    nodes = np.bincount(place, minlength=len(names))
    total, longest = np.zeros((2, len(names)), np.int64)
    np.add.at(total, place, took)
    np.maximum.at(longest, place, took)
    found = [
        NameSummary(name=name, nodes=number, total_ns=total_ns, longest_ns=longest_ns)
        for name, number, total_ns, longest_ns in zip(
            names, nodes.tolist(), total.tolist(), longest.tolist(), strict=True
        )
    ]
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))


def _nodes(trace: Trace, runs: Executions) -> tuple[NodeSummary, ...]:
    both = zip(as_list(trace, runs), processor_waits(trace, runs).tolist(), strict=True)
    return tuple(_node(trace, run, lost_ns) for run, lost_ns in both)


def _node(trace: Trace, run: Execution, lost_ns: int) -> NodeSummary:
    node = definition(trace, run.node)
    return NodeSummary(
        task=run.task,
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
    )
