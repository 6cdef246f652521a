"""What lies in the lanes of a timeline: nodes, kernels, calls, and time without them.

All are made from columns, since a pass may have a hundred thousand of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from gradviz.analysis.calls import CallKind, calls, depths
from gradviz.analysis.executions import (
    MAX_NAMES,
    MAX_SHOWN,
    MAX_TEXT,
    STATUSES,
    Executions,
    NodeStatus,
)
from gradviz.analysis.kernels import KernelRun
from gradviz.analysis.passes import Pass
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

#: So many calls of modules inside of each other are shown, the outermost first.
MAX_CALL_ROWS: Final = 3

#: What a training step consists of on the thread that makes it.
StepPart: TypeAlias = Literal["forward", "backward", "optimizer"]

STEP_PARTS: Final[tuple[StepPart, ...]] = get_args(StepPart)

#: Time in which a lane could not go on, or its caller did not run nodes yet, or more.
IdleKind: TypeAlias = Literal["wait", "blocked", "setup", "finish"]

SpanKind: TypeAlias = Literal["node", "kernel"] | IdleKind | StepPart


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node being evaluated, a thread asleep on its empty queue, a kernel, a call.

    Attributes:
        kind: Which of these. ``blocked`` is a stream that has work and waits for
            another one; ``setup`` the begin of a pass until its first node is queued or
            runs, ``finish`` its end after its last node, both on the thread that called
            for it. A call is one of a module, of ``backward``, or of ``step`` of an
            optimizer.
        task: The pass, -1 for a sleep, a call of something else, and for a kernel that
            no node launched.
        node: The node, or the one that launched the kernel; -1 where there is none.
        index: The node's place in the execution order of its pass; -1 where there is
            no node.
        name: The node's name, the kernel's, the path of the module, the class of the
            optimizer, ``backward``, ``waiting``, the stream that is waited for,
            ``set-up``, or ``end``.
        device: The node's device, the kernel's, else empty.
        row: How many spans of its lane it is nested in.
        start_ns: From the begin of the timeline.
        end_ns: From the begin of the timeline; that of the timeline where the trace
            does not say.
        waited_ns: How long the node was queued, or the kernel; None if unknown.
        status: How the node ended.
        error: What it raised, empty if it did not.
        thread_time_ns: For how long of it a node's thread was running; None if unknown.
        parameters: What the leaf of an AccumulateGrad is called.
    """

    kind: SpanKind
    task: int
    node: int
    index: int
    name: str
    device: str
    row: int
    start_ns: int
    end_ns: int
    waited_ns: int | None
    status: NodeStatus
    error: str = ""
    thread_time_ns: int | None = None
    parameters: tuple[str, ...] = ()


class Period(NamedTuple):
    """From when to when a timeline goes, on the trace's clock."""

    begin_ns: int
    end_ns: int


def places_in_order(runs: Executions) -> Column:
    """Of each node its place in the execution order of its pass."""
    by_task = np.argsort(runs.task, kind="stable")
    ordered = runs.task[by_task]
    found = np.empty(len(by_task), np.int64)
    found[by_task] = np.arange(len(by_task)) - np.searchsorted(ordered, ordered)
    return found


