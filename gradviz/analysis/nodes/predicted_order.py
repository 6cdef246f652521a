"""Predicted order of a recorded pass, and its differences from the actual one.

Predicted is PyTorch's order on one thread, from the graph alone. Each queue is compared
by itself: timing decides in which order two queues take turns, and nothing predicts
that. Everything after the first difference of a queue is mostly its consequence, so
only the first one of each queue is reported.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import (
    MAX_TEXT,
    NodeNumbers,
    definition,
    execution_columns,
)
from gradviz.analysis.tables.passes import pass_parts, passes
from gradviz.ready_order import Prioritized, PyTorchSchedule, ReadyTask, in_order
from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.model import NodeDefinition, Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, Narrow, Table
from gradviz.trace.probe import Push

SCHEMA: Final = "gradviz.predicted_order"
VERSION: Final = 1

#: Of so many nodes, in all passes together, and of so many passes it is predicted.
MAX_PREDICTED: Final = 50_000
MAX_PASSES_PREDICTED: Final = 1_000

#: Reason why a node comes where it does: nothing else is ready; a leaf, which comes
#: before all other nodes; the forward made it last of those ready.
TurnReason: TypeAlias = Literal["alone", "leaf", "made last"]

#: Reason why a queue left the predicted order. *late*: the predicted task became ready
#: after the other one had left the queue. *early*: the other one was ready before its
#: turn: another queue was faster. *crossed*: another thread pushed it, and may have
#: done so while the queue's own was taking the next one. *shared*: they are equal, and
#: tasks of another pass in the queue moved the heap. *tied*: they are equal, and tasks
#: pushed by other threads moved the heap. *policy*: both were there, and an order that
#: is not PyTorch's chose. *failed*, *unfinished*: the pass, or the trace, ended before.
#: *not run*: it never ran, though its pass completed. *not foreseen*: the node that ran
#: is not in the graph, as far as the trace has it. *unknown*: the trace lacks the push
#: or the pop that would tell.
Why: TypeAlias = Literal[
    "late",
    "early",
    "crossed",
    "shared",
    "tied",
    "policy",
    "failed",
    "unfinished",
    "not run",
    "not foreseen",
    "unknown",
]


class PredictedRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node, in the order in which it should run.

    Attributes:
        index: Its place in that order, from 0.
        node: Its id.
        name: Its class.
        device: Device on which it runs.
        queue: Its ready queue, -1 if it was never pushed.
        reason: Reason for its place in that order.
        num_ready: Number of nodes that were ready, itself included.
        ran: Its place in the order in which the pass ran, on all workers; None if it
            did not.
    """

    index: int
    node: int
    name: str
    device: str
    queue: int
    reason: TurnReason
    num_ready: int
    ran: int | None


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """First departure of a queue from the predicted order.

    Attributes:
        queue: Its id.
        queue_name: Its name.
        index: Index among its nodes, from 0.
        predicted: The node that should have come; -1 for none.
        predicted_name: Its class.
        actual: The node that came; -1 for none.
        actual_name: Its class.
        why: See `Why`.
        by: The node that made the late, early or crossed one ready; -1 for none.
        by_name: Its class.
        thread: The thread that did; -1 where that is not the reason.
        off_ns: Time by which the late one became ready after the pop of the other one,
            or a crossed one before it; else None.
        error: The error of the pass.
        predicted_ran: The index of `predicted` in the order in which the pass ran, on
            all workers; None if it did not run.
        actual_ran: That of `actual`.
        by_ran: That of `by`.
    """

    queue: int
    queue_name: str
    index: int
    predicted: int
    predicted_name: str
    actual: int
    actual_name: str
    why: Why
    by: int = -1
    by_name: str = ""
    thread: int = -1
    off_ns: int | None = None
    error: str = ""
    predicted_ran: int | None = None
    actual_ran: int | None = None
    by_ran: int | None = None


class PredictedOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The predicted order of one pass against its own.

    Attributes:
        task: The pass.
        worker: Worker whose part of it this is; None if it was not distributed.
        rows: Its nodes, in the predicted order.
        divergences: Of each queue that left it the first one.
        num_predicted: Number of nodes; `rows` may be fewer.
        num_queues: Number of queues that these nodes are in.
        num_ran: Number of nodes that ran.
        num_lost: Nodes whose definitions are lost: where they lead to is not known.
        is_too_large: There are too many nodes, nothing is predicted.
    """

    task: int
    worker: int | None = None
    rows: tuple[PredictedRow, ...]
    divergences: tuple[Divergence, ...]
    num_predicted: int
    num_queues: int
    num_ran: int
    num_lost: int = 0
    is_too_large: bool = False


def predicted_orders(trace: Trace, tasks: Sequence[int]) -> Iterator[PredictedOrder]:
    """The predicted order of each of some passes, as far as they are not too large.

    Of more than `MAX_PASSES_PREDICTED` the first. Workers do not wait for each other's
    queues: of a distributed pass each part has an order of its own.
    """
    first = tasks[:MAX_PASSES_PREDICTED]
    wholes = passes(trace, limit=None, tasks=first)
    began = pass_parts(trace, tasks=[part for one in wholes for part in one.parts])
    parts: dict[int, dict[int, None]] = {one.task: {} for one in wholes}
    for part in began:
        parts[part.whole][part.task] = None
    tasks = [task for own in parts.values() for task in own]
    recorded = _SortedEvents(trace, tasks)
    left = MAX_PREDICTED
    for task in tasks:
        events = _PassEvents(recorded, task)
        graph = _graph(events, left)
        if graph is None:
            yield PredictedOrder(
                task=events.about.whole,
                worker=events.about.worker,
                rows=(),
                divergences=(),
                num_predicted=0,
                num_queues=0,
                num_ran=len(events.ran),
                is_too_large=True,
            )
            continue
        left -= len(graph)
        yield _compared(trace, events, graph)


def prediction_document(order: PredictedOrder) -> dict[str, Any]:
    """Return the output of ``gradviz show order --predicted --json``."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(order)}


#: Kinds of events that are read.
_KINDS: Final = (
    "task_begun",
    "task_pushed",
    "task_popped",
    "capture_taken",
    "gradient_accumulated",
)


class _QueueEvent(NamedTuple):
    """A push of a node, or its pop."""

    seq: int
    t_ns: int
    thread: int
    queue: int


class _SortedEvents:
    """Events of some passes, sorted once for all of them."""

    def __init__(self, trace: Trace, tasks: Sequence[int]) -> None:
        self.trace = trace
        self.about = {one.task: one for one in pass_parts(trace, tasks=tasks)}
        wanted = np.array(tasks, np.int64)
        self._tables = {}
        for kind in _KINDS:
            table = trace.columns[kind]
            table = table.having("task", wanted)
            self._tables[kind] = table.at(np.argsort(table["task"], kind="stable"))
        runs = execution_columns(trace, tasks)
        order = np.argsort(runs.task, kind="stable")
        self._ran_task, self._ran = runs.task[order], runs.node[order]
        self.numbers = NodeNumbers(trace, tasks)
        self._of_thread: dict[int, Column] = {}

    def of(self, kind: str, task: int) -> Table:
        """The rows of one kind that belong to a pass."""
        table = self._tables[kind]
        return table.at(_slice_of(table.narrow("task"), task))

    def of_thread(self, thread: int) -> Column:
        """The `seq` of all events of a thread, whatever they are."""
        if thread not in self._of_thread:
            tables = self.trace.columns.values()
            own = [one["seq"][one.narrow("thread") == thread] for one in tables]
            self._of_thread[thread] = np.sort(np.concatenate(own))
        return self._of_thread[thread]

    def ran_in(self, task: int) -> list[int]:
        """The nodes of a pass, in the order in which they ran."""
        ran: list[int] = self._ran[_slice_of(self._ran_task, task)].tolist()
        return ran


def _slice_of(ordered: Narrow, number: int) -> slice:
    begin, end = (
        int(np.searchsorted(ordered, number, side)) for side in ("left", "right")
    )
    return slice(begin, end)


