"""The timeline of backward passes: a lane for each thread and each stream of a device.

Nodes that run inside of others lie in rows below them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.calls import CallKind, calls, depths
from gradviz.analysis.executions import (
    MAX_SHOWN,
    MAX_TEXT,
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.kernels import KernelRun, kernels, launchers, stream_order_key
from gradviz.analysis.passes import Pass, passes, with_descendants
from gradviz.analysis.steps import TrainingStep
from gradviz.analysis.stream_waits import StreamWait, stream_waits
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened

SCHEMA: Final = "gradviz.timeline"
VERSION: Final = 1

#: A timeline has at most so many threads, and so many streams.
MAX_LANES: Final = 250

#: Spans that are nested in more than that are left out.
MAX_ROWS: Final = 50

#: So many calls of modules inside of each other are shown, the outermost first.
MAX_CALL_ROWS: Final = 3

#: What a training step consists of on the thread that makes it.
StepPart: TypeAlias = Literal["forward", "backward", "optimizer"]

STEP_PARTS: Final[tuple[StepPart, ...]] = get_args(StepPart)

SpanKind: TypeAlias = Literal["node", "wait", "kernel"] | StepPart


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node being evaluated, a thread asleep on its empty queue, a kernel, a call.

    Attributes:
        kind: Which of these; a call is one of a module, of ``backward``, or of ``step``
            of an optimizer.
        task: The pass, -1 for a wait, a call of something else, and for a kernel that
            no node launched.
        node: The node, or the one that launched the kernel; -1 where there is none.
        index: The node's place in the execution order of its pass; -1 where there is
            no node.
        name: The node's name, the kernel's, the path of the module, the class of the
            optimizer, ``backward``, or ``waiting``.
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


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """What one thread did, or one stream of a device.

    Attributes:
        thread: Its number in the trace, -1 for a stream.
        name: Its name.
        num_rows: Rows that its spans need.
        num_nodes: Nodes it evaluated.
        busy_ns: Time in which it evaluated at least one node, or ran a kernel.
        spans: In order of start, the outer one first.
        num_kernels: Kernels it ran.
    """

    thread: int
    name: str
    num_rows: int
    num_nodes: int
    busy_ns: int
    spans: tuple[Span, ...]
    num_kernels: int = 0


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Backward passes over time.

    Attributes:
        tasks: The passes, those called from inside the others included.
        origin_ns: Its begin on the clock of the trace's events; all other times are
            counted from here.
        duration_ns: Its length.
        passes: Each pass; these times too are counted from the begin.
        lanes: One for each thread that evaluated a node, by number, then one for each
            stream that ran a kernel meanwhile.
        waits: Which kernel of a stream waited for which one of another, of those that
            the lanes have; their times too are counted from the begin.
        omitted: Nodes and kernels that are left out, because there are too many of
            them, of lanes, or of nodes inside of others.
        omitted_lanes: Lanes that are left out.
        step: The training step that is shown as a whole, None if none is.
    """

    tasks: tuple[int, ...]
    origin_ns: int
    duration_ns: int
    passes: tuple[Pass, ...]
    lanes: tuple[Lane, ...]
    waits: tuple[StreamWait, ...] = ()
    omitted: int = 0
    omitted_lanes: int = 0
    step: int | None = None