def node_spans(
    trace: Trace, runs: Executions, index: Column, period: Period
) -> Iterator[tuple[int, Span]]:
    """A span for each node that ran, and its thread."""
    texts, name = trace.nodes.names(runs.node)
    names = [shortened(text, MAX_TEXT) for text in texts]
    texts, device = trace.nodes.names(runs.node, "device")
    devices = [shortened(text, MAX_TEXT) for text in texts]
    texts, leaf = trace.nodes.names(runs.node, "parameter")
    leaves = [_parameters(text) for text in texts]
    errors = {
        place: shortened(trace.strings[place], MAX_TEXT) if place >= 0 else ""
        for place in set(runs.error.tolist())
    }
    origin = period.begin_ns
    end_ns = np.where(runs.has_ended, runs.end_ns, period.end_ns)
    columns = (
        *(runs.thread, runs.task, runs.node, index, name, device, leaf),
        *(runs.start_ns - origin, np.maximum(end_ns, runs.start_ns) - origin),
        *(runs.waited_ns, runs.status, runs.error, runs.thread_time_ns),
    )
    for row in zip(*(one.tolist() for one in columns), strict=True):
        thread, task, node, place, called, where, known, start, end, *how = row
        waited_ns, status, error, thread_time_ns = how
        yield (
            thread,
            Span(
                kind="node",
                task=task,
                node=node,
                index=place,
                name=names[called],
                device=devices[where],
                row=0,
                start_ns=start,
                end_ns=end,
                waited_ns=None if waited_ns < 0 else waited_ns,
                status=STATUSES[status],
                error=errors[error],
                thread_time_ns=None if thread_time_ns < 0 else thread_time_ns,
                parameters=leaves[known],
            ),
        )


def kernel_span(
    kernel: KernelRun,
    launcher: tuple[int, int],
    index: Mapping[tuple[int, int], int],
    period: Period,
) -> Span:
    """A kernel, launched by a node of a pass, or by (-1, -1)."""
    cut = cut_span("kernel", kernel.name, kernel.start_ns, kernel.end_ns, period)
    return replace(
        cut,
        task=launcher[0],
        node=launcher[1],
        index=index.get(launcher, -1),
        device=kernel.device,
        waited_ns=max(kernel.start_ns - kernel.launched_ns, 0),
    )


def call_spans(
    trace: Trace, chosen: Sequence[Pass], period: Period
) -> tuple[list[tuple[int, Span]], int]:
    """Calls of modules, optimizers and these passes, and how many are left out."""
    found = [
        (
            one.thread,
            cut_span(
                "backward",
                "backward",
                one.begin_ns,
                period.end_ns if one.end_ns is None else one.end_ns,
                period,
                one.status,
            ),
        )
        for one in chosen
        if one.parent < 0
    ]
    omitted = 0
    kinds: tuple[CallKind, ...] = ("forward", "optimizer")
    for kind in kinds:
        some = calls(trace, kind)
        meanwhile = (some.begin_ns < period.end_ns) & (some.end_ns > period.begin_ns)
        places = np.flatnonzero(meanwhile & (depths(some) < MAX_CALL_ROWS))
        omitted += max(len(places) - MAX_SHOWN, 0)
        some = some.at(places[:MAX_SHOWN])
        for thread, begin, until, has_ended, failed, name in zip(
            some.thread.tolist(),
            some.begin_ns.tolist(),
            some.end_ns.tolist(),
            some.has_ended.tolist(),
            some.failed.tolist(),
            some.module.tolist(),
            strict=True,
        ):
            status: NodeStatus = "failed" if failed else "completed"
            if not has_ended:
                status = "unfinished"
            end = until if has_ended else period.end_ns
            text = shortened(trace.strings[name], MAX_TEXT)
            found.append((thread, cut_span(kind, text, begin, end, period, status)))
    return found, omitted


def cut_span(
    kind: SpanKind,
    name: str,
    begin_ns: int,
    end_ns: int,
    period: Period,
    status: NodeStatus = "completed",
) -> Span:
    """A span of no node, cut to the timeline."""
    start = max(begin_ns, period.begin_ns) - period.begin_ns
    return Span(
        kind=kind,
        task=-1,
        node=-1,
        index=-1,
        name=name,
        device="",
        row=0,
        start_ns=start,
        end_ns=max(min(end_ns, period.end_ns) - period.begin_ns, start),
        waited_ns=None,
        status=status,
    )


def _parameters(text: str) -> tuple[str, ...]:
    """What a leaf is called, from the lines that name it."""
    if not text or text == "?":
        return ()
    names = text.split("\n")[:MAX_NAMES]
    return tuple(shortened(one, MAX_TEXT) for one in names)
