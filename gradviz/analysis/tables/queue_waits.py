"""Queue waits: each push of a task into a ready queue, joined to its pop.

Queues, causes, the state at a moment, exports and the page all read this one table.
"""

import weakref
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.spans import NEVER, Spans, ended_with_their_pass, spans
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Narrow, Table, narrow

#: The table of each trace that somebody holds.
_found: Final[weakref.WeakKeyDictionary[Trace, "QueueWaits"]] = (
    weakref.WeakKeyDictionary()
)


class QueueWaits(NamedTuple):
    """Tasks that waited in ready queues, in the order of their pushes, as columns.

    A task that was never popped waited until its pass ended, which purged it: `ended`
    is then the event after the last one of the pass. Where the trace lacks the end of
    the pass too, the task was still waiting, or the trace is cut: `ended` is `NEVER`.

    Attributes:
        pushes: The `TaskPushed` event of each wait, with its queue, task and node
            (-1 for a wake-up), the thread that pushed and the priority.
        popped: The `seq` of the pop; `NEVER` for none.
        ended: The `seq` with which the wait ended; `NEVER` for none.
        waited_ns: The time from the push to the pop; -1 for none.
        popped_by: The thread that popped the task; -1 for none.
    """

    pushes: Table
    popped: Column
    ended: Column
    waited_ns: Narrow
    popped_by: Narrow

    @property
    def pushed(self) -> Column:
        """The `seq` of each push."""
        return self.pushes["seq"]

    @property
    def spans(self) -> Spans:
        """Queue wait of each task, purged tasks included."""
        return Spans(self.pushes, self.pushed, self.ended)

    def at(self, places: "slice | Column") -> "QueueWaits":
        """Return some of the waits."""
        return QueueWaits(self.pushes.at(places), *(one[places] for one in self[1:]))

    def of_passes(self, tasks: Sequence[int] | Column) -> "QueueWaits":
        """Return the waits of the tasks of some passes."""
        pushes = self.pushes.having("task", tasks)
        places = np.searchsorted(self.pushes.narrow("seq"), pushes.narrow("seq"))
        return QueueWaits(pushes, *(one[places] for one in self[1:]))

    def until(self, trace: Trace, seq: int) -> "QueueWaits":
        """Return the waits as they were known right after an event of the trace."""
        begun = self.at(slice(np.searchsorted(self.pushed, seq, "right")))
        is_popped = begun.popped <= seq
        popped = np.where(is_popped, begun.popped, NEVER)
        waits = Spans(begun.pushes, begun.pushed, popped)
        return QueueWaits(
            pushes=begun.pushes,
            popped=popped,
            ended=ended_with_their_pass(trace, waits).end,
            waited_ns=np.where(is_popped, begun.waited_ns, -1),
            popped_by=np.where(is_popped, begun.popped_by, -1),
        )


def queue_waits(trace: Trace) -> QueueWaits:
    """Return all queue waits of a trace; they are joined once for each trace."""
    known = _found.get(trace)
    if known is None:
        known = _found[trace] = _join(trace)
    return known


def _join(trace: Trace) -> QueueWaits:
    pops = trace.columns["task_popped"]
    waits = spans(trace.columns["task_pushed"], pops, ("task", "node", "queue"))
    row = np.searchsorted(pops["seq"], waits.end)
    was_popped = waits.end != NEVER
    row[~was_popped] = -1  # stands for the last, which is added below
    popped_ns = np.append(pops["t_ns"], 0)[row]
    return QueueWaits(
        pushes=waits.rows,
        popped=waits.end,
        ended=ended_with_their_pass(trace, waits).end,
        waited_ns=narrow(np.where(was_popped, popped_ns - waits.rows["t_ns"], -1)),
        popped_by=narrow(np.append(pops["thread"], -1)[row]),
    )
