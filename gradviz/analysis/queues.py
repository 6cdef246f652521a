"""What ready queues did in backward passes: lengths, sleeps, hand-overs, overtaking.

A task is *overtaken* by another one that came into its queue later and left it earlier.
It is *handed over* where another thread pops it than pushed it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.curve import thinned
from gradviz.analysis.executions import MAX_TEXT, definition
from gradviz.analysis.moment import QueuedTask
from gradviz.analysis.passes import with_descendants
from gradviz.analysis.spans import NEVER, Spans, spans, times
from gradviz.analysis.state import History
from gradviz.errors import UserError
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

SCHEMA: Final = "gradviz.queues"
CONTENTS_SCHEMA: Final = "gradviz.queue_contents"
VERSION: Final = 1

#: So many tasks that were overtaken are told, those most often overtaken first.
MAX_OVERTAKEN: Final = 20

#: So many of those that overtook one are named.
MAX_NAMED: Final = 5

#: So many queues are told.
MAX_QUEUES: Final = 250

_TASK: Final = ("task", "node", "queue")


class NoSuchMomentError(UserError):
    """The time asked for is none of the trace: wrong usage."""

    exit_code = 2


class QueueSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One ready queue.

    Attributes:
        queue: Its id.
        name: Such as ``device 0``.
        num_pushed: Tasks that came in, wake-ups included.
        num_popped: Tasks that left it.
        longest: The most tasks that lay in it at once.
        mean_length: Over the time from the first event of the passes to the last.
        asleep_ns: How long threads slept on it while it was empty.
        num_sleeps: How often.
        num_overtaken: Tasks that another one overtook.
        lengths: When it got another length, from the begin of the first pass, and
            which. Of more than `MAX_POINTS` the longest in each slice of the time.
    """

    queue: int
    name: str
    num_pushed: int
    num_popped: int
    longest: int
    mean_length: float
    asleep_ns: int
    num_sleeps: int
    num_overtaken: int
    lengths: tuple[tuple[int, int], ...]


class Handover(msgspec.Struct, frozen=True):
    """How many tasks one thread pushed that another one popped."""

    pushed_by: int
    popped_by: int
    num_tasks: int


class Overtaken(msgspec.Struct, frozen=True, kw_only=True):
    """A task that others overtook.

    Attributes:
        task: Its pass.
        node: Its node.
        name: The node's.
        queue: Where it lay.
        waited_ns: How long.
        num_by: How many tasks overtook it.
        by: Their nodes, the first `MAX_NAMED`, in the order in which they left.
    """

    task: int
    node: int
    name: str
    queue: int
    waited_ns: int
    num_by: int
    by: tuple[int, ...]


class Queues(msgspec.Struct, frozen=True, kw_only=True):
    """The ready queues of some passes.

    Attributes:
        tasks: The passes, those called from inside the others included.
        origin_ns: Their first event, on the trace's clock.
        duration_ns: From there to their last one.
        queues: Each that a task of them was pushed to, by id.
        handovers: Between which threads, the most first.
        threads: The names of these threads, by number.
        overtaken: Those most often overtaken.
        omitted: Queues that are left out, because there are too many.
    """

    tasks: tuple[int, ...]
    origin_ns: int
    duration_ns: int
    queues: tuple[QueueSummary, ...]
    handovers: tuple[Handover, ...]
    threads: dict[int, str]
    overtaken: tuple[Overtaken, ...]
    omitted: int = 0


