"""The reason why a task was the next to leave its ready queue, and the others there."""

import msgspec
import numpy as np

from gradviz.analysis.moments.engine_state import History, tasks_of
from gradviz.analysis.moments.moment import Moment, QueuedTask
from gradviz.analysis.moments.precedence import Precedence, Rank, precedence
from gradviz.trace.events import TaskPopped


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was popped, and the one that would have been without it.

    Attributes:
        popped: Task that was popped.
        other: Task that would have been popped of what else lay in the queue, if it was
            seen; None if nothing else did.
        why: Reason that the first went before the second. None if nothing else lay
            there, or if the second goes first in PyTorch's order: then another thread
            pushed it too late to be seen, or the pass ran under another schedule.
        num_others: Number of other tasks that lay in the queue.
    """

    popped: QueuedTask
    other: QueuedTask | None
    why: Precedence | None
    num_others: int


def choice_of(history: History, event: TaskPopped, after: Moment) -> Choice | None:
    """Return the reason for a pop; None if the trace does not have its push.

    Args:
        history: The engine's history.
        event: The pop.
        after: The moment right after it, with at least one task of each queue.
    """
    popped = np.flatnonzero(history.waits.popped == event.seq)
    if not len(popped):
        return None
    one = tasks_of(history.queued, popped)[0]
    others = after.queues.get(event.queue)
    if others is None and event.queue in after.num_queued:  # it is not told there
        others = history.queue_at(event.seq, event.queue)
    other = next(iter(others or ()), None)
    return Choice(
        popped=one,
        other=other,
        why=None if other is None else precedence(_rank(one), _rank(other)),
        num_others=after.num_queued.get(event.queue, 0),
    )


def _rank(task: QueuedTask) -> Rank:
    return Rank(task.what, task.reentrant_depth, task.sequence_nr)
