"""Why a node ran when it did: what it waited for, what ran first, what it let start.

Or why it did not. Nothing here is guessed: every part is an event, or a comparison of
two; what the trace does not have is None.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.crossings import Crossing, Crossings
from gradviz.analysis.executions import (
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.passes import Pass, passes
from gradviz.analysis.precedence import Precedence, Rank, precedence
from gradviz.analysis.processor_waits import processor_waits
from gradviz.analysis.shapes import Usual, medians_like
from gradviz.trace.model import Trace
from gradviz.trace.probe import Push
from gradviz.trace.table import Table

SCHEMA: Final = "gradviz.explanation"
VERSION: Final = 1

_NEVER_DONE: Final = Usual(0, 0, -1)

#: So many of each list are told; all are counted.
MAX_TOLD: Final = 10

#: So many tasks ahead are looked at, and counted.
MAX_LOOKED_AT: Final = 1_000

#: Why a node did not run.
Absence: TypeAlias = Literal["failed before", "skipped", "unfinished", "not reached"]


class Mention(msgspec.Struct, frozen=True, gc=False):
    """A node that has to do with the one explained."""

    node: int
    name: str


class GivenGradient(msgspec.Struct, frozen=True, gc=False):
    """A gradient that came: from which node, when after the begin of the pass."""

    producer: Mention
    after_ns: int
    remaining: int


class Ahead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task that left the queue while the node lay in it.

    Attributes:
        node: Its node, -1 for a wake-up.
        name: The node's.
        task: Its pass.
        why: Why it was the first of both; None if the order is not PyTorch's.
        sequence_nr: Of its node; -1 is the largest.
    """

    node: int
    name: str
    task: int
    why: Precedence | None
    sequence_nr: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One node in one pass. All times are counted from the begin of the pass.

    Attributes:
        task: The pass.
        node: The node.
        name: Its class.
        device: Where it runs.
        location: The line that made it, empty if not known.
        called_at: The line that called the pass, empty if not known.
        module: The part of a model that made it, empty outside a model.
        parameters: What the leaf of an AccumulateGrad is called.
        sequence_nr: The later it was made, the earlier it runs; -1 is the largest.
        status: How it ended; None if it did not run.
        error: What it raised, or its pass if it did not run for that.
        absence: Why it did not run; None if it did.
        arrivals: The gradients that it was given, the last ones; `num_arrivals` all.
        is_root: Whether the pass began with it.
        queue: The name of its ready queue, None if it was never pushed.
        pushed_ns: When it came there; None if it did not.
        popped_ns: When it left it.
        thread: Who ran it, -1 for nobody.
        thread_name: That thread's name.
        busy_ns: How long that thread ran other nodes while it lay in the queue, but
            for the one that pushed it there and was about to end.
        slept_ns: How long that thread slept on the empty queue before it noticed.
        ahead: What left the queue meanwhile, the first ones; `num_ahead` all.
        started_ns: When it was started.
        ended_ns: When it was done.
        thread_time_ns: For how long of that its thread was running; None if unknown.
        processor_wait_ns: How long it was not, and nothing known says why; see
            `gradviz.analysis.processor_waits`.
        num_alike: In how many passes of the shape of this one, which counts too, the
            node completed.
        usual_ns: How long it took there, as median; None if it never completed.
        usual_thread_time_ns: For how long of that its thread was running, as median;
            None if unknown.
        calls: The passes that it called while it ran, the first ones; `num_calls` all.
        num_calls: How many there are.
        calls_ns: How long they took together.
        stream_waits: Of whose work its stream was made to wait.
        let_start: Nodes to which it gave the last gradient; `num_let_start` all.
        crossing: From which worker its gradient came, or to which it sent one; None of
            all but send and receive functions.
    """

    task: int
    node: int
    name: str
    device: str
    location: str
    called_at: str
    module: str
    parameters: tuple[str, ...]
    sequence_nr: int
    status: NodeStatus | None
    error: str
    absence: Absence | None
    is_root: bool
    arrivals: tuple[GivenGradient, ...]
    num_arrivals: int
    queue: str | None
    pushed_ns: int | None
    popped_ns: int | None
    thread: int
    thread_name: str
    busy_ns: int
    slept_ns: int
    ahead: tuple[Ahead, ...]
    num_ahead: int
    started_ns: int | None
    ended_ns: int | None
    thread_time_ns: int | None
    processor_wait_ns: int
    num_alike: int
    usual_ns: int | None
    usual_thread_time_ns: int | None
    calls: tuple[int, ...]
    num_calls: int
    calls_ns: int
    stream_waits: tuple[Mention, ...]
    let_start: tuple[Mention, ...]
    num_let_start: int
    crossing: Crossing | None = None


def explain(trace: Trace, task: int, node: int) -> Explanation:
    """Why a node of a pass ran when it did, or why it did not."""
    columns = trace.columns
    every_pass = passes(trace, limit=None)
    begun = next(one for one in every_pass if one.task == task)
    origin = begun.begin_ns
    every = execution_columns(trace, [task])
    mine = every.at(np.flatnonzero(every.node == node)[:1])
    run = next(iter(as_list(trace, mine)), None)
    usual = medians_like(trace, task).get(node, _NEVER_DONE)
    given = _of(columns["gradient_buffered"], task=task, node=node)
    pushed = _of(columns["task_pushed"], task=task, node=node)
    popped = _of(columns["task_popped"], task=task, node=node)
    handed = _of(columns["gradient_buffered"], task=task, producer=node, remaining=0)
    waits = _of(columns["stream_waited"], task=task, node=node)
    queue = _first(pushed, "queue")
    ahead = _ahead(trace, pushed, popped)
    calls = [] if run is None else _calls(every_pass, run)
    about = definition(trace, node)
    known = None if queue is None else trace.queues.get(queue)
    thread = -1 if run is None else run.thread
    return Explanation(
        task=task,
        node=node,
        name=about.name,
        device=about.device,
        location=about.location,
        called_at=begun.location,
        module=about.module,
        parameters=about.parameters,
        sequence_nr=about.sequence_nr,
        status=None if run is None else run.status,
        error=begun.error if run is None else run.error,
        absence=_absence(trace, task, node, begun.status) if run is None else None,
        is_root=_first(pushed, "what") == Push.ROOT,
        arrivals=tuple(
            GivenGradient(_mention(trace, producer), t_ns - origin, remaining)
            for producer, t_ns, remaining in given.at(slice(-MAX_TOLD, None)).rows(
                "producer", "t_ns", "remaining"
            )
        ),
        num_arrivals=given.num_rows,
        queue=None if queue is None else "?" if known is None else known.name,
        pushed_ns=_since(origin, _first(pushed, "t_ns")),
        popped_ns=_since(origin, _first(popped, "t_ns")),
        thread=thread,
        thread_name=trace.threads[thread].name if thread in trace.threads else "",
        busy_ns=_busy(trace, thread, pushed, popped),
        slept_ns=_slept(trace, thread, _first(pushed, "t_ns"), _first(popped, "t_ns")),
        ahead=ahead[:MAX_TOLD],
        num_ahead=len(ahead),
        started_ns=_since(origin, None if run is None else run.start_ns),
        ended_ns=_since(origin, None if run is None else run.end_ns),
        thread_time_ns=None if run is None else run.thread_time_ns,
        processor_wait_ns=int(processor_waits(trace, mine).sum()),
        num_alike=usual.passes,
        usual_ns=usual.took_ns if usual.passes else None,
        usual_thread_time_ns=usual.thread_time_ns
        if usual.thread_time_ns >= 0
        else None,
        calls=tuple(one.task for one in calls[:MAX_TOLD]),
        num_calls=len(calls),
        calls_ns=sum(one.duration_ns or 0 for one in calls),
        stream_waits=tuple(
            _mention(trace, one) for one in waits["producer"].tolist() if one >= 0
        )[:MAX_TOLD],
        let_start=tuple(
            _mention(trace, one) for one in handed["node"][:MAX_TOLD].tolist()
        ),
        num_let_start=handed.num_rows,
        crossing=Crossings(trace, np.append(every.node, node)).of(task, node, origin),
    )


def document_of(explanation: Explanation) -> dict[str, Any]:
    """What ``gradviz explain --json`` prints."""
    document = msgspec.to_builtins(explanation)
    return {"schema": SCHEMA, "version": VERSION, **document}


def _absence(trace: Trace, task: int, node: int, status: str) -> Absence:
    if _of(trace.columns["node_skipped"], task=task, node=node).num_rows:
        return "skipped"
    if status == "unfinished":
        return "unfinished"
    return "failed before" if status == "failed" else "not reached"


def _ahead(trace: Trace, pushed: Table, popped: Table) -> tuple[Ahead, ...]:
    """What left the queue of a task between its push and its pop, in this order."""
    if not pushed.num_rows or not popped.num_rows:
        return ()
    queue, begin = int(pushed["queue"][0]), int(pushed["seq"][0])
    every = trace.columns["task_popped"]
    seqs = every["seq"]
    between = (every["queue"] == queue) & (seqs > begin) & (seqs < popped["seq"][0])
    found = []
    for task, node in every.at(between).rows("task", "node"):
        other = _of(trace.columns["task_pushed"], task=task, node=node, queue=queue)
        found.append(
            Ahead(
                node=node,
                name=definition(trace, node).name if node >= 0 else "wake-up",
                task=task,
                why=precedence(_rank(other), _rank(pushed)) if other.num_rows else None,
                sequence_nr=int(other["sequence_nr"][0]) if other.num_rows else 0,
            )
        )
        if len(found) > MAX_LOOKED_AT:
            break
    return tuple(found)


def _rank(pushed: Table) -> Rank:
    return Rank(*next(iter(pushed.rows(*Rank._fields))))


def _calls(every: Sequence[Pass], run: Execution) -> list[Pass]:
    """The passes that a node called while it ran."""
    end_ns = run.start_ns if run.end_ns is None else run.end_ns
    return [
        one
        for one in every
        if one.parent == run.task and one.thread == run.thread
        if run.start_ns <= one.begin_ns <= end_ns
    ]


def _busy(trace: Trace, thread: int, pushed: Table, popped: Table) -> int:
    """How long a thread ran nodes between a push and a pop that were done by then."""
    begin, end = _first(pushed, "t_ns"), _first(popped, "t_ns")
    if begin is None or end is None:
        return 0
    runs = execution_columns(trace)
    mine = (runs.thread == thread) & (runs.end_ns > begin) & (runs.end_ns <= end)
    mine &= (runs.node != pushed["pushed_by"][0]) | (runs.task != pushed["task"][0])
    starts = np.maximum(runs.start_ns[mine], begin)
    ends = runs.end_ns[mine]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], ends[order]
    if not len(starts):
        return 0
    # What lies inside of another one counts once.
    reached = np.maximum.accumulate(np.concatenate(([begin], ends[:-1])))
    return int(np.maximum(ends - np.maximum(starts, reached), 0).sum())


def _slept(trace: Trace, thread: int, begin: int | None, end: int | None) -> int:
    """How long after the first of two times a thread woke that slept by then."""
    if begin is None or end is None:
        return 0
    rows = _of(trace.columns["queue_waited"], thread=thread)
    woken = rows["t_ns"]
    is_meant = (woken > begin) & (woken <= end) & (woken - rows["waited_ns"] <= begin)
    return int((woken[is_meant] - begin).max(initial=0))


def _mention(trace: Trace, node: int) -> Mention:
    return Mention(node, definition(trace, node).name if node >= 0 else "the caller")


def _of(table: Table, **numbers: int) -> Table:
    """The rows whose columns have these numbers."""
    is_meant = np.ones(table.num_rows, np.bool_)
    for name, number in numbers.items():
        is_meant &= table.narrow(name) == number
    return table.at(is_meant)


def _first(table: Table, name: str) -> int | None:
    return int(table.narrow(name)[0]) if table.num_rows else None


def _since(origin: int, t_ns: int | None) -> int | None:
    return None if t_ns is None else t_ns - origin