def build_queues(trace: Trace, tasks: Sequence[int]) -> Queues:
    """What the queues did in these passes and in all called from inside them."""
    tasks = with_descendants(trace, tasks)
    wanted = np.array(tasks, np.int64)
    columns = trace.columns
    pushed, popped = (
        table.at(np.isin(table.narrow("task"), wanted))
        for table in (columns["task_pushed"], columns["task_popped"])
    )
    queued = spans(pushed, popped, _TASK)
    t_ns = times(trace)
    origin, end = _extent(trace, wanted)
    num_by = overtakings(queued)
    ids = np.unique(pushed["queue"])
    handovers = _handovers(pushed["thread"], _popped_by(trace, queued))
    return Queues(
        tasks=tasks,
        origin_ns=origin,
        duration_ns=end - origin,
        queues=tuple(
            _summary(trace, queued, t_ns, num_by, queue, origin, end)
            for queue in ids[:MAX_QUEUES].tolist()
        ),
        handovers=handovers,
        threads={
            number: shortened(trace.threads[number].name, MAX_TEXT)
            for one in handovers
            for number in (one.pushed_by, one.popped_by)
        },
        overtaken=_overtaken(trace, queued, t_ns, num_by, end),
        omitted=max(len(ids) - MAX_QUEUES, 0),
    )


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What lay in the ready queues at one moment.

    Attributes:
        t_ns: When, on the trace's clock.
        after_ns: That is so long after the first event of the passes asked for.
        queues: By id, each with its tasks in the order in which they would be popped.
        names: Of queues, by id, and of nodes, by id.
    """

    t_ns: int
    after_ns: int
    queues: dict[int, tuple[QueuedTask, ...]]
    queue_names: dict[int, str]
    node_names: dict[int, str]


def contents_at(trace: Trace, tasks: Sequence[int], after_ns: int) -> Contents:
    """What lay in all queues so long after the first of these passes began.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    history = History(trace)
    origin, _ = _extent(trace, np.array(with_descendants(trace, tasks), np.int64))
    queues = history.queues_at(event_at(history.t_ns, origin, after_ns, tasks[0]))
    nodes = {one.node for queue in queues.values() for one in queue if one.node >= 0}
    return Contents(
        t_ns=origin + after_ns,
        after_ns=after_ns,
        queues=queues,
        queue_names={queue: _queue_name(trace, queue) for queue in queues},
        node_names={node: definition(trace, node).name for node in sorted(nodes)},
    )


