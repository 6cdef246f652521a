"""Ready queues over time: the tasks in them, and the threads that slept."""

import heapq
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, definition
from gradviz.analysis.tables.passes import the_pass, with_descendants
from gradviz.analysis.tables.queue_waits import QueueWaits, queue_waits
from gradviz.analysis.tables.spans import NEVER, Points, thinned, times
from gradviz.analysis.tables.window import NoSuchMomentError, window_of
from gradviz.analysis.tables.worker_parts import numbers_of, whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

#: Maximum number of queues told, and of stays in each; lengths count all.
MAX_QUEUES: Final = 40
MAX_STAYS: Final = 20_000


class Stay(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A task in a ready queue.

    Attributes:
        task: Its pass.
        node: Its node, -1 for a wake-up.
        name: The node's.
        index: The place of the node in the order of its pass; None if it did not run.
        slot: Slot that it took: the lowest that was free when it came, from 0.
        pushed_ns: Time of its push, after the start of the pass.
        popped_ns: Time of its pop; None if it was left there, or the trace does not
            say.
        pushed_by: The thread that pushed it.
        popped_by: The one that popped it, -1 if nobody did.
    """

    task: int
    node: int
    name: str
    index: int | None
    slot: int
    pushed_ns: int
    popped_ns: int | None
    pushed_by: int
    popped_by: int

    @property
    def is_handed_over(self) -> bool:
        """True if the thread that took it is not the one that brought it."""
        return self.popped_by >= 0 and self.popped_by != self.pushed_by


class QueueStays(msgspec.Struct, frozen=True, kw_only=True):
    """One ready queue over a part of the time.

    Attributes:
        queue: Its id.
        name: Such as ``device 0``.
        stays: Tasks that lay in it, in the order of time; of very many the first.
        num_stays: Number of all stays.
        num_handed_over: Number of these tasks that another thread took.
        longest: The most tasks that lay in it at once.
        lengths: Times at which its length changed, and the new lengths.
        sleeps: Start and end of each sleep of a thread on it while it was empty.
    """

    queue: int
    name: str
    stays: tuple[Stay, ...]
    num_stays: int
    num_handed_over: int
    longest: int
    lengths: Points
    sleeps: tuple[tuple[int, int], ...]

    @property
    def asleep_ns(self) -> int:
        """Time that threads slept on it."""
        return sum(end - begin for begin, end in self.sleeps)


class QueuesOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """The ready queues of some passes, or of a part of their time.

    Attributes:
        tasks: The passes, those called from inside the others included.
        took_ns: Duration of the first of them, by its own start and end; None if the
            trace does not have its end.
        duration_ns: From the start of the first to their last event.
        from_ns: Start of the part.
        until_ns: End of the part.
        queues: By id.
        threads: The names of threads that handed tasks over, by number.
        omitted: Queues that are left out, because there are too many.
        is_complete: True if no event is missing from the trace.
    """

    tasks: tuple[int, ...]
    duration_ns: int
    from_ns: int
    until_ns: int
    queues: tuple[QueueStays, ...]
    threads: dict[int, str]
    omitted: int
    is_complete: bool
    took_ns: int | None = None


def queues_over_time(
    trace: Trace, tasks: Sequence[int], from_ns: int = 0, until_ns: int | None = None
) -> QueuesOverTime:
    """Return the tasks in the queues of these passes and those nested in them.

    Tasks of other passes do not count.

    Args:
        trace: The trace.
        tasks: The passes.
        from_ns: Start of the part, after the start of the first of them.
        until_ns: End of the part; None for their end.

    Raises:
        NoSuchMomentError: All of it ends before.
    """
    tasks = with_descendants(trace, tasks)
    t_ns = times(trace)
    first, last = window_of(trace, tasks)
    origin, duration_ns = int(t_ns[first]), int(t_ns[last] - t_ns[first])
    if not 0 <= from_ns <= duration_ns:
        raise NoSuchMomentError(
            f"there is nothing {from_ns:,} ns after the start of pass {tasks[0]}: it "
            f"ends after {duration_ns:,} ns"
        )
    until_ns = duration_ns if until_ns is None else min(until_ns, duration_ns)
    waits = queue_waits(trace).of_passes(tasks)
    begun_ns = waits.pushes["t_ns"] - origin
    # With its pass something ends right after the last event of that.
    is_popped = waits.popped != NEVER
    final = np.where(is_popped, waits.popped, np.minimum(waits.ended - 1, last))
    ended_ns = t_ns[final] - origin
    is_shown = (begun_ns <= until_ns) & (ended_ns >= from_ns)
    ids = different(waits.pushes["queue"])
    numbers = NodeNumbers(trace, tasks)
    found = []
    for queue in ids[:MAX_QUEUES].tolist():
        mine = np.flatnonzero(waits.pushes["queue"] == queue)
        mine = mine[is_shown[mine]]
        sleeps = _sleeps(trace, queue, origin, from_ns, until_ns)
        popped_by = waits.popped_by[mine]
        pushed_by = waits.pushes["thread"][mine]
        longest, lengths = _lengths(
            begun_ns[mine],
            ended_ns[mine],
            waits.pushed[mine],
            final[mine],
            (from_ns, until_ns),
        )
        found.append(
            QueueStays(
                queue=queue,
                name=_name(trace, queue),
                stays=tuple(_stays(trace, numbers, waits, mine, begun_ns, ended_ns)),
                num_stays=len(mine),
                num_handed_over=int(
                    np.count_nonzero((popped_by >= 0) & (popped_by != pushed_by))
                ),
                longest=longest,
                lengths=lengths,
                sleeps=sleeps,
            )
        )
    threads = {
        number
        for queue in found
        for one in queue.stays
        if one.is_handed_over
        for number in (one.pushed_by, one.popped_by)
    }
    return QueuesOverTime(
        tasks=numbers_of(trace, tasks),
        took_ns=the_pass(trace, tasks[0]).duration_ns,
        duration_ns=duration_ns,
        from_ns=from_ns,
        until_ns=until_ns,
        queues=tuple(found),
        threads={
            one: shortened(trace.threads[one].name, MAX_TEXT) for one in sorted(threads)
        },
        omitted=max(len(ids) - MAX_QUEUES, 0),
        is_complete=trace.losses.is_complete,
    )


def _stays(
    trace: Trace,
    numbers: NodeNumbers,
    waits: QueueWaits,
    places: Column,
    begun_ns: Column,
    ended_ns: Column,
) -> Iterator[Stay]:
    """Yield the tasks of one queue, each in the lowest slot free at its arrival."""
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    num_slots = 0
    places = places[:MAX_STAYS]
    rows = waits.pushes.at(places).rows("task", "node", "thread", "seq")
    ends = zip(
        begun_ns[places].tolist(),
        ended_ns[places].tolist(),
        waits.popped[places].tolist(),
        waits.popped_by[places].tolist(),
        strict=True,
    )
    for (task, node, thread, seq), (begun, ended, end, by) in zip(
        rows, ends, strict=True
    ):
        while taken and taken[0][0] < seq:
            heapq.heappush(free, heapq.heappop(taken)[1])
        if free:
            slot = heapq.heappop(free)
        else:
            slot, num_slots = num_slots, num_slots + 1
        heapq.heappush(taken, (end, slot))
        yield Stay(
            task=whole_of(trace, task),
            node=node,
            name=definition(trace, node).name if node >= 0 else "wake-up",
            index=numbers.of(task, node),
            slot=slot,
            pushed_ns=begun,
            popped_ns=None if end == NEVER else ended,
            pushed_by=thread,
            popped_by=by,
        )


def _lengths(
    begun: Column, ended: Column, begin: Column, end: Column, part: tuple[int, int]
) -> tuple[int, Points]:
    """Return the maximum length of a queue, and the times of its lengths.

    Args:
        begun: Times at which tasks came, in that order.
        ended: Times at which they left.
        begin: The events with which they came.
        end: Those with which they left.
        part: Start and end of the part.
    """
    from_ns, until_ns = part
    steps = np.repeat((1, -1), (len(begun), len(ended)))
    order = np.lexsort((-steps, np.concatenate((begin, end))))
    when = np.maximum(np.concatenate((begun, ended))[order], from_ns)
    lengths = np.cumsum(steps[order])
    is_last = np.append(when[1:] != when[:-1], True)[: len(when)]
    is_inside = when > from_ns
    before = lengths[~is_inside]
    at_first = int(before[-1]) if len(before) else 0
    longest = max(at_first, int(lengths[is_inside].max(initial=0)))
    keep = is_last & is_inside & (when <= until_ns)
    return longest, thinned(
        np.concatenate(((from_ns,), when[keep])),
        np.concatenate(((at_first,), lengths[keep])),
    )


def _sleeps(
    trace: Trace, queue: int, origin: int, from_ns: int, until_ns: int
) -> tuple[tuple[int, int], ...]:
    """Return the sleeps of threads on a queue; the first if there are very many."""
    slept = trace.columns["queue_waited"]
    slept = slept.at(slept.narrow("queue") == queue)
    end = slept["t_ns"] - origin
    begin = np.maximum(end - slept["waited_ns"], from_ns)
    end = np.minimum(end, until_ns)
    shown = np.flatnonzero(end > begin)[:MAX_STAYS]
    return tuple(zip(begin[shown].tolist(), end[shown].tolist(), strict=True))


def _name(trace: Trace, queue: int) -> str:
    known = trace.queues.get(queue)
    return "?" if known is None else shortened(known.name, MAX_TEXT)