class _PassEvents:
    """Events of one pass."""

    def __init__(self, recorded: _SortedEvents, task: int) -> None:
        self.about = recorded.about[task]
        self._recorded = recorded
        self._trace = recorded.trace
        self._known: dict[int, NodeDefinition] = {}
        pushed = recorded.of("task_pushed", task)
        popped = recorded.of("task_popped", task)
        names = ("node", "seq", "t_ns", "thread", "queue")
        self.pushes = {node: _QueueEvent(*rest) for node, *rest in pushed.rows(*names)}
        self.pops = {node: _QueueEvent(*rest) for node, *rest in popped.rows(*names)}
        self.pushed_by = dict(
            zip(pushed["node"].tolist(), pushed["pushed_by"].tolist(), strict=True)
        )
        self.roots = pushed["node"][pushed.narrow("what") == Push.ROOT].tolist()
        self.ran = recorded.ran_in(task)
        self.places = {node: place for place, node in enumerate(self.ran)}
        self.numbers = recorded.numbers.of_pass(task)
        begun = recorded.of("task_begun", task)
        self.begin_seq = int(begun["seq"][0])
        self.targets: list[int] | None = None
        if begun["num_outputs"].any():
            self.targets = [
                node
                for kind in ("capture_taken", "gradient_accumulated")
                for node in recorded.of(kind, task)["node"].tolist()
            ]

    def definition(self, node: int) -> NodeDefinition:
        """See `definition`: made once, for all that ask."""
        if node not in self._known:
            self._known[node] = definition(self._trace, node)
        return self._known[node]

    def was_seen(self, push: _QueueEvent, pop: _QueueEvent) -> bool:
        """Return whether a push by one thread surely came before another's pop.

        It did if the pusher had gone on to something else before the popper finished
        its previous work: a push is reported before it is done, a pop afterwards.
        """
        pusher = self._recorded.of_thread(push.thread)
        popper = self._recorded.of_thread(pop.thread)
        after = int(np.searchsorted(pusher, push.seq, "right"))
        before = int(np.searchsorted(popper, pop.seq)) - 1
        has_both = after < len(pusher) and before >= 0
        return has_both and bool(pusher[after] < popper[before])

    def queue_of(self, nodes: Iterable[int]) -> dict[int, int]:
        """The queue of each node; -1 where it cannot be known.

        What was never pushed would have gone where others of its device went.
        """
        devices = {node: self.definition(node).device for node in nodes}
        of_device = {
            devices[node]: push.queue
            for node, push in self.pushes.items()
            if node in devices
        }
        return {
            node: self.pushes[node].queue
            if node in self.pushes
            else of_device.get(device, -1)
            for node, device in devices.items()
        }


def _graph(events: _PassEvents, limit: int) -> Mapping[int, list[int]] | None:
    """Return node -> receivers of its gradients, for all that run; None if too many."""
    edges: dict[int, list[int]] = {}
    waiting = list(events.roots)
    while waiting:
        node = waiting.pop()
        if node in edges:
            continue
        if len(edges) == limit:
            return None
        edges[node] = [to for to, _ in events.definition(node).edges if to >= 0]
        waiting += edges[node]
    if events.targets is None:
        return edges
    # The root always runs, even where it leads to no target.
    needed = _leading_to([*events.roots, *events.targets], edges)
    return {
        node: [to for to in receivers if to in needed]
        for node, receivers in edges.items()
        if node in needed
    }


def _leading_to(targets: Sequence[int], edges: Mapping[int, list[int]]) -> set[int]:
    """Targets, and all nodes from which one of them can be reached."""
    producers = defaultdict(list)
    for node, receivers in edges.items():
        for receiver in receivers:
            producers[receiver].append(node)
    found: set[int] = set()
    waiting = list(targets)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += producers[node]
    return found


def _compared(
    trace: Trace, events: _PassEvents, graph: Mapping[int, list[int]]
) -> PredictedOrder:
    ran = events.numbers
    rows = tuple(
        PredictedRow(
            index=index,
            node=node,
            name=(about := events.definition(node)).name,
            device=about.device,
            queue=events.pushes[node].queue if node in events.pushes else -1,
            reason=reason,
            num_ready=num_ready,
            ran=ran.get(node),
        )
        for index, (node, reason, num_ready) in enumerate(_predicted(events, graph))
    )
    found = _divergences(trace, events, [row.node for row in rows])
    return PredictedOrder(
        task=events.about.whole,
        worker=events.about.worker,
        rows=rows,
        divergences=tuple(
            msgspec.structs.replace(
                one,
                predicted_ran=ran.get(one.predicted),
                actual_ran=ran.get(one.actual),
                by_ran=ran.get(one.by),
            )
            for one in found
        ),
        num_predicted=len(rows),
        num_queues=len({row.queue for row in rows if row.queue >= 0}),
        num_ran=len(events.ran),
        num_lost=sum(node not in trace.nodes for node in graph),
    )


def _predicted(
    events: _PassEvents, graph: Mapping[int, list[int]]
) -> Iterator[tuple[int, TurnReason, int]]:
    """The nodes in the predicted order, and of each why it comes there."""
    waiting: dict[int, int] = defaultdict(int)
    for receivers in graph.values():
        for receiver in receivers:
            waiting[receiver] += 1
    for root in events.roots[:1]:
        waiting[root] = 0  # whatever a damaged trace says leads to it
        schedule = _Queues(events.queue_of(graph))
        numbers = {node: events.definition(node).sequence_nr for node in graph}
        order = in_order(
            root, waiting, graph.__getitem__, numbers.__getitem__, schedule
        )
        for node in order:
            reason: TurnReason = (
                "leaf" if numbers[node] == MAX_SEQUENCE_NR else "made last"
            )
            yield node, reason if len(schedule) else "alone", len(schedule) + 1