def build_timeline(
    trace: Trace, tasks: Sequence[int], step: TrainingStep | None = None
) -> Timeline:
    """The timeline of these passes and of all that were called from inside them.

    Of several passes it has the calls of modules and optimizers as well.

    Args:
        trace: The trace.
        tasks: The passes.
        step: Show all of this step, of which these are the passes.
    """
    tasks = with_descendants(trace, tasks)
    wanted = set(tasks)
    chosen = [one for one in passes(trace) if one.task in wanted]
    every = execution_columns(trace, tasks)
    runs = as_list(trace, every.at(slice(MAX_SHOWN)))
    omitted = len(every.node) - len(runs)
    origin, end = _extent(chosen, runs)
    if step is not None:
        origin, end = step.begin_ns, max(step.end_ns, end)
    ran = kernels(trace)
    omitted += max(trace.columns["kernel_launched"].num_rows - MAX_SHOWN, 0)
    by = launchers(ran, runs)
    meanwhile = [one.end_ns for one in ran if origin <= one.launched_ns <= end]
    end = max([end, *meanwhile])
    ran = [one for one in ran if one.start_ns < end and one.end_ns > origin]
    lanes: dict[int, list[Span]] = defaultdict(list)
    next_index: dict[int, int] = defaultdict(int)
    index: dict[tuple[int, int], int] = {}
    for run in runs:
        index[run.task, run.node] = next_index[run.task]
        lanes[run.thread].append(
            _node_span(trace, run, next_index[run.task], origin, end)
        )
        next_index[run.task] += 1
    if step is not None or sum(one.parent < 0 for one in chosen) > 1:
        shown_calls, omitted_calls = _calls(trace, chosen, origin, end)
        omitted += omitted_calls
        for thread, span in shown_calls:
            lanes[thread].append(span)
    for thread, wait in _waits(trace, origin, end):
        if thread in lanes:
            lanes[thread].append(wait)
    streams: dict[str, list[Span]] = defaultdict(list)
    for one in ran:
        streams[one.stream].append(
            _kernel_span(one, by.get(one.kernel), index, origin, end)
        )
    threads = sorted(lanes)[:MAX_LANES]
    shown_streams = sorted(streams, key=stream_order_key)[:MAX_LANES]
    all_lanes = (
        *(_lane(trace, thread, lanes[thread]) for thread in threads),
        *(_stream_lane(stream, streams[stream]) for stream in shown_streams),
    )
    num_shown = sum(lane.num_nodes + lane.num_kernels for lane in all_lanes)
    return Timeline(
        tasks=tasks,
        origin_ns=origin,
        duration_ns=end - origin,
        passes=tuple(_shifted(one, origin) for one in chosen),
        lanes=all_lanes,
        omitted=omitted + len(runs) + len(ran) - num_shown,
        omitted_lanes=len(lanes) + len(streams) - len(all_lanes),
        step=None if step is None else step.number,
        waits=tuple(
            msgspec.structs.replace(
                one, begin_ns=one.begin_ns - origin, ready_ns=one.ready_ns - origin
            )
            for one in stream_waits(
                trace, [one for one in ran if one.stream in set(shown_streams)]
            )
        ),
    )


def document_of(timeline: Timeline) -> dict[str, Any]:
    """The timeline as what ``gradviz show timeline --json`` prints."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(timeline)}


def busy_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Length of the union of ``(start, end)`` pairs that are sorted by start."""
    total = reached = 0
    for start, end in spans:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _extent(chosen: Sequence[Pass], runs: Sequence[Execution]) -> tuple[int, int]:
    """The first and the last moment that anything of the passes is known of."""
    moments = [one.begin_ns for one in chosen]
    moments += [one.end_ns for one in chosen if one.end_ns is not None]
    moments += [run.start_ns for run in runs]
    moments += [run.end_ns for run in runs if run.end_ns is not None]
    return min(moments, default=0), max(moments, default=0)


def _node_span(trace: Trace, run: Execution, index: int, origin: int, end: int) -> Span:
    node = definition(trace, run.node)
    until = end if run.end_ns is None else run.end_ns
    return Span(
        kind="node",
        task=run.task,
        node=run.node,
        index=index,
        name=node.name,
        device=node.device,
        row=0,
        start_ns=run.start_ns - origin,
        end_ns=max(until, run.start_ns) - origin,
        waited_ns=run.waited_ns,
        status=run.status,
        error=run.error,
        thread_time_ns=run.thread_time_ns,
        parameters=node.parameters,
    )


def _kernel_span(
    kernel: KernelRun,
    run: Execution | None,
    index: Mapping[tuple[int, int], int],
    origin: int,
    end: int,
) -> Span:
    task, node = (-1, -1) if run is None else (run.task, run.node)
    return Span(
        kind="kernel",
        task=task,
        node=node,
        index=index.get((task, node), -1),
        name=kernel.name,
        device=kernel.device,
        row=0,
        start_ns=max(kernel.start_ns, origin) - origin,
        end_ns=min(kernel.end_ns, end) - origin,
        waited_ns=max(kernel.start_ns - kernel.launched_ns, 0),
        status="completed",
    )


