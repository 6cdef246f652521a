"""Queue traffic: the length of each ready queue, and pushes from thread to thread."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import NEVER, Points, spans, thinned, times
from gradviz.analysis.tables.worker_parts import whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different
from gradviz.trace.probe import Push


class QueueLength(msgspec.Struct, frozen=True, kw_only=True):
    """One ready queue.

    Attributes:
        queue: Its id.
        name: Such as ``device 0``.
        thread: Thread that took most tasks from it, -1 if nobody did.
        longest: The most tasks that lay in it at once.
        lengths: Times at which its length changed, and the new lengths; see `thinned`.
            The last one is its length at the end.
    """

    queue: int
    name: str
    thread: int
    longest: int
    lengths: Points


def queue_lengths(
    trace: Trace, begin_ns: int, end_ns: int, limit: int
) -> tuple[QueueLength, ...]:
    """Return the queues with tasks within a period; at most `limit`.

    Tasks of all passes count. What nobody took is there until its pass has ended.
    """
    popped = trace.columns["task_popped"]
    waits = queue_waits(trace)
    begun_ns = waits.pushes["t_ns"]
    t_ns = times(trace)
    later = np.iinfo(np.int64).max
    ended_ns = np.append(t_ns, later)[np.minimum(waits.ended, len(t_ns))]
    is_meant = (begun_ns < end_ns) & (ended_ns > begin_ns) & (ended_ns > begun_ns)
    begun_ns, ended_ns = begun_ns[is_meant], ended_ns[is_meant]
    queue = waits.pushes["queue"][is_meant]
    found = []
    for number in different(queue)[:limit].tolist():
        mine = queue == number
        when, lengths = _changes(begun_ns[mine], ended_ns[mine], begin_ns, end_ns)
        taken = popped.narrow("thread")[popped.narrow("queue") == number]
        threads, often = np.unique(taken, return_counts=True)
        known = trace.queues.get(number)
        found.append(
            QueueLength(
                queue=number,
                name="?" if known is None else shortened(known.name, MAX_TEXT),
                thread=int(threads[often.argmax()]) if len(threads) else -1,
                longest=int(lengths.max(initial=0)),
                lengths=(
                    *thinned(when[:-1] - begin_ns, lengths[:-1]),
                    (int(when[-1]) - begin_ns, int(lengths[-1])),
                ),
            )
        )
    return tuple(found)


def _changes(
    begun_ns: Column, ended_ns: Column, begin_ns: int, end_ns: int
) -> tuple[Column, Column]:
    """Return the times of a queue's changes and its lengths, the first at the start."""
    came, left = np.maximum(begun_ns, begin_ns), ended_ns[ended_ns < end_ns]
    moments = np.concatenate((came, left))
    steps = np.repeat([1, -1], [len(came), len(left)])
    order = np.argsort(moments, kind="stable")
    moments, lengths = moments[order], np.cumsum(steps[order])
    # Of what happens at one time the outcome.
    is_last = np.append(moments[1:] != moments[:-1], True)
    return moments[is_last], lengths[is_last]


class PushAcross(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node that ran on another thread than that which pushed it.

    Attributes:
        task: The pass.
        node: The node.
        pushed_by: The node that was running when it was pushed, -1 for none.
        from_thread: Thread that pushed it.
        pushed_ns: Time of the push.
        to_thread: Thread that ran it.
        start_ns: Time of its start.
    """

    task: int
    node: int
    pushed_by: int
    from_thread: int
    pushed_ns: int
    to_thread: int
    start_ns: int


class Pushes(NamedTuple):
    """Reported pushes in order of time, and the number of all."""

    told: tuple[PushAcross, ...]
    num_all: int


def pushes_across(trace: Trace, tasks: Sequence[int], limit: int) -> Pushes:
    """The nodes of passes that went from thread to thread; of very many the first."""
    wanted = np.array(tasks, np.int64)
    pushed, started = (
        table.having("task", wanted)
        for table in (trace.columns["task_pushed"], trace.columns["node_started"])
    )
    pushed = pushed.at(pushed.narrow("what") == Push.NODE)
    ran = spans(pushed, started, ("task", "node"))
    known = np.flatnonzero(ran.end != NEVER)
    start = np.searchsorted(started["seq"], ran.end[known])
    is_across = pushed["thread"][known] != started["thread"][start]
    known, start = known[is_across][:limit], start[is_across][:limit]
    rows = pushed.at(known).rows("task", "node", "pushed_by", "thread", "t_ns")
    told = tuple(
        PushAcross(
            task=whole_of(trace, task),
            node=node,
            pushed_by=by,
            from_thread=thread,
            pushed_ns=t_ns,
            to_thread=to_thread,
            start_ns=start_ns,
        )
        for (task, node, by, thread, t_ns), to_thread, start_ns in zip(
            rows,
            started["thread"][start].tolist(),
            started["t_ns"][start].tolist(),
            strict=True,
        )
    )
    return Pushes(told, int(np.count_nonzero(is_across)))
