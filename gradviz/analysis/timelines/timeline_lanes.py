"""The timeline of backward passes: a lane for each thread and each stream of a device.

Nodes that run inside of others lie in rows below them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from gradviz.analysis.tables.executions import (
    MAX_SHOWN,
    MAX_TEXT,
    Executions,
    as_list,
    execution_columns,
    places_in_order,
)
from gradviz.analysis.tables.kernels import (
    KernelRun,
    kernels,
    launchers,
    stream_order_key,
)
from gradviz.analysis.tables.messages import SentMessage, messages
from gradviz.analysis.tables.passes import (
    Pass,
    PassPart,
    pass_parts,
    passes,
    with_descendants,
)
from gradviz.analysis.tables.worker_parts import numbers_of, whole_of, wholes_of
from gradviz.analysis.timelines.idle_spans import (
    StreamWait,
    blocked_spans,
    pass_ends,
    sleeps,
    stream_waits,
)
from gradviz.analysis.timelines.queue_traffic import (
    PushAcross,
    QueueLength,
    pushes_across,
    queue_lengths,
)
from gradviz.analysis.timelines.rank_waits import RankWait, rank_waits
from gradviz.analysis.timelines.timeline_spans import (
    Period,
    Span,
    call_spans,
    collective_spans,
    hook_spans,
    kernel_span,
    node_spans,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column
from gradviz.trace.reading.worker_threads import by_owner

if TYPE_CHECKING:
    from gradviz.analysis.training.steps import TrainingStep

SCHEMA: Final = "gradviz.timeline"
VERSION: Final = 1

#: Type with a begin and perhaps an end.
_Timed = TypeVar("_Timed", Pass, PassPart)

#: A timeline has at most so many threads, and so many streams.
MAX_LANES: Final = 250

#: Spans that are nested in more than that are left out.
MAX_ROWS: Final = 50


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """Lane of one thread, or of one stream of a device.

    Attributes:
        thread: Its number in the trace, -1 for a stream.
        name: Its name.
        num_rows: Rows that its spans need.
        num_runs: Runs of nodes on it.
        busy_ns: Time in which it evaluated at least one node, or ran a kernel.
        spans: In order of start, the outer one first.
        num_kernels: Kernels it ran.
    """

    thread: int
    name: str
    num_rows: int
    num_runs: int
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
        passes: Each pass; these times too are counted from the start.
        lanes: One for each thread that evaluated a node, called for a pass or ran a
            collective, those of one worker together, then one for each stream that ran
            a kernel meanwhile.
        waits: Waits of kernels of a stream for kernels of another, of those that the
            lanes have; their times too are counted from the start.
        omitted: Nodes, hooks, collectives, sleeps and kernels that are left out,
            because there are too many of them, of lanes, or of nodes inside of others.
        omitted_lanes: Lanes that are left out.
        step: The training step that is shown as a whole, None if none is.
        program: Program that was recorded: the first word of its command line.
        lost: Parts that the trace lacks, a few words each.
        threads: The names of all threads that are named anywhere here, by number.
        pushes: Nodes that ran on another thread than that which pushed them, of those
            shown; their times too are counted from the start.
        omitted_pushes: Number of further ones, which are left out.
        queues: The ready queues in which anything lay meanwhile.
        messages: Gradients that went from worker to worker in these passes, and what
            ran for them; their times too are counted from the start.
        parts: Part of each worker in the passes, the same way.
        rank_waits: Waits of ranks for the last one in collectives of the passes, the
            same way.
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
    program: str = ""
    lost: tuple[str, ...] = ()
    threads: dict[int, str] = {}
    pushes: tuple[PushAcross, ...] = ()
    omitted_pushes: int = 0
    queues: tuple[QueueLength, ...] = ()
    messages: tuple[SentMessage, ...] = ()
    parts: tuple[PassPart, ...] = ()
    rank_waits: tuple[RankWait, ...] = ()


def build_timeline(
    trace: Trace,
    tasks: Sequence[int],
    step: "TrainingStep | None" = None,
    *,
    limit: int = MAX_SHOWN,
) -> Timeline:
    """The timeline of these passes and of all that were called from inside them.

    Of several passes it has the calls of modules and optimizers as well.

    Args:
        trace: The trace.
        tasks: The passes.
        step: Show all of this step, of which these are the passes.
        limit: So many nodes at most, so many sleeps, and so many kernels.
    """
    tasks = with_descendants(trace, tasks)
    shown_tasks = frozenset(tasks)
    chosen = passes(trace, tasks=tasks)
    parts = pass_parts(trace, tasks=[part for one in chosen for part in one.parts])
    runs = execution_columns(trace, tasks)
    omitted = max(len(runs.node) - limit, 0)
    runs = runs.at(slice(limit))
    period = _period(chosen, runs)
    if step is not None:
        period = Period(step.begin_ns, max(step.end_ns, period.end_ns))
    ran = kernels(trace, limit=limit)
    omitted += max(trace.columns["kernel_launched"].num_rows - limit, 0)
    meanwhile = [
        one.end_ns for one in ran if period.begin_ns <= one.launched_ns <= period.end_ns
    ]
    period = period._replace(end_ns=max([period.end_ns, *meanwhile]))
    ran = [
        one
        for one in ran
        if one.start_ns < period.end_ns and one.end_ns > period.begin_ns
    ]
    index = places_in_order(trace, runs)
    lanes: dict[int, list[Span]] = defaultdict(list)
    for thread, span in node_spans(trace, runs, index, period):
        lanes[thread].append(span)
    for thread, span in pass_ends(trace, parts, period):
        lanes[thread].append(span)
    if step is not None or sum(one.parent < 0 for one in chosen) > 1:
        shown_calls, omitted_calls = call_spans(trace, chosen, period)
        omitted += omitted_calls
        for thread, span in shown_calls:
            lanes[thread].append(span)
    numbers = _numbers(trace, runs, index)
    for spans_of in (hook_spans, collective_spans):
        found, num_omitted = spans_of(trace, tasks, period, limit)
        omitted += num_omitted
        for thread, span in found:
            place = numbers.get((span.task, span.node), -1)
            lanes[thread].append(replace(span, index=place))
    slept, omitted_sleeps = sleeps(trace, period, limit)
    omitted += omitted_sleeps
    for thread, span in slept:
        if thread in lanes:
            lanes[thread].append(span)
    streams, waits = _streams(trace, runs, numbers, ran, period)
    threads = by_owner(trace, lanes)[:MAX_LANES]
    shown_streams = sorted(streams, key=stream_order_key)[:MAX_LANES]
    all_lanes = (
        *(_lane(trace, thread, lanes[thread]) for thread in threads),
        *(_stream_lane(stream, streams[stream]) for stream in shown_streams),
    )
    num_shown = sum(lane.num_runs + lane.num_kernels for lane in all_lanes)
    pushes = pushes_across(trace, tasks, limit)
    origin = period.begin_ns
    return Timeline(
        tasks=numbers_of(trace, tasks),
        origin_ns=origin,
        duration_ns=period.end_ns - origin,
        passes=tuple(_shifted(one, origin) for one in chosen),
        parts=tuple(_shifted(one, origin) for one in parts),
        lanes=all_lanes,
        omitted=omitted + len(runs.node) + len(ran) - num_shown,
        omitted_lanes=len(lanes) + len(streams) - len(all_lanes),
        step=None if step is None else step.number,
        program=trace.header.argv[0] if trace.header.argv else "",
        lost=tuple(trace.losses.in_words()),
        threads={thread: _name(trace, thread) for thread in trace.threads},
        pushes=tuple(
            replace(
                one,
                pushed_ns=one.pushed_ns - origin,
                start_ns=one.start_ns - origin,
            )
            for one in pushes.told
        ),
        omitted_pushes=pushes.num_all - len(pushes.told),
        queues=queue_lengths(trace, period.begin_ns, period.end_ns, MAX_LANES),
        waits=tuple(
            replace(one, begin_ns=one.begin_ns - origin, ready_ns=one.ready_ns - origin)
            for one in waits
            if one.stream in shown_streams and one.awaited_stream in shown_streams
        ),
        messages=tuple(
            replace(
                one.after(origin),
                task=whole_of(trace, one.task),
                to_task=whole_of(trace, one.to_task),
            )
            for one in messages(trace)
            if one.task in shown_tasks
        ),
        rank_waits=tuple(one.after(origin) for one in rank_waits(trace, tasks)),
    )


def document_of(timeline: Timeline) -> dict[str, Any]:
    """Return the output of ``gradviz show timeline --json``."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        **msgspec.to_builtins(timeline, str_keys=True),
    }


