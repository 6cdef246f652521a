"""The timeline of backward passes: one lane a thread, nested rows where they nest."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gradviz.analysis.executions import Execution, definition, executions
from gradviz.analysis.passes import Pass, Status, passes, with_descendants
from gradviz.trace.model import Trace

SCHEMA: Final = "gradviz.timeline"
VERSION: Final = 1

SpanKind: TypeAlias = Literal["node", "wait"]


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node being evaluated, or a thread asleep on its empty queue.

    Attributes:
        kind: Which of the two.
        task: The pass, -1 for a wait.
        node: The node, -1 for a wait.
        index: The node's place in the execution order of its pass, -1 for a wait.
        name: The node's name, or ``waiting``.
        device: The node's device, empty for a wait.
        row: How many spans of its lane it is nested in.
        start_ns: From the begin of the timeline.
        end_ns: From the begin of the timeline; that of the timeline where the trace
            does not say.
        waited_ns: How long the node was queued, None if unknown.
        status: How the node ended.
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
    status: Status


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """What one thread did.

    Attributes:
        thread: Its number in the trace.
        name: Its name.
        num_rows: Rows that its spans need.
        num_nodes: Nodes it evaluated.
        busy_ns: Time in which it evaluated at least one node.
        spans: In order of start, the outer one first.
    """

    thread: int
    name: str
    num_rows: int
    num_nodes: int
    busy_ns: int
    spans: tuple[Span, ...]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Backward passes over time.

    Attributes:
        tasks: The passes, those called from inside the others included.
        origin_ns: Its begin on the clock of the trace's events; all other times are
            counted from here.
        duration_ns: Its length.
        passes: Each pass; these times too are counted from the begin.
        lanes: One for each thread that evaluated a node, by number.
    """

    tasks: tuple[int, ...]
    origin_ns: int
    duration_ns: int
    passes: tuple[Pass, ...]
    lanes: tuple[Lane, ...]


def build_timeline(trace: Trace, tasks: Sequence[int]) -> Timeline:
    """The timeline of these passes and of all that were called from inside them."""
    tasks = with_descendants(trace, tasks)
    wanted = set(tasks)
    chosen = [one for one in passes(trace) if one.task in wanted]
    runs = executions(trace, tasks)
    origin, end = _extent(chosen, runs)
    lanes: dict[int, list[Span]] = defaultdict(list)
    next_index: dict[int, int] = defaultdict(int)
    for run in runs:
        lanes[run.thread].append(
            _node_span(trace, run, next_index[run.task], origin, end)
        )
        next_index[run.task] += 1
    for thread, wait in _waits(trace, origin, end):
        if thread in lanes:
            lanes[thread].append(wait)
    return Timeline(
        tasks=tasks,
        origin_ns=origin,
        duration_ns=end - origin,
        passes=tuple(_shifted(one, origin) for one in chosen),
        lanes=tuple(_lane(trace, thread, lanes[thread]) for thread in sorted(lanes)),
    )


def timeline_document(trace: Trace, tasks: Sequence[int]) -> dict[str, Any]:
    """The timeline as what ``gradviz show timeline --json`` prints."""
    timeline = msgspec.to_builtins(build_timeline(trace, tasks))
    return {"schema": SCHEMA, "version": VERSION, **timeline}


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
    status: Status = "unfinished"
    until = end
    if run.failed_ns is not None:
        status, until = "failed", run.failed_ns
    elif run.end_ns is not None:
        status, until = "completed", run.end_ns
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
        status=status,
    )


def _waits(trace: Trace, origin: int, end: int) -> Iterable[tuple[int, Span]]:
    """Each thread's sleeps within the timeline; they belong to no pass."""
    columns = trace.columns["queue_waited"]
    names = ("thread", "t_ns", "waited_ns")
    for thread, t_ns, waited_ns in zip(
        *(columns[name].tolist() for name in names), strict=True
    ):
        start, stop = max(t_ns - waited_ns, origin), min(t_ns, end)
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


def _nested(spans: list[Span]) -> list[Span]:
    """The spans in order of start, each one row below those it lies in."""
    spans = sorted(spans, key=lambda one: (one.start_ns, -one.end_ns))
    placed = []
    open_until: list[int] = []
    for span in spans:
        while open_until and open_until[-1] <= span.start_ns:
            open_until.pop()
        row = len(open_until)
        placed.append(msgspec.structs.replace(span, row=row) if row else span)
        open_until.append(span.end_ns)
    return placed


def _shifted(one: Pass, origin: int) -> Pass:
    end_ns = None if one.end_ns is None else one.end_ns - origin
    return msgspec.structs.replace(one, begin_ns=one.begin_ns - origin, end_ns=end_ns)
