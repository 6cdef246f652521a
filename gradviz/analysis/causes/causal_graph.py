"""Causes: the dependencies within one backward pass, as a graph of moments.

Note [Moments and what they wait for]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A *moment* is an event of the time from the start of a pass to its end, on the *lane* of
its thread; streams whose kernels a thread waited for are lanes too. A moment waits for
the one before it on its lane, and some wait for moments of other lanes as well:

* a node is popped after its push, and after each gradient that it was given;
* a wake-up is popped after its push, and a pass that was called from inside another is
  left after it has ended;
* a pass is completed after the last of its nodes on each thread;
* a kernel begins after its launch, after the kernel before it in its stream and after
  what its stream was made to wait for; a thread that waits for a stream goes on after
  the last kernel that it waits for;
* a collective begins after the node that launched it, ends after all ranks have begun
  it, and the pass that launched it is completed after that;
* a message comes after it has left, and a worker's part of a pass is completed after
  those of other workers to which it sent gradients.

The latest of these is what the moment waited for in fact. The time from there to the
moment is the moment's own: a node that ran, the engine between two nodes, a thread that
woke up. It passes after the latest of what is waited for, whichever that is. So the
longest way from the begin to any moment is as long as it took, to the nanosecond, and
what shortens a piece shortens all ways through it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.causes.kernel_causes import (
    SYNCHRONIZED,
    KernelCauses,
    kernel_causes,
)
from gradviz.analysis.causes.thread_lanes import (
    ACTS,
    Act,
    EarlierAct,
    LaneMoments,
    acts_of,
    arranged,
    begun_before,
    is_kind,
    listed,
)
from gradviz.analysis.tables.passes import Pass, Status, the_pass, with_descendants
from gradviz.analysis.tables.queue_waits import QueueWaits, queue_waits
from gradviz.analysis.tables.worker_parts import WorkerPart, worker_parts
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table, different
from gradviz.trace.probe import Role

if TYPE_CHECKING:
    from gradviz.analysis.tables.messages import SentMessage

#: Kinds of events without which it is not known what waited for what.
NEEDED: Final = (
    *("task_pushed", "task_popped", "gradient_buffered"),
    *("node_started", "node_completed"),
)

#: A pass with more events than this is not looked into.
MAX_MOMENTS: Final = 1_000_000

_ENDS: Final = ("node_completed", "node_failed", "node_skipped")

#: Events that are read besides, for what they say of threads and streams.
_LOOKED_AT: Final = ("queue_waited", "event_recorded", "stream_waited")


class Causes(NamedTuple):
    """The moments of one pass in order of time, from start to end.

    Attributes:
        task: The pass.
        tasks: Its parts, and those of passes called from inside of it.
        parts: Of those that are parts of distributed passes, which.
        sent: Messages that workers sent each other meanwhile.
        status: Its ending, at the last moment; if it is unfinished, that is the last
            event that the trace has of it.
        streams: Those that are lanes, as texts: `streams[-1 - lane]`.
        t_ns: Time of each, on the trace's clock.
        lane: The number of its thread; below 0 that of a stream.
        kind: See `is_kind`.
        of_task: Its pass, -1 for none.
        of_node: Its node, or -1.
        before: The moment before it on its lane; 0, the start, for the first of a lane.
        act: Activity of its lane until then: an `Act`.
        act_task: Pass that this activity was for, or -1.
        act_node: Node that it was for, or -1.
        cause: The moment of another lane that it waited for, where that came later
            than the one before it on its own; -1 where it did not.
        woke_ns: Time of its thread waking up to go there; 0 where it had not slept.
        source: Of each way from lane to lane the moment where it begins,
        target: and where it leads.
        by: Node that pushed what was pushed or popped, or that gave a gradient; -1 for
            others.
    """

    task: int
    tasks: tuple[int, ...]
    parts: Mapping[int, WorkerPart]
    sent: tuple["SentMessage", ...]
    status: Status
    streams: tuple[str, ...]
    t_ns: Column
    lane: Column
    kind: Column
    of_task: Column
    of_node: Column
    before: Column
    act: Column
    act_task: Column
    act_node: Column
    cause: Column
    woke_ns: Column
    source: Column
    target: Column
    by: Column

    @property
    def duration_ns(self) -> int:
        """From the first moment to the last."""
        return int(self.t_ns[-1] - self.t_ns[0])

    @property
    def took_ns(self) -> Column:
        """Time between each moment and the latest one that it waited for."""
        latest = np.where(self.cause >= 0, self.cause, self.before)
        return self.t_ns - self.t_ns[latest]

    def is_kind(self, *kinds: str) -> npt.NDArray[np.bool_]:
        """Return which moments are events of these kinds, or of kernels."""
        return is_kind(self.kind, kinds)


def find_causes(trace: Trace, task: int) -> Causes:
    """Return the moments of a pass on all workers, and of everything alongside.

    Raises:
        UserError: There are more than `MAX_MOMENTS`.
    """
    about = the_pass(trace, task)
    tasks = with_descendants(trace, [task])
    parts, waits = worker_parts(trace), queue_waits(trace)
    first, last = _extent(trace, about, tasks)
    tables = {
        kind: _between(trace.columns[kind], first, last)
        for kind in (*ACTS, *_LOOKED_AT)
    }
    exits = tables["thread_exited"]
    tables["thread_exited"] = exits.at(exits.narrow("role") == Role.CALLER)
    if not any(tables[kind].num_rows for kind in SYNCHRONIZED):
        # Nobody waits for a kernel, so none holds up a node.
        tables["kernel_launched"] = tables["kernel_launched"].at(slice(0))
    tables["kernel_ran"] = trace.columns["kernel_ran"]
    kernels = kernel_causes(tables, trace.strings)
    num_moments = sum(tables[kind].num_rows for kind in ACTS)
    if num_moments > MAX_MOMENTS:
        raise UserError(
            f"pass {task} has {num_moments:,} events, more than the {MAX_MOMENTS:,} "
            f"that are looked into: record a shorter one"
        )
    rows = arranged(tables, kernels)
    act, act_task, act_node = acts_of(rows, _begun(trace, rows, first))
    pushes = _pushes(rows, waits, first, last)
    sent = _messages(tables)
    source, target = _ways(trace, rows, kernels, pushes, sent)
    t_ns, before = rows.t_ns, rows.before
    cause = np.full(len(t_ns), -1)
    np.maximum.at(cause, target, source)
    cause[t_ns[cause] <= t_ns[before]] = -1
    woke_ns = _woken(rows, tables["queue_waited"])
    waited = cause >= 0
    act[waited] = Act.ENGINE
    by = rows.by.copy()
    by[pushes.popped] = pushes.by
    is_lost = woke_ns > 0
    is_lost[pushes.popped] = False
    act[is_lost] = Act.UNKNOWN  # it slept, and what it slept for is not there
    act[waited & rows.is_kind("message_received")] = Act.MESSAGE
    act[waited & rows.is_kind("collective_ended")] = Act.COLLECTIVE
    act[rows.is_kind("kernel_began")] = Act.STREAM
    act[rows.is_kind("kernel_ended")] = Act.KERNEL
    act[waited & rows.is_kind(*SYNCHRONIZED)] = Act.STREAM
    nobody = ~np.isin(act, (Act.RUNNING, Act.KERNEL))
    nobody[waited & rows.is_kind(*SYNCHRONIZED)] = False  # a node did
    act_task[nobody] = act_node[nobody] = -1
    return Causes(
        task=about.task,
        tasks=tasks,
        parts={one: parts[one] for one in tasks if one in parts},
        sent=sent,
        status=about.status,
        streams=tuple(trace.strings[one] for one in rows.streams),
        t_ns=t_ns,
        lane=rows.lane,
        kind=rows.kind,
        of_task=rows.task,
        of_node=rows.node,
        before=before,
        act=act,
        act_task=act_task,
        act_node=act_node,
        cause=cause,
        woke_ns=woke_ns,
        source=source,
        target=target,
        by=by,
    )


def _begun(trace: Trace, rows: LaneMoments, first: int) -> Mapping[int, EarlierAct]:
    """Return, for each thread's first moment, what it had started before the pass.

    Threads of devices are shared: one may be inside of a node of another pass.
    """
    found = {}
    moments = np.flatnonzero(rows.is_first & (rows.lane >= 0))
    for moment, lane in zip(moments.tolist(), rows.lane[moments].tolist(), strict=True):
        if moment:  # else it is the start of the pass itself
            one = begun_before(trace.columns, lane, first)
            if one is not None:
                found[moment] = one
    return found


def _messages(tables: Mapping[str, Table]) -> tuple["SentMessage", ...]:
    """Return the gradients that workers sent each other."""
    if not any(tables[one].num_rows for one in ("message_sent", "message_received")):
        return ()
    # Loaded where there are several workers.
    from gradviz.analysis.tables.messages import messages_of  # noqa: PLC0415

    return messages_of(tables)


class _Pushes(NamedTuple):
    """Pushed and popped tasks: their moments, and their pushers."""

    pushed: Column
    popped: Column
    by: Column


def _pushes(rows: LaneMoments, waits: QueueWaits, first: int, last: int) -> _Pushes:
    begin, end = np.searchsorted(waits.pushed, (first, last + 1))
    popped = waits.popped[begin:end]
    found = begin + np.flatnonzero(popped <= last)
    return _Pushes(
        rows.at(waits.pushed[found]),
        rows.at(waits.popped[found]),
        waits.pushes["pushed_by"][found],
    )


def _ways(
    trace: Trace,
    rows: LaneMoments,
    kernels: KernelCauses,
    pushes: _Pushes,
    sent: Sequence["SentMessage"],
) -> tuple[Column, Column]:
    """Of each way from lane to lane where it begins, and where it leads."""
    pairs = np.array(kernels.pairs, np.int64).reshape(-1, 2)
    waits = np.array(kernels.waits, np.int64).reshape(-1, 2)
    parts = [
        (pushes.pushed, pushes.popped),
        _given(rows),
        _last_ends(rows),
        _returns(rows),
        _transmissions(rows, sent),
        _answers(rows, sent),
        (rows.launched, rows.began),
        (rows.ended[pairs[:, 0]], rows.began[pairs[:, 1]]),
        (rows.ended[waits[:, 0]], rows.at(waits[:, 1])),
    ]
    if rows.is_kind("collective_began").any():
        # Loaded where there are several ranks.
        from gradviz.analysis.causes.rank_causes import rank_ways  # noqa: PLC0415

        parts.append(rank_ways(trace, rows))
    source = np.concatenate([one for one, _ in parts])
    target = np.concatenate([one for _, one in parts])
    # A way back in time is no cause: two clocks disagree.
    is_way = (source >= 0) & (source < target)
    is_way[is_way] = rows.lane[source[is_way]] != rows.lane[target[is_way]]
    return source[is_way], target[is_way]


def _given(rows: LaneMoments) -> tuple[Column, Column]:
    """From gradients that came to the pop of the node that they came to."""
    given = np.flatnonzero(rows.is_kind("gradient_buffered"))
    popped = np.flatnonzero(rows.is_kind("task_popped") & (rows.node >= 0))
    return given, popped[_matches(rows, given, popped)] if len(popped) else given


def _last_ends(rows: LaneMoments) -> tuple[Column, Column]:
    """From the last node of a pass on each thread to the end of the pass."""
    ends = np.flatnonzero(rows.is_kind(*_ENDS))
    ends = ends[np.lexsort((ends, rows.lane[ends], rows.task[ends]))]
    task, lane = rows.task[ends], rows.lane[ends]
    is_last = np.ones(len(ends), np.bool_)
    is_last[:-1] = (task[1:] != task[:-1]) | (lane[1:] != lane[:-1])
    ends = ends[is_last]
    done = {task: moment for moment, task in listed(rows, "task_completed")}
    target = [done.get(task, -1) for task in rows.task[ends].tolist()]
    return ends, np.array(target, np.int64)


def _returns(rows: LaneMoments) -> tuple[Column, Column]:
    """From the end of a pass to when its caller left it."""
    done = {
        task: moment
        for kind in ("task_failed", "task_completed")
        for moment, task in listed(rows, kind)
    }
    left = np.flatnonzero(rows.is_kind("reentrant_left"))
    source = [done.get(task, -1) for task in rows.task[left].tolist()]
    return np.array(source, np.int64), left


def _transmissions(
    rows: LaneMoments, sent: Iterable["SentMessage"]
) -> tuple[Column, Column]:
    """Return the departures and arrivals of messages, and the pushes they caused."""
    ends = [(one.sent_seq, one.received_seq) for one in sent]
    left, came = map(rows.at, np.array(ends, np.int64).reshape(-1, 2).T)
    pushed = {
        (node, task): moment
        for moment, node, task in listed(rows, "task_pushed", rows.node)
    }
    then = [pushed.get((one.to_node, one.to_task), -1) for one in sent]
    return np.concatenate((left, came)), np.concatenate((came, then)).astype(np.int64)


def _answers(rows: LaneMoments, sent: Iterable["SentMessage"]) -> tuple[Column, Column]:
    """Return edges from a pass's end to that of the worker that sent it gradients.

    What says so is a message, too, but of no context: a trace has none of those.
    """
    done = {task: moment for moment, task in listed(rows, "task_completed")}
    ends = [(done.get(one.to_task, -1), done.get(one.task, -1)) for one in sent]
    source, target = np.array(ends, np.int64).reshape(-1, 2).T
    return source, target


def _matches(rows: LaneMoments, some: Column, others: Column) -> Column:
    """Of each moment the place of one among others that is of the same node.

    Where there is none, any place of one that comes before it.
    """
    tasks = different(rows.task)
    nodes = different(rows.node)
    number = np.searchsorted(tasks, rows.task) * len(nodes)
    number += np.searchsorted(nodes, rows.node)
    order = np.argsort(number[others], kind="stable")
    ordered = number[others][order]
    place = np.searchsorted(ordered, number[some])
    place[place == len(ordered)] = 0
    return np.where(ordered[place] == number[some], order[place], 0)


def _woken(rows: LaneMoments, sleeps: Table) -> Column:
    """Return when the thread woke up for its next pop, 0 if it had not slept."""
    woke_ns = np.zeros(len(rows.t_ns), np.int64)
    lanes = rows.lane[rows.in_lanes]
    is_popped = rows.is_kind("task_popped")
    threads, woken = sleeps["thread"], sleeps["t_ns"]
    for thread in different(threads).tolist():
        begin, end = np.searchsorted(lanes, [thread, thread + 1])
        own = rows.in_lanes[begin:end]
        times = woken[threads == thread]
        place = np.searchsorted(rows.t_ns[own], times)
        times, place = times[place < len(own)], place[place < len(own)]
        woke_ns[own[place]] = times
    return np.where(is_popped, woke_ns, 0)


def _extent(trace: Trace, about: Pass, tasks: Sequence[int]) -> tuple[int, int]:
    """Return the `seq` of a pass's start and of its end, as far as recorded."""
    begun = trace.columns["task_begun"]
    first = int(begun.having("task", about.parts)["seq"].min())
    kinds, of = (
        (("task_failed", "task_completed"), about.parts)
        if about.end_ns is not None
        else (ACTS, tasks)
    )
    seqs = [trace.columns[kind].having("task", of)["seq"] for kind in kinds]
    return first, max(int(one.max(initial=first)) for one in seqs)


def _between(table: Table, first: int, last: int) -> Table:
    """The rows from one `seq` to another."""
    seq = table.narrow("seq")
    begin, end = np.searchsorted(seq, [first, last + 1])
    return table.at(slice(int(begin), int(end)))