class _Queues:
    """A heap for each queue; of all the task runs first that would in a single one."""

    def __init__(self, queue_of: Mapping[int, int]) -> None:
        self._queue_of = queue_of
        self._queues: dict[int, PyTorchSchedule] = defaultdict(PyTorchSchedule)

    def push(self, task: Prioritized) -> None:
        assert isinstance(task, ReadyTask)
        self._queues[self._queue_of[task.what]].push(task)

    def pop(self) -> Prioritized:
        filled = [queue for queue in self._queues.values() if len(queue)]
        return max(filled, key=lambda queue: queue.peek().priority).pop()

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Prioritized]:
        return chain.from_iterable(self._queues.values())


def _divergences(
    trace: Trace, events: _PassEvents, predicted: Sequence[int]
) -> Iterator[Divergence]:
    """Of each queue where it first left its order, in the order of queues."""
    on = events.queue_of({*predicted, *events.ran})
    expected: dict[int, list[int]] = defaultdict(list)
    found: dict[int, list[int]] = defaultdict(list)
    for nodes, queues in ((predicted, expected), (events.ran, found)):
        for node in nodes:
            queues[on[node]].append(node)
    foreseen = set(predicted)
    for queue in sorted({*expected, *found}):
        both = zip_longest(expected[queue], found[queue], fillvalue=-1)
        for index, (one, other) in enumerate(both):
            if one != other:
                yield _divergence(
                    trace,
                    events,
                    queue,
                    index,
                    one,
                    other,
                    is_foreseen=other in foreseen,
                )
                break


def _divergence(
    trace: Trace,
    events: _PassEvents,
    queue: int,
    index: int,
    predicted: int,
    actual: int,
    *,
    is_foreseen: bool,
) -> Divergence:
    cause = _cause(trace, events, predicted, actual, is_foreseen=is_foreseen)
    known = trace.queues.get(queue)
    return Divergence(
        queue=queue,
        queue_name=shortened(known.name, MAX_TEXT) if known else "?",
        index=index,
        predicted=predicted,
        predicted_name=_name(events, predicted),
        actual=actual,
        actual_name=_name(events, actual),
        why=cause.why,
        by=cause.by,
        by_name=_name(events, cause.by),
        thread=cause.thread,
        off_ns=cause.off_ns,
        error=events.about.error,
    )


def _name(events: _PassEvents, node: int) -> str:
    return events.definition(node).name if node >= 0 else ""


class _Cause(NamedTuple):
    """Reason why a queue left its order; see `Divergence`."""

    why: Why
    by: int = -1
    thread: int = -1
    off_ns: int | None = None


def _cause(
    trace: Trace, events: _PassEvents, one: int, other: int, *, is_foreseen: bool
) -> _Cause:
    """Return why a queue ran `other` in place of `one`; either may be -1."""
    if one < 0 or (other >= 0 and not is_foreseen):
        return _Cause("not foreseen")
    if one not in events.places:
        status = events.about.status
        return _Cause("not run" if status == "completed" else status)
    push, pop = events.pushes.get(one), events.pops.get(other)
    if push is None or pop is None:
        return _Cause("unknown")
    by = events.pushed_by[one]
    off_ns = push.t_ns - pop.t_ns
    if push.seq > pop.seq:
        return _Cause("late", by, push.thread, off_ns)
    first, second = (events.definition(node).sequence_nr for node in (one, other))
    if first < second:
        return _Cause("early", events.pushed_by[other], events.pushes[other].thread)
    if push.thread != pop.thread and not events.was_seen(push, pop):
        return _Cause("crossed", by, push.thread, -off_ns)
    if first > second:
        return _Cause("policy")
    return _Cause(_tie(trace, events, pop))


def _tie(trace: Trace, events: _PassEvents, pop: _QueueEvent) -> Why:
    """Return why the heap had the other of two equal tasks on top."""
    begin = events.begin_seq
    popped = trace.columns["task_popped"]
    seqs = popped["seq"]
    between = (popped.narrow("queue") == pop.queue) & (seqs > begin) & (seqs < pop.seq)
    if (popped["task"][between] != events.about.task).any():
        return "shared"
    before = (one for one in events.pushes.values() if one.seq < pop.seq)
    is_helped = any(
        one.queue == pop.queue and one.thread != pop.thread for one in before
    )
    return "tied" if is_helped else "policy"