def event_at(t_ns: Column, origin: int, after_ns: int, task: int) -> int:
    """The last event that happened so long after a pass began.

    Args:
        t_ns: When each event of the trace happened.
        origin: When the pass began.
        after_ns: How long after that.
        task: The pass.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    last = int(t_ns[-1]) - origin
    if not 0 <= after_ns <= last:
        raise NoSuchMomentError(
            f"the trace has no moment {after_ns:,} ns after the begin of pass "
            f"{task}: it ends after {last:,} ns"
        )
    return int(np.searchsorted(t_ns, origin + after_ns, side="right")) - 1


def document_of(queues: Queues | Contents) -> dict[str, Any]:
    """What ``gradviz show queues --json`` prints, with or without ``--at``."""
    schema = SCHEMA if isinstance(queues, Queues) else CONTENTS_SCHEMA
    document = msgspec.to_builtins(queues, str_keys=True)
    return {"schema": schema, "version": VERSION, **document}


def overtakings(queued: Spans) -> Column:
    """Of each task, how many came into its queue later and left it earlier.

    All tasks are put in a row, queue after queue and in the order in which they came;
    counted is what stands behind one and left before it. Halves of halves of the row
    are compared at once: `n log n`, and no loop over tasks.
    """
    size = len(queued.begin)
    order = np.lexsort((queued.begin, queued.rows["queue"]))
    # Where each stands among all by its end, those of later queues behind all others.
    rank = np.empty(size, np.int64)
    rank[np.lexsort((queued.end[order], queued.rows["queue"][order]))] = np.arange(size)
    counts = np.zeros(size, np.int64)
    half = 1
    while half < size:
        block = np.arange(size) // (2 * half)
        is_right = np.arange(size) // half % 2
        by_rank = np.lexsort((rank, block))
        right_before = np.cumsum(is_right[by_rank])
        first = np.searchsorted(block[by_rank], block[by_rank])
        right_before -= np.where(first > 0, right_before[first - 1], 0)
        gained = np.empty(size, np.int64)
        gained[by_rank] = right_before
        counts += np.where(is_right == 0, gained, 0)
        half *= 2
    found = np.empty(size, np.int64)
    found[order] = counts
    found[queued.end == NEVER] = 0
    return found


def _summary(
    trace: Trace,
    queued: Spans,
    t_ns: Column,
    num_by: Column,
    queue: int,
    origin: int,
    end: int,
) -> QueueSummary:
    own = queued.rows["queue"] == queue
    begin, done = queued.begin[own], queued.end[own]
    done = done[done != NEVER]
    moments = np.concatenate((begin, done))
    steps = np.concatenate(
        (np.ones(len(begin), np.int64), -np.ones(len(done), np.int64))
    )
    order = np.argsort(moments)
    when = np.append(t_ns[moments[order]], end)
    lengths = np.cumsum(steps[order])
    sleeps = trace.columns["queue_waited"]
    woken = sleeps["t_ns"]
    mine = (sleeps["queue"] == queue) & (woken > origin) & (woken <= end)
    asleep = np.minimum(sleeps["waited_ns"], woken - origin)[mine]
    return QueueSummary(
        queue=queue,
        name=_queue_name(trace, queue),
        num_pushed=len(begin),
        num_popped=len(done),
        longest=int(lengths.max(initial=0)),
        mean_length=float((lengths * np.diff(when)).sum() / max(end - origin, 1)),
        asleep_ns=int(asleep.sum()),
        num_sleeps=len(asleep),
        num_overtaken=int(np.count_nonzero(num_by[own])),
        lengths=thinned(when[:-1] - origin, lengths),
    )


def _queue_name(trace: Trace, queue: int) -> str:
    known = trace.queues.get(queue)
    return "?" if known is None else shortened(known.name, MAX_TEXT)


def _extent(trace: Trace, wanted: Column) -> tuple[int, int]:
    """The first and the last moment of some passes."""
    least, most = [], []
    for table in trace.columns.values():
        own = table["t_ns"][np.isin(table.narrow("task"), wanted)]
        if len(own):
            least.append(int(own.min()))
            most.append(int(own.max()))
    return min(least, default=0), max(most, default=0)


def _popped_by(trace: Trace, queued: Spans) -> Column:
    """The thread that popped each task, -1 for none."""
    popped = trace.columns["task_popped"]
    seqs, threads = popped["seq"], popped["thread"]
    found = np.full(len(queued.end), -1)
    has_end = queued.end != NEVER
    found[has_end] = threads[np.searchsorted(seqs, queued.end[has_end])]
    return found


def _handovers(pusher: Column, popper: Column) -> tuple[Handover, ...]:
    between = (popper >= 0) & (pusher != popper)
    pairs = zip(pusher[between].tolist(), popper[between].tolist(), strict=True)
    most = Counter(pairs).most_common(MAX_QUEUES)
    return tuple(Handover(one, other, count) for (one, other), count in most)


def _overtaken(
    trace: Trace, queued: Spans, t_ns: Column, num_by: Column, end: int
) -> tuple[Overtaken, ...]:
    places = np.argsort(-num_by, kind="stable")[:MAX_OVERTAKEN]
    queue, nodes = queued.rows["queue"], queued.rows["node"]
    found = []
    for place in places[num_by[places] > 0].tolist():
        by = np.flatnonzero(
            (queue == queue[place])
            & (queued.begin > queued.begin[place])
            & (queued.end < queued.end[place])
        )
        by = by[np.argsort(queued.end[by])]
        node = int(nodes[place])
        left = queued.end[place]
        found.append(
            Overtaken(
                task=int(queued.rows["task"][place]),
                node=node,
                name=definition(trace, node).name if node >= 0 else "wake-up",
                queue=int(queue[place]),
                waited_ns=int(
                    (end if left == NEVER else t_ns[left]) - t_ns[queued.begin[place]]
                ),
                num_by=int(num_by[place]),
                by=tuple(nodes[by[:MAX_NAMED]].tolist()),
            )
        )
    return tuple(found)
