"""An explanation of when a node ran: its waits, the nodes before it and after it.

Or why it did not. Nothing here is guessed: every part is an event, or a comparison of
two; what the trace does not have is None.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.moments.precedence import PRECEDENCES, Precedence
from gradviz.analysis.moments.queue_delays import Overtakings, queue_delays
from gradviz.analysis.nodes.processor_waits import processor_waits
from gradviz.analysis.nodes.rpc_edges import RpcEdge, RpcEdges
from gradviz.analysis.tables.executions import (
    Execution,
    NodeNumbers,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.gradient_norms import gradient_norms
from gradviz.analysis.tables.hook_calls import HookCall, hook_calls
from gradviz.analysis.tables.passes import PassPart, pass_parts, the_pass
from gradviz.analysis.tables.queue_waits import QueueWaits, queue_waits
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.analysis.training.not_finite import NotFiniteValue, not_finite_values
from gradviz.analysis.training.pass_shapes import Usual, medians_like
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.table import Column, Table, different
from gradviz.trace.probe import Push

SCHEMA: Final = "gradviz.explanation"
VERSION: Final = 1

_NEVER_DONE: Final = Usual(0, 0, -1)

#: Maximum length of each list; all entries are counted.
MAX_TOLD: Final = 10

#: Reason why a node did not run.
Absence: TypeAlias = Literal["failed before", "skipped", "unfinished", "not reached"]


class Mention(msgspec.Struct, frozen=True, gc=False):
    """A node that has to do with the one explained, and its `index` in that pass."""

    node: int
    name: str
    index: int = -1


class OfLine(msgspec.Struct, frozen=True, gc=False):
    """The place of a node among those of its name that one line made for a pass.

    A line in a loop makes one for each iteration.

    Attributes:
        number: From 1, in the order in which the forward made them.
        count: Number of them that ran.
    """

    number: int
    count: int


class Thread(msgspec.Struct, frozen=True, gc=False):
    """A thread: its number in the trace, and its name."""

    number: int
    name: str


class GivenGradient(msgspec.Struct, frozen=True, gc=False):
    """A gradient that arrived: its sender, and the time since the pass's start."""

    producer: Mention
    after_ns: int
    remaining: int


class Ahead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task that left the queue while the node waited in it.

    Attributes:
        node: Its node, -1 for a wake-up.
        name: The node's.
        task: Its pass.
        why: Reason that it went before the node; None if the order is not PyTorch's.
        sequence_nr: Of its node; -1 is the largest.
        index: Its place in the execution order of its pass; -1 if it did not run.
    """

    node: int
    name: str
    task: int
    why: Precedence | None
    sequence_nr: int
    index: int


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One node in one pass. All times are counted from the start of the pass.

    Attributes:
        task: The pass.
        node: The node.
        index: Its place in the execution order of the pass; -1 if it did not run.
        name: Its class.
        device: Device that it runs on.
        location: The line that made it, empty if not known.
        of_line: Its place among the nodes that this line made; None if the line or the
            pass has no other.
        called_at: The line that called the pass, empty if not known.
        module: The part of a model that made it, empty outside a model.
        parameters: Names of the leaf of an AccumulateGrad.
        sequence_nr: The later it was made, the earlier it runs; -1 is the largest.
        status: Outcome of its run; None if it did not run.
        error: Error that it raised, or its pass if it did not run for that.
        absence: Reason that it did not run; None if it did.
        arrivals: The gradients that it was given, the last ones; `num_arrivals` all.
        is_root: True if the pass began with it.
        queue: The name of its ready queue, None if it was never pushed.
        pushed_ns: Time at which it came there; None if it did not.
        popped_ns: Time at which it left the queue.
        pushed_by: The node that made it ready; None for the caller, or if unknown.
        pushed_on: The thread that pushed it; None if it was never pushed.
        popped_on: The thread that popped it; None if it never left.
        thread: Thread that ran it, -1 for nobody.
        thread_name: That thread's name.
        busy_ns: Time that this thread ran other nodes while it lay in the queue, but
            for the one that pushed it there and was about to end.
        slept_ns: Time that this thread slept on the empty queue before it noticed.
        ahead: Tasks that left the queue meanwhile, the first ones; `num_ahead` all.
        started_ns: Time of its start.
        ended_ns: Time of its end.
        thread_time_ns: Time between these that its thread was running; None if unknown.
        processor_wait_ns: Time that the thread was not running, and nothing known says
            why; see `gradviz.analysis.nodes.processor_waits`.
        num_alike: Number of passes of the shape of this one, which counts too, in which
            the node completed.
        usual_ns: Median time that it took there; None if it never completed.
        usual_thread_time_ns: Median time that its thread was running meanwhile;
            None if unknown.
        calls: The passes that it called while it ran, the first ones; `num_calls` all.
        num_calls: Number of these passes.
        calls_ns: Time that they took together.
        hooks: The hooks that were called for it, the first ones in the order in which
            they ran; `num_hooks` all.
        stream_waits: Nodes for whose work its stream was made to wait.
        let_start: Nodes to which it gave the last gradient; `num_let_start` all.
        crossing: Edge from the worker that its gradient came from, or to the one that
            it sent one to; None of all but send and receive functions.
        not_finite: Values that are not finite of the op that made it, or of its
            gradients.
        gradient_norm: Of an AccumulateGrad the norm of its leaf's ``.grad`` after the
            pass, as `repr` writes a float; None if it was not measured.
    """

    task: int
    node: int
    index: int
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
    crossing: RpcEdge | None = None
    hooks: tuple[HookCall, ...] = ()
    num_hooks: int = 0
    of_line: OfLine | None = None
    pushed_by: Mention | None = None
    pushed_on: Thread | None = None
    popped_on: Thread | None = None
    not_finite: tuple[NotFiniteValue, ...] = ()
    gradient_norm: str | None = None


