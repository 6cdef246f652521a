"""Activity of ready queues: lengths, sleeps, hand-overs, overtaking.

A task is *overtaken* by another one that came into its queue later and left it earlier.
It is *handed over* where another thread pops it than pushed it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, definition
from gradviz.analysis.tables.passes import with_descendants
from gradviz.analysis.tables.queue_waits import QueueWaits, queue_waits
from gradviz.analysis.tables.spans import NEVER, thinned, times
from gradviz.analysis.tables.worker_parts import numbers_of, whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

SCHEMA: Final = "gradviz.queues"
VERSION: Final = 1

#: Maximum number of overtaken tasks told, those most often overtaken first.
MAX_OVERTAKEN: Final = 20

#: Maximum number of overtaking tasks named for each.
MAX_NAMED: Final = 5

#: Maximum number of queues told.
MAX_QUEUES: Final = 250


class QueueSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One ready queue.

    Attributes:
        queue: Its id.
        name: Such as ``device 0``.
        num_pushed: Tasks that came in, wake-ups included.
        num_popped: Tasks that left it.
        longest: The most tasks that lay in it at once.
        mean_length: Over the time from the first event of the passes to the last.
        asleep_ns: Time that threads slept on it while it was empty.
        num_sleeps: Number of these sleeps.
        num_overtaken: Tasks that another one overtook.
        lengths: Changes of its length: the time, from the start of the first pass, and
            the new length. Of more than `MAX_POINTS` the longest in each slice of the
            time.
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
    """Number of tasks that one thread pushed and another one popped."""

    pushed_by: int
    popped_by: int
    num_tasks: int


class Overtaken(msgspec.Struct, frozen=True, kw_only=True):
    """A task that others overtook.

    Attributes:
        task: Its pass.
        node: Its node.
        name: The node's.
        queue: Queue that it lay in.
        waited_ns: Queue wait.
        num_by: Number of tasks that overtook it.
        by: Their nodes, the first `MAX_NAMED`, in the order in which they left.
        index: The place of `node` in the execution order of its pass; None if it did
            not run, and of a wake-up.
        by_index: Those of the nodes in `by`, each in its own pass.
    """

    task: int
    node: int
    name: str
    queue: int
    waited_ns: int
    num_by: int
    by: tuple[int, ...]
    index: int | None = None
    by_index: tuple[int | None, ...] = ()


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
    """Return the activity of queues in these passes and those nested in them."""
    tasks = with_descendants(trace, tasks)
    wanted = np.array(tasks, np.int64)
    waits = queue_waits(trace).of_passes(wanted)
    t_ns = times(trace)
    origin, end = extent(trace, wanted)
    num_by = overtakings(waits.pushes["queue"], waits.popped)
    ids = different(waits.pushes["queue"])
    handovers = _handovers(waits.pushes["thread"], waits.popped_by)
    return Queues(
        tasks=numbers_of(trace, tasks),
        origin_ns=origin,
        duration_ns=end - origin,
        queues=tuple(
            _summary(trace, waits, t_ns, num_by, queue, origin, end)
            for queue in ids[:MAX_QUEUES].tolist()
        ),
        handovers=handovers,
        threads={
            number: shortened(trace.threads[number].name, MAX_TEXT)
            for one in handovers
            for number in (one.pushed_by, one.popped_by)
        },
        overtaken=_overtaken(trace, waits, t_ns, num_by, end),
        omitted=max(len(ids) - MAX_QUEUES, 0),
    )


def document_of(queues: Queues) -> dict[str, Any]:
    """Return the output of ``gradviz show queues --json``."""
    document = msgspec.to_builtins(queues, str_keys=True)
    return {"schema": SCHEMA, "version": VERSION, **document}


def overtakings(queue: Column, popped: Column) -> Column:
    """Return how many tasks overtook each: came into its queue later, left it earlier.

    All tasks are put in a row, queue after queue and in the order in which they came;
    counted is what stands behind one and left before it. Halves of halves of the row
    are compared at once: `n log n`, and no loop over tasks.

    Args:
        queue: The queue of each task, in the order of the pushes.
        popped: The `seq` of its pop; `NEVER` for none.
    """
    size = len(queue)
    order = np.argsort(queue, kind="stable")
    # Where each stands among all by its end, those of later queues behind all others.
    rank = np.empty(size, np.int64)
    rank[np.lexsort((popped[order], queue[order]))] = np.arange(size)
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
    found[popped == NEVER] = 0
    return found


def queue_name(trace: Trace, queue: int) -> str:
    """Return the name of a queue; ``?`` if its definition is lost."""
    known = trace.queues.get(queue)
    return "?" if known is None else shortened(known.name, MAX_TEXT)


def extent(trace: Trace, wanted: Column) -> tuple[int, int]:
    """Return the first and the last moment of some passes."""
    least, most = [], []
    for table in trace.columns.values():
        own = table.having("task", wanted)["t_ns"]
        if len(own):
            least.append(int(own.min()))
            most.append(int(own.max()))
    return min(least, default=0), max(most, default=0)


def _summary(
    trace: Trace,
    waits: QueueWaits,
    t_ns: Column,
    num_by: Column,
    queue: int,
    origin: int,
    end: int,
) -> QueueSummary:
    own = waits.pushes["queue"] == queue
    begin, done = waits.pushed[own], waits.popped[own]
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
        name=queue_name(trace, queue),
        num_pushed=len(begin),
        num_popped=len(done),
        longest=int(lengths.max(initial=0)),
        mean_length=float((lengths * np.diff(when)).sum() / max(end - origin, 1)),
        asleep_ns=int(asleep.sum()),
        num_sleeps=len(asleep),
        num_overtaken=int(np.count_nonzero(num_by[own])),
        lengths=thinned(when[:-1] - origin, lengths),
    )


def _handovers(pusher: Column, popper: Column) -> tuple[Handover, ...]:
    between = (popper >= 0) & (pusher != popper)
    pairs = zip(pusher[between].tolist(), popper[between].tolist(), strict=True)
    most = Counter(pairs).most_common(MAX_QUEUES)
    return tuple(Handover(one, other, count) for (one, other), count in most)


def _overtaken(
    trace: Trace, waits: QueueWaits, t_ns: Column, num_by: Column, end: int
) -> tuple[Overtaken, ...]:
    places = np.argsort(-num_by, kind="stable")[:MAX_OVERTAKEN]
    queue, nodes = waits.pushes["queue"], waits.pushes["node"]
    tasks = waits.pushes["task"]
    numbers = NodeNumbers(trace, different(tasks).tolist())
    found = []
    for place in places[num_by[places] > 0].tolist():
        by = np.flatnonzero(
            (queue == queue[place])
            & (waits.pushed > waits.pushed[place])
            & (waits.popped < waits.popped[place])
        )
        by = by[np.argsort(waits.popped[by])][:MAX_NAMED]
        task, node = int(tasks[place]), int(nodes[place])
        left = waits.popped[place]
        found.append(
            Overtaken(
                task=whole_of(trace, task),
                node=node,
                name=definition(trace, node).name if node >= 0 else "wake-up",
                queue=int(queue[place]),
                waited_ns=int(
                    (end if left == NEVER else t_ns[left]) - t_ns[waits.pushed[place]]
                ),
                num_by=int(num_by[place]),
                by=tuple(nodes[by].tolist()),
                index=numbers.of(task, node),
                by_index=tuple(map(numbers.of, tasks[by].tolist(), nodes[by].tolist())),
            )
        )
    return tuple(found)