def _calls(
    trace: Trace, chosen: Sequence[Pass], origin: int, end: int
) -> tuple[list[tuple[int, Span]], int]:
    """Calls of modules, optimizers and these passes, and how many are left out."""

    def span(
        kind: StepPart, name: str, begin: int, until: int | None, status: NodeStatus
    ) -> Span:
        return Span(
            kind=kind,
            task=-1,
            node=-1,
            index=-1,
            name=name,
            device="",
            row=0,
            start_ns=max(begin, origin) - origin,
            end_ns=min(end if until is None else until, end) - origin,
            waited_ns=None,
            status=status,
        )

    found = [
        (one.thread, span("backward", "backward", one.begin_ns, one.end_ns, one.status))
        for one in chosen
        if one.parent < 0
    ]
    omitted = 0
    kinds: tuple[CallKind, ...] = ("forward", "optimizer")
    for kind in kinds:
        some = calls(trace, kind)
        meanwhile = (some.begin_ns < end) & (some.end_ns > origin)
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
            text = shortened(trace.strings[name], MAX_TEXT)
            found.append((thread, span(kind, text, begin, until, status)))
    return found, omitted


def _waits(trace: Trace, origin: int, end: int) -> Iterable[tuple[int, Span]]:
    """Each thread's sleeps within the timeline; they belong to no pass."""
    table = trace.columns["queue_waited"]
    t_ns = table.narrow("t_ns")
    meanwhile = table.at((t_ns > origin) & (t_ns - table["waited_ns"] < end))
    names = ("thread", "t_ns", "waited_ns")
    for thread, until, waited_ns in zip(
        *(meanwhile.narrow(name)[:MAX_SHOWN].tolist() for name in names), strict=True
    ):
        start, stop = max(until - waited_ns, origin), min(until, end)
        if start < stop:
            yield (
                thread,
                Span(
                    kind="wait",
                    task=-1,
                    node=-1,
                    index=-1,
                    name="waiting",
                    device="",
                    row=0,
                    start_ns=start - origin,
                    end_ns=stop - origin,
                    waited_ns=None,
                    status="completed",
                ),
            )


def _lane(trace: Trace, thread: int, spans: list[Span]) -> Lane:
    spans = _nested(spans)
    nodes = [(one.start_ns, one.end_ns) for one in spans if one.kind == "node"]
    known = trace.threads.get(thread)
    return Lane(
        thread=thread,
        name=known.name if known else f"thread {thread}",
        num_rows=1 + max(one.row for one in spans),
        num_nodes=len(nodes),
        busy_ns=busy_ns(nodes),
        spans=tuple(spans),
    )


def _stream_lane(stream: str, spans: list[Span]) -> Lane:
    spans = _nested(spans)
    return Lane(
        thread=-1,
        name=stream,
        num_rows=1 + max(one.row for one in spans),
        num_nodes=0,
        busy_ns=busy_ns((one.start_ns, one.end_ns) for one in spans),
        spans=tuple(spans),
        num_kernels=len(spans),
    )


def _nested(spans: list[Span]) -> list[Span]:
    """The spans in order of start, each one row below those it lies in."""
    spans = sorted(spans, key=lambda one: (one.start_ns, -one.end_ns))
    placed = []
    open_until: list[int] = []
    for span in spans:
        while open_until and open_until[-1] <= span.start_ns:
            open_until.pop()
        row = len(open_until)
        if row < MAX_ROWS:
            placed.append(msgspec.structs.replace(span, row=row) if row else span)
        open_until.append(span.end_ns)
    return placed


def _shifted(one: Pass, origin: int) -> Pass:
    end_ns = None if one.end_ns is None else one.end_ns - origin
    return msgspec.structs.replace(one, begin_ns=one.begin_ns - origin, end_ns=end_ns)