def busy_ns(spans: Iterable[tuple[int, int]]) -> int:
    """Length of the union of ``(start, end)`` pairs that are sorted by start."""
    total = reached = 0
    for start, end in spans:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def nested(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans in order of start, each one row below those it lies in."""
    spans = sorted(spans, key=lambda one: (one.start_ns, -one.end_ns))
    placed = []
    open_until: list[int] = []
    for span in spans:
        while open_until and open_until[-1] <= span.start_ns:
            open_until.pop()
        row = len(open_until)
        if row < MAX_ROWS:
            placed.append(replace(span, row=row) if row else span)
        open_until.append(span.end_ns)
    return tuple(placed)


def _period(chosen: Sequence[Pass], runs: Executions) -> Period:
    """From the first to the last moment that anything of the passes is known of."""
    moments = [one.begin_ns for one in chosen]
    moments += [one.end_ns for one in chosen if one.end_ns is not None]
    if len(runs.node):
        moments += [int(runs.start_ns.min()), int(runs.end_ns.max())]
    return Period(min(moments, default=0), max(moments, default=0))


def _numbers(
    trace: Trace, runs: Executions, index: Column
) -> dict[tuple[int, int], int]:
    """Return the places of nodes in the order of their pass, by pass and node."""
    whole = wholes_of(trace, runs.task).tolist()
    pairs = zip(whole, runs.node.tolist(), strict=True)
    return dict(zip(pairs, index.tolist(), strict=True))


def _streams(
    trace: Trace,
    runs: Executions,
    numbers: Mapping[tuple[int, int], int],
    ran: Sequence[KernelRun],
    period: Period,
) -> tuple[dict[str, list[Span]], list[StreamWait]]:
    """Of each stream its kernels and when it was blocked; which waited for which."""
    streams: dict[str, list[Span]] = defaultdict(list)
    if not ran:
        return streams, []
    by = launchers(ran, as_list(trace, runs))
    for one in ran:
        run = by.get(one.kernel)
        launcher = (-1, -1) if run is None else (whole_of(trace, run.task), run.node)
        streams[one.stream].append(kernel_span(one, launcher, numbers, period))
    waits = stream_waits(trace, ran)
    for stream, span in blocked_spans(ran, waits, period):
        streams[stream].append(span)
    return streams, waits


def _lane(trace: Trace, thread: int, spans: list[Span]) -> Lane:
    placed = nested(spans)
    nodes = [(one.start_ns, one.end_ns) for one in placed if one.kind == "node"]
    return Lane(
        thread=thread,
        name=_name(trace, thread),
        num_rows=1 + max(one.row for one in placed),
        num_runs=len(nodes),
        busy_ns=busy_ns(nodes),
        spans=placed,
    )


def _stream_lane(stream: str, spans: list[Span]) -> Lane:
    placed = nested(spans)
    ran = [(one.start_ns, one.end_ns) for one in placed if one.kind == "kernel"]
    return Lane(
        thread=-1,
        name=stream,
        num_rows=1 + max(one.row for one in placed),
        num_runs=0,
        busy_ns=busy_ns(ran),
        spans=placed,
        num_kernels=len(ran),
    )


def _name(trace: Trace, thread: int) -> str:
    known = trace.threads.get(thread)
    return shortened(known.name, MAX_TEXT) if known else f"thread {thread}"


def _shifted(one: _Timed, origin: int) -> _Timed:
    end_ns = None if one.end_ns is None else one.end_ns - origin
    return replace(one, begin_ns=one.begin_ns - origin, end_ns=end_ns)
