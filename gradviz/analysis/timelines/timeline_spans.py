"""Spans in the lanes of a timeline: nodes, kernels, calls, and time without them.

All are made from columns, since a pass may have a hundred thousand of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from gradviz.analysis.tables.executions import (
    MAX_NAMES,
    MAX_SHOWN,
    MAX_TEXT,
    STATUSES,
    Executions,
    NodeStatus,
)
from gradviz.analysis.tables.kernels import KernelRun
from gradviz.analysis.tables.passes import Pass
from gradviz.analysis.tables.worker_parts import whole_of, wholes_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column

if TYPE_CHECKING:
    from gradviz.analysis.tables.collectives import Collective
    from gradviz.analysis.tables.hook_calls import HookCall

#: Maximum number of rows for calls of modules inside of each other, the outermost
#: first.
MAX_CALL_ROWS: Final = 3

#: Parts of a training step on the thread that makes it.
StepPart: TypeAlias = Literal["forward", "backward", "optimizer"]

STEP_PARTS: Final[tuple[StepPart, ...]] = get_args(StepPart)

#: Time in which a lane could not go on, or its caller did not run nodes yet, or more.
IdleKind: TypeAlias = Literal["wait", "blocked", "setup", "finish"]

SpanKind: TypeAlias = (
    Literal["node", "kernel", "hook", "collective", "module"] | IdleKind | StepPart
)


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node being evaluated, a thread asleep on its empty queue, a kernel, a call.

    Attributes:
        kind: One of these. ``blocked`` is a stream that has work and waits for another
            one; ``setup`` the start of a pass until its first node is queued or runs,
            ``finish`` its end after its last node, both on the thread that called for
            it. ``hook`` is a call of a hook, or of several of which it is only known
            how long they took together. A call is one of a module, of ``backward``, or
            of ``step`` of an optimizer.
        task: The pass, -1 for a sleep, a call of something else, and for a kernel that
            no node launched.
        node: The node, or the one that launched the kernel or the collective; -1 where
            there is none.
        index: The node's place in the execution order of its pass; -1 where there is
            no node.
        name: The node's name, the kernel's, the collective's with its bucket, those of
            hooks with a comma between them, the path of the module, the class of the
            optimizer, ``backward``, ``waiting``, the stream that is waited for,
            ``set-up``, or ``end``.
        device: The node's device, the kernel's, else empty.
        row: Number of spans of its lane that it is nested in.
        start_ns: From the start of the timeline.
        end_ns: From the start of the timeline; that of the timeline where the trace
            does not say.
        waited_ns: Queue wait of the node, or of the kernel; None if unknown.
        status: Status with which the node ended.
        error: Error that it raised, empty if it did not.
        thread_time_ns: Time of it in which a node's thread was running; None if
            unknown.
        parameters: Names of the leaf of an AccumulateGrad.
        module: The part of a model that made the node, empty outside a model; or whose
            span it is, of kind ``module``, which is inferred from nodes; see
            `gradviz.analysis.timelines.module_rows`.
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
    module: str = ""


class Period(NamedTuple):
    """Period of a timeline, on the trace's clock."""

    begin_ns: int
    end_ns: int


def node_spans(
    trace: Trace, runs: Executions, index: Column, period: Period
) -> Iterator[tuple[int, Span]]:
    """A span for each node that ran, and its thread."""
    texts, name = trace.nodes.names(runs.node)
    names = [shortened(text, MAX_TEXT) for text in texts]
    texts, device = trace.nodes.names(runs.node, "device")
    devices = [shortened(text, MAX_TEXT) for text in texts]
    texts, part = trace.nodes.names(runs.node, "module")
    parts = ["" if text == "?" else shortened(text, MAX_TEXT) for text in texts]
    texts, leaf = trace.nodes.names(runs.node, "parameter")
    leaves = [_parameters(text) for text in texts]
    errors = {
        place: shortened(trace.strings[place], MAX_TEXT) if place >= 0 else ""
        for place in set(runs.error.tolist())
    }
    origin = period.begin_ns
    end_ns = np.where(runs.has_ended, runs.end_ns, period.end_ns)
    columns = (
        *(runs.thread, wholes_of(trace, runs.task), runs.node),
        *(index, name, device, part, leaf),
        *(runs.start_ns - origin, np.maximum(end_ns, runs.start_ns) - origin),
        *(runs.waited_ns, runs.status, runs.error, runs.thread_time_ns),
    )
    for row in zip(*(one.tolist() for one in columns), strict=True):
        thread, task, node, place, called, where, made_by, known, *when = row
        start, end, *how = when
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
                module=parts[made_by],
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


def hook_spans(
    trace: Trace, tasks: Sequence[int], period: Period, limit: int
) -> tuple[list[tuple[int, Span]], int]:
    """The calls of hooks with their threads, and how many are left out."""
    if not trace.columns["hook_called"].num_rows:
        return [], 0
    # Loaded where there are hooks.
    from gradviz.analysis.tables.hook_calls import hook_calls  # noqa: PLC0415

    groups: dict[tuple[int, int, int], list[HookCall]] = defaultdict(list)
    for one in hook_calls(trace, tasks):
        if one.end_ns is not None:
            groups[one.thread, one.began_ns, one.end_ns].append(one)
    found = []
    for (thread, begin_ns, end_ns), calls in groups.items():
        name = shortened(", ".join(one.function or "?" for one in calls), MAX_TEXT)
        span = cut_span("hook", name, begin_ns, end_ns, period)
        one = calls[0]
        found.append(
            (thread, replace(span, task=whole_of(trace, one.task), node=one.node))
        )
    return found[:limit], max(len(found) - limit, 0)


def collective_spans(
    trace: Trace, tasks: Sequence[int], period: Period, limit: int
) -> tuple[list[tuple[int, Span]], int]:
    """Return the collectives that passes launched, and how many are left out.

    Each is with the thread that ran it. Those that have no end in the trace last until
    that of the timeline.
    """
    if not trace.columns["collective_began"].num_rows:
        return [], 0
    # Loaded where there are several ranks.
    from gradviz.analysis.tables.collectives import collectives  # noqa: PLC0415

    shown, found = frozenset(tasks), []
    for one in collectives(trace):
        name = collective_title(one)
        for part in one.parts:
            if part.task not in shown:
                continue
            end_ns = period.end_ns if part.ended_ns is None else part.ended_ns
            status: NodeStatus = "completed"
            if part.ended_ns is None:
                status = "unfinished"
            span = cut_span("collective", name, part.began_ns, end_ns, period, status)
            node = -1 if part.node is None else part.node
            task = whole_of(trace, part.task)
            found.append((part.thread, replace(span, task=task, node=node)))
    return found[:limit], max(len(found) - limit, 0)


def collective_title(one: "Collective") -> str:
    """Return the name of a collective, and the bucket that it reduces."""
    bucket = "" if one.bucket is None else f", bucket {one.bucket}"
    return shortened(f"{one.name}{bucket}", MAX_TEXT)


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
    # Loaded where there are several passes.
    from gradviz.analysis.tables.calls import (  # noqa: PLC0415
        CallKind,
        calls,
        depths,
    )

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
    """Return the names of a leaf, from the lines that name it."""
    if not text or text == "?":
        return ()
    names = text.split("\n")[:MAX_NAMES]
    return tuple(shortened(one, MAX_TEXT) for one in names)
