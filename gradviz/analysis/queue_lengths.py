"""How many tasks lay in each ready queue over time, and whose queue it is."""

import msgspec
import numpy as np

from gradviz.analysis.curve import Points, thinned
from gradviz.analysis.executions import MAX_TEXT
from gradviz.analysis.spans import ended_with_their_pass, spans, times
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column


class QueueLength(msgspec.Struct, frozen=True, kw_only=True):
    """One ready queue.

    Attributes:
        queue: Its id.
        name: Such as ``device 0``.
        thread: Who took most tasks from it, -1 if nobody did.
        longest: The most tasks that lay in it at once.
        lengths: When it got another length, and which; see `thinned`. The last one is
            what it had at the end.
    """

    queue: int
    name: str
    thread: int
    longest: int
    lengths: Points


def queue_lengths(
    trace: Trace, begin_ns: int, end_ns: int, limit: int
) -> tuple[QueueLength, ...]:
    """The queues in which anything lay from one time to another; at most `limit`.

    Tasks of all passes count. What nobody took is there until its pass has ended.
    """
    columns = trace.columns
    popped = columns["task_popped"]
    queued = ended_with_their_pass(
        trace, spans(columns["task_pushed"], popped, ("task", "node", "queue"))
    )
    begun_ns = queued.rows["t_ns"]
    t_ns = times(trace)
    later = np.iinfo(np.int64).max
    ended_ns = np.append(t_ns, later)[np.minimum(queued.end, len(t_ns))]
    is_meant = (begun_ns < end_ns) & (ended_ns > begin_ns) & (ended_ns > begun_ns)
    begun_ns, ended_ns = begun_ns[is_meant], ended_ns[is_meant]
    queue = queued.rows["queue"][is_meant]
    found = []
    for number in np.unique(queue)[:limit].tolist():
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
    """When a queue got which length, the length at the begin first."""
    came, left = np.maximum(begun_ns, begin_ns), ended_ns[ended_ns < end_ns]
    moments = np.concatenate((came, left))
    steps = np.repeat([1, -1], [len(came), len(left)])
    order = np.argsort(moments, kind="stable")
    moments, lengths = moments[order], np.cumsum(steps[order])
    # Of what happens at one time the outcome.
    is_last = np.append(moments[1:] != moments[:-1], True)
    return moments[is_last], lengths[is_last]