def explain(trace: Trace, task: int, node: int) -> Explanation:
    """Explain why a node of a pass ran when it did, or did not run.

    Args:
        trace: The trace.
        task: The pass; of a distributed one the part that the node is of.
        node: The node.
    """
    columns = trace.columns
    # A damaged trace may have several of a number.
    whole, part = the_pass(trace, task), pass_parts(trace, tasks=[task])[0]
    origin = whole.begin_ns
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
    numbers = NodeNumbers(trace)
    mentioned = partial(_mention, trace, numbers.of_pass(task))
    calls = [] if run is None else _calls(pass_parts(trace), run)
    about = definition(trace, node)
    known = None if queue is None else trace.queues.get(queue)
    by = _first(pushed, "pushed_by")
    thread = -1 if run is None else run.thread
    hooks = hook_calls(trace, [task], node)
    every_wait = queue_waits(trace)
    place = np.searchsorted(every_wait.pushed, pushed["seq"][:1])
    delays = queue_delays(trace, execution_columns(trace), every_wait, place)
    return Explanation(
        task=whole.task,
        node=node,
        index=numbers.of_pass(task).get(node, -1),
        name=about.name,
        device=about.device,
        location=about.location,
        of_line=_of_line(trace, every.node, about),
        called_at=whole.location,
        module=about.module,
        parameters=about.parameters,
        sequence_nr=about.sequence_nr,
        status=None if run is None else run.status,
        error=part.error if run is None else run.error,
        absence=_absence(trace, task, node, part.status) if run is None else None,
        is_root=_first(pushed, "what") == Push.ROOT,
        arrivals=tuple(
            GivenGradient(mentioned(producer), t_ns - origin, remaining)
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
        busy_ns=int(delays.busy_ns.sum()),
        slept_ns=int(delays.slept_ns.sum()),
        ahead=tuple(_ahead(trace, numbers, every_wait, delays.overtakings)),
        num_ahead=int(delays.num_ahead.sum()),
        started_ns=_since(origin, None if run is None else run.start_ns),
        ended_ns=_since(origin, None if run is None else run.end_ns),
        thread_time_ns=None if run is None else run.thread_time_ns,
        processor_wait_ns=int(processor_waits(trace, mine).sum()),
        num_alike=usual.passes,
        usual_ns=usual.took_ns if usual.passes else None,
        usual_thread_time_ns=usual.thread_time_ns
        if usual.thread_time_ns >= 0
        else None,
        calls=tuple(one.whole for one in calls[:MAX_TOLD]),
        num_calls=len(calls),
        calls_ns=sum(the_pass(trace, one.whole).duration_ns or 0 for one in calls),
        stream_waits=tuple(
            mentioned(one) for one in waits["producer"].tolist() if one >= 0
        )[:MAX_TOLD],
        let_start=tuple(map(mentioned, handed["node"][:MAX_TOLD].tolist())),
        num_let_start=handed.num_rows,
        crossing=_crossing(trace, task, node, origin, every.node, numbers),
        hooks=tuple(
            msgspec.structs.replace(one, began_ns=one.began_ns - origin)
            for one in hooks[:MAX_TOLD]
        ),
        num_hooks=len(hooks),
        pushed_by=None if by is None or by < 0 else mentioned(by),
        pushed_on=_thread(trace, _first(pushed, "thread")),
        popped_on=_thread(trace, _first(popped, "thread")),
        not_finite=not_finite_values(trace, MAX_TOLD, node),
        gradient_norm=gradient_norms(trace, [task]).get(node),
    )


def document_of(explanation: Explanation) -> dict[str, Any]:
    """Return the output of ``gradviz explain --json``."""
    document = msgspec.to_builtins(explanation)
    return {"schema": SCHEMA, "version": VERSION, **document}


def _of_line(trace: Trace, ran: Column, about: NodeDefinition) -> OfLine | None:
    """Return the place of a node among those like it that ran in its pass.

    No iteration makes a leaf, so it has none.
    """
    if not about.location or about.sequence_nr == MAX_SEQUENCE_NR:
        return None
    alike = [
        (other.sequence_nr, other.id)
        for other in (definition(trace, node) for node in different(ran).tolist())
        if (other.name, other.location) == (about.name, about.location)
    ]
    mine = about.sequence_nr, about.id
    if len(alike) < 2 or mine not in alike:
        return None
    return OfLine(sorted(alike).index(mine) + 1, len(alike))


def _absence(trace: Trace, task: int, node: int, status: str) -> Absence:
    if _of(trace.columns["node_skipped"], task=task, node=node).num_rows:
        return "skipped"
    if status == "unfinished":
        return "unfinished"
    return "failed before" if status == "failed" else "not reached"


def _crossing(
    trace: Trace, task: int, node: int, origin: int, ran: Column, numbers: NodeNumbers
) -> RpcEdge | None:
    """Messages between a node and other workers, with the number of the other end."""
    found = RpcEdges(trace, np.append(ran, node)).of(task, node, origin)
    if found is None:
        return None
    index = numbers.of_pass(task).get(found.node, -1)
    return msgspec.structs.replace(found, index=index)


def _ahead(
    trace: Trace, numbers: NodeNumbers, waits: QueueWaits, overtakings: Overtakings
) -> Iterator[Ahead]:
    """Return the tasks that left the queue of a task while it waited, in this order."""
    names = ("task", "node", "sequence_nr")
    tasks = waits.pushes.at(overtakings.ahead).rows(*names)
    for (task, node, number), why in zip(tasks, overtakings.why.tolist(), strict=True):
        yield Ahead(
            node=node,
            name=definition(trace, node).name if node >= 0 else "wake-up",
            task=whole_of(trace, task),
            why=None if why < 0 else PRECEDENCES[why],
            sequence_nr=number,
            index=numbers.of_pass(task).get(node, -1),
        )


def _calls(every: Sequence[PassPart], run: Execution) -> list[PassPart]:
    """The passes that a node called while it ran."""
    end_ns = run.start_ns if run.end_ns is None else run.end_ns
    return [
        one
        for one in every
        if one.parent == run.task and one.thread == run.thread
        if run.start_ns <= one.begin_ns <= end_ns
    ]


def _thread(trace: Trace, number: int | None) -> Thread | None:
    if number is None:
        return None
    known = trace.threads.get(number)
    return Thread(number, "" if known is None else known.name)


def _mention(trace: Trace, in_order: Mapping[int, int], node: int) -> Mention:
    if node < 0:
        return Mention(node, "the caller")
    return Mention(node, definition(trace, node).name, in_order.get(node, -1))


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
