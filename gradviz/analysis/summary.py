"""The figures of a trace: how much of what, how long, and what went wrong."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.executions import Execution, NodeStatus, definition, executions
from gradviz.analysis.passes import Status, passes
from gradviz.analysis.timeline import busy_ns
from gradviz.trace.model import Losses, Trace

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
    """

    task: int
    parent: int
    duration_ns: int | None
    nodes: int
    edges: int
    status: Status
    error: str


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
    """One node in one pass: one that took long, or one that failed."""

    task: int
    node: int
    name: str
    device: str
    location: str
    duration_ns: int
    status: NodeStatus
    error: str


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


def summarise(trace: Trace, tasks: Sequence[int] | None = None) -> Summary:
    """The figures of a trace.

    Args:
        trace: The trace.
        tasks: Count only what belongs to these passes; None counts everything.
    """
    events, duration_ns = _events(trace, tasks)
    runs = executions(trace, tasks)
    per_pass = _passes(trace, tasks, runs)
    return Summary(
        path=str(trace.path) if trace.path else "",
        duration_ns=duration_ns,
        num_events=sum(events.values()),
        events=events,
        num_nodes=len(runs),
        num_edges=sum(one.edges for one in per_pass),
        passes=per_pass,
        threads=_threads(trace, runs),
        names=_names(trace, runs),
        longest=_longest(trace, runs),
        failed=tuple(_node(trace, run) for run in runs if run.status == "failed"),
        losses=trace.losses,
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
    for kind, columns in trace.columns.items():
        t_ns = columns["t_ns"]
        if tasks is not None:
            t_ns = t_ns[np.isin(columns["task"], tasks)]
        if len(t_ns):
            counts[kind] = len(t_ns)
            moments += (int(t_ns.min()), int(t_ns.max()))
    return counts, max(moments, default=0) - min(moments, default=0)


def _passes(
    trace: Trace, tasks: Sequence[int] | None, runs: Sequence[Execution]
) -> tuple[PassSummary, ...]:
    wanted = set(trace.tasks if tasks is None else tasks)
    nodes = Counter(run.task for run in runs)
    counted = trace.columns["dependencies_counted"]
    names = ("task", "num_edges")
    edges = dict(zip(*(counted[name].tolist() for name in names), strict=True))
    return tuple(
        PassSummary(
            task=one.task,
            parent=one.parent,
            duration_ns=one.duration_ns,
            nodes=nodes[one.task],
            edges=edges.get(one.task, 0),
            status=one.status,
            error=one.error,
        )
        for one in passes(trace)
        if one.task in wanted
    )


def _threads(trace: Trace, runs: Sequence[Execution]) -> tuple[ThreadSummary, ...]:
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for run in runs:
        end_ns = run.start_ns if run.end_ns is None else run.end_ns
        spans[run.thread].append((run.start_ns, end_ns))
    return tuple(
        ThreadSummary(
            thread=thread,
            name=trace.threads[thread].name if thread in trace.threads else "",
            nodes=len(own),
            busy_ns=busy_ns(own),
        )
        for thread, own in sorted(spans.items())
    )


def _names(trace: Trace, runs: Sequence[Execution]) -> tuple[NameSummary, ...]:
    took: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        took[definition(trace, run.node).name].append(_took(run))
    found = [
        NameSummary(name=name, nodes=len(own), total_ns=sum(own), longest_ns=max(own))
        for name, own in took.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.name)))


def _longest(trace: Trace, runs: Sequence[Execution]) -> tuple[NodeSummary, ...]:
    longest = heapq.nlargest(NUM_LONGEST, runs, key=_took)
    return tuple(_node(trace, run) for run in longest)


def _node(trace: Trace, run: Execution) -> NodeSummary:
    node = definition(trace, run.node)
    return NodeSummary(
        task=run.task,
        node=run.node,
        name=node.name,
        device=node.device,
        location=node.location,
        duration_ns=_took(run),
        status=run.status,
        error=run.error,
    )


def _took(run: Execution) -> int:
    """How long a node took, 0 if the trace does not have its end."""
    return run.took_ns or 0
