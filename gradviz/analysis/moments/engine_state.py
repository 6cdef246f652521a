"""The state of an engine at any moment of a trace.

What lies in which ready queue, what each thread runs, what each node still waits for,
which passes are open and what streams wait for, right after an event. `History` joins
beginnings and ends once (see `spans`); every moment is then a question to it, and none
is further away than another: forwards, backwards, anywhere.

What an error or an interrupt has left behind in queues and threads ends with its pass.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

import numpy as np

from gradviz.analysis.moments.moment import (
    BufferedGradient,
    BusyStream,
    Countdown,
    Moment,
    OpenPass,
    PendingWait,
    QueuedTask,
    Running,
    WorkingThread,
)
from gradviz.analysis.tables.passes import Status
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import (
    NEVER,
    Spans,
    ended_with_their_pass,
    following,
    in_order,
    spans,
    times,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table, different
from gradviz.trace.probe import Push, Role

_NODE: Final = ("task", "node")
_NOTHING: Final = np.empty(0, np.int64)


class History:
    """A trace, arranged so that any moment of it can be looked at.

    Making one takes about a second for a million events, a look some milliseconds.
    It never changes and may be used from any thread.
    """

    def __init__(self, trace: Trace) -> None:
        columns = trace.columns
        self._strings = trace.strings
        self.t_ns = times(trace)
        self.waits = queue_waits(trace)
        self.queued = self.waits.spans
        self.running = running_spans(trace)
        self._gradients, self._waiting = gradient_spans(trace)
        self._roles = spans(
            columns["thread_started"], columns["thread_exited"], ("thread", "role")
        )
        self._sleeps = sleep_spans(columns["queue_waited"], self.t_ns)
        self._passes = _passes(trace)
        outcomes = in_order(columns["task_completed"], columns["task_failed"])
        self._outcomes = dict(
            zip(outcomes["task"].tolist(), outcomes["seq"].tolist(), strict=True)
        )
        self._failed = set(columns["task_failed"]["task"].tolist())
        self._counts = columns["dependencies_counted"]
        self._kernels, self._waits = _stream_work(trace)

    @property
    def num_events(self) -> int:
        """Number of moments."""
        return len(self.t_ns)

    def seq_at(self, t_ns: int) -> int:
        """The last event that happened until then, -1 before the first."""
        return int(np.searchsorted(self.t_ns, t_ns, side="right")) - 1

    def at(self, seq: int, *, most: int | None = None) -> Moment:
        """The state right after event `seq`.

        Args:
            seq: The event.
            most: Of so many queues, tasks of each, waiting nodes, threads and passes at
                most, 1 or more, it is told what they are. To tell it of each takes some
                microseconds.

        Raises:
            IndexError: There is no such event.
        """
        if not 0 <= seq < self.num_events:
            raise IndexError(f"no event {seq}: the trace has {self.num_events:,}")
        queued = self._queued_at(seq)
        gradients, num_countdowns, num_waiting = self._waiting_at(seq, most)
        passes, num_passes = self._passes_at(seq, most)
        workers, num_workers = self._workers_at(seq, most)
        return Moment(
            seq=seq,
            t_ns=int(self.t_ns[seq]),
            passes=passes,
            num_passes=num_passes,
            queues={
                queue: tasks_of(self.queued, one[:most])
                for queue, one in islice(queued.items(), most)
            },
            num_queued={queue: len(one) for queue, one in queued.items()},
            workers=workers,
            num_workers=num_workers,
            countdowns=self._countdowns(gradients),
            num_countdowns=num_countdowns,
            num_waiting=num_waiting,
            streams=self._streams_at(seq),
        )

    def queues_at(self, seq: int) -> dict[int, tuple[QueuedTask, ...]]:
        """The contents of all queues right after event `seq`; see `Moment`."""
        queued = self._queued_at(seq)
        return {queue: tasks_of(self.queued, one) for queue, one in queued.items()}

    def queue_at(self, seq: int, queue: int) -> tuple[QueuedTask, ...]:
        """The contents of one queue right after event `seq`."""
        return tasks_of(self.queued, self._queued_at(seq).get(queue, _NOTHING))

    def _queued_at(self, seq: int) -> dict[int, Column]:
        """Return queue -> places of its tasks, in the order of their pops."""
        places = self.queued.open_at(seq)
        places = places[by_priority(self.queued, places)]
        queues = self.queued.rows.narrow("queue")[places]
        order = np.argsort(queues, kind="stable")
        every = different(queues)
        ends = np.searchsorted(queues[order], every, side="right").tolist()
        return {
            queue: places[order[begin:end]]
            for queue, begin, end in zip(every.tolist(), [0, *ends], ends, strict=False)
        }

    def _waiting_at(self, seq: int, most: int | None) -> tuple[Column, int, int]:
        """Places of the gradients of waiting nodes, node by node; how many nodes.

        Those that wait for more, whose number is the last, come first, then those that
        have all; of each the one that got its first gradient first.
        """
        places = self._gradients.open_at(seq)
        number = self._waiting[places]
        waiting = different(number)
        place = np.searchsorted(waiting, number)
        remaining = np.zeros(len(waiting), np.int64)
        remaining[place] = self._gradients.rows["remaining"][places]  # the last counts
        rank = np.empty(len(waiting), np.int64)
        rank[np.argsort(remaining == 0, kind="stable")] = np.arange(len(waiting))
        ranks = rank[place]
        order = np.argsort(ranks, kind="stable")
        if most is not None:
            order = order[: int(np.searchsorted(ranks[order], most))]
        return places[order], len(waiting), int(np.count_nonzero(remaining))

    def _workers_at(
        self, seq: int, most: int | None
    ) -> tuple[tuple[WorkingThread, ...], int]:
        """Return the activities of the first so many threads, and their total."""
        working, busy = self._roles.open_at(seq), self.running.open_at(seq)
        threads = [
            one.rows.narrow("thread")[places]
            for one, places in ((self._roles, working), (self.running, busy))
        ]
        sleeps = _open_rows(self._sleeps, seq, "thread", "queue")
        asleep = {thread: queue for thread, queue in sleeps}  # noqa: C416 - typed so
        every = different(np.concatenate([*threads, np.array([*asleep], np.int64)]))
        told = every[:most]
        working, busy = (
            places[np.isin(of, told)]
            for places, of in zip((working, busy), threads, strict=True)
        )
        roles, running = defaultdict(list), defaultdict(list)
        for thread, role in self._roles.rows.at(working).rows("thread", "role"):
            roles[thread].append(Role(role))
        for thread, *what in self.running.rows.at(busy).rows("thread", *_NODE, "t_ns"):
            running[thread].append(Running(*what))
        workers = tuple(
            WorkingThread(
                thread=thread,
                roles=tuple(roles[thread]),
                running=tuple(running[thread]),
                asleep_on=asleep.get(thread),
            )
            for thread in told.tolist()
        )
        return workers, len(every)

    def _countdowns(self, places: Column) -> tuple[Countdown, ...]:
        remaining: dict[tuple[int, int], int] = {}
        gradients: dict[tuple[int, int], list[BufferedGradient]] = defaultdict(list)
        names = (*_NODE, "remaining", "producer", "input_nr", "size_bytes")
        rows = self._gradients.rows.at(places).rows(*names)
        for task, node, left, *gradient in rows:
            remaining[task, node] = left
            gradients[task, node].append(BufferedGradient(*gradient))
        return tuple(
            Countdown(
                task=task, node=node, remaining=left, gradients=tuple(gradients[key])
            )
            for key, left in remaining.items()
            for task, node in [key]
        )

    def _passes_at(
        self, seq: int, most: int | None
    ) -> tuple[tuple[OpenPass, ...], int]:
        """The last so many open passes, and how many there are."""
        places = self._passes.open_at(seq)
        told = places[-most:] if most else places
        counted = self._counts["seq"] <= seq
        counts = dict(
            zip(
                self._counts["task"][counted].tolist(),
                self._counts["num_nodes"][counted].tolist(),
                strict=True,
            )
        )
        begun = self.running.rows["task"][: _num_until(self.running.begin, seq)]
        names = ("task", "parent", "reentrant_depth", "thread", "t_ns")
        passes = tuple(
            OpenPass(
                task=task,
                parent=parent,
                reentrant_depth=depth,
                thread=thread,
                began_ns=t_ns,
                status=self._status_at(task, seq),
                num_nodes=counts.get(task, -1),
                num_started=int(np.count_nonzero(begun == task)),
            )
            for task, parent, depth, thread, t_ns in self._passes.rows.at(told).rows(
                *names
            )
        )
        return passes, len(places)

    def _status_at(self, task: int, seq: int) -> Status:
        if self._outcomes.get(task, NEVER) > seq:
            return "unfinished"
        return "failed" if task in self._failed else "completed"

    def _streams_at(self, seq: int) -> tuple[BusyStream, ...]:
        num_kernels: dict[str, int] = defaultdict(int)
        waits: dict[str, list[PendingWait]] = defaultdict(list)
        launched = self._kernels.rows.narrow("stream")[self._kernels.open_at(seq)]
        ids, counts = np.unique(launched, return_counts=True)
        for stream, number in zip(ids.tolist(), counts.tolist(), strict=True):
            num_kernels[self._strings[stream]] += number
        names = ("stream", "event", "awaited", "node", "producer")
        for stream, event, awaited, *nodes in _open_rows(self._waits, seq, *names):
            wait = PendingWait(event, self._strings[awaited], *nodes)
            waits[self._strings[stream]].append(wait)
        return tuple(
            BusyStream(
                stream=stream,
                num_kernels=num_kernels[stream],
                waits=tuple(waits[stream]),
            )
            for stream in sorted({*num_kernels, *waits})
        )


def gradient_spans(
    trace: Trace, tasks: Sequence[int] | None = None
) -> tuple[Spans, Column]:
    """Return gradients of nodes, until the node began, was skipped, or its pass ended.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.

    Returns:
        The gradients, and of each the number of its node: 0 for the one that got the
        first of all.
    """
    columns = trace.columns
    rows = _of_passes(columns["gradient_buffered"], tasks)
    ends = in_order(columns["node_started"], columns["node_skipped"])
    both = np.stack([rows["task"], rows["node"]])
    _, firsts, which = np.unique(both, axis=1, return_index=True, return_inverse=True)
    in_time = np.argsort(firsts)
    number = np.argsort(in_time)[which.ravel()]
    started = spans(rows.at(firsts[in_time]), _of_passes(ends, tasks), _NODE)
    until = Spans(rows, rows["seq"], started.end[number])
    return ended_with_their_pass(trace, until), number


def running_spans(trace: Trace, tasks: Sequence[int] | None = None) -> Spans:
    """Return nodes that were started, until they were done or their pass ended.

    Args:
        trace: The trace.
        tasks: The passes wanted, None for all.
    """
    columns = trace.columns
    ends = in_order(columns["node_completed"], columns["node_failed"])
    starts = _of_passes(columns["node_started"], tasks)
    return ended_with_their_pass(trace, spans(starts, _of_passes(ends, tasks), _NODE))


def sleep_spans(rows: Table, t_ns: Column) -> Spans:
    """Return sleeps, from the first event after falling asleep to that of waking.

    Args:
        rows: The events of waking.
        t_ns: Time of each event of the trace.
    """
    began = np.searchsorted(t_ns, rows["t_ns"] - rows["waited_ns"], side="right")
    order = np.argsort(began, kind="stable")
    return Spans(rows.at(order), began[order], rows["seq"][order])


def tasks_of(queued: Spans, places: Column) -> tuple[QueuedTask, ...]:
    """Return some of the tasks of queues."""
    rows = queued.rows.at(places).rows(
        *("task", "node", "what", "reentrant_depth", "sequence_nr"),
        *("pushed_by", "thread", "t_ns"),
    )
    return tuple(
        QueuedTask(
            task=task,
            node=node,
            what=Push(what),
            reentrant_depth=depth,
            sequence_nr=sequence_nr,
            pushed_by=by,
            thread=thread,
            pushed_ns=t_ns,
        )
        for task, node, what, depth, sequence_nr, by, thread, t_ns in rows
    )


def by_priority(queued: Spans, places: Column) -> Column:
    """Return the order that sorts tasks of queues: the next to run comes first.

    Equals, whose order is that of a heap, are sorted by their actual pops.
    """
    rows = queued.rows.at(places)
    is_wake_up = rows["what"] == Push.WAKE_UP
    depth = np.where(is_wake_up, 0, rows["reentrant_depth"])  # of which none goes first
    sequence_nr = rows["sequence_nr"].view(np.uint64)  # of which -1 is the largest
    return np.lexsort((queued.end[places], ~sequence_nr, -depth, ~is_wake_up))


def _of_passes(table: Table, tasks: Sequence[int] | None) -> Table:
    if tasks is None:
        return table
    return table.at(np.isin(table.narrow("task"), np.array(tasks, np.int64)))


def _passes(trace: Trace) -> Spans:
    """Calls of backward, until their caller has left."""
    columns = trace.columns
    begun = columns["task_begun"]
    left = spans(begun, columns["reentrant_left"], ("task",))
    # The caller of an outermost pass leaves the engine with it.
    exits = columns["thread_exited"]
    exits = exits.at(exits["role"] == Role.CALLER)
    place = following(begun, exits, ("thread",))
    is_left = (begun["parent"] < 0) & (place >= 0)
    end = left.end.copy()
    end[is_left] = exits["seq"][place[is_left]]
    return ended_with_their_pass(trace, left._replace(end=end))


def _stream_work(trace: Trace) -> tuple[Spans, Spans]:
    """Kernels from their launch to their end, and waits of streams for others."""
    columns, moments = trace.columns, times(trace)
    launched = columns["kernel_launched"]
    ran = columns["kernel_ran"]
    ended_ns = dict(zip(ran["kernel"].tolist(), ran["ended_ns"].tolist(), strict=True))
    done = _seqs_of([ended_ns.get(one) for one in launched["kernel"].tolist()], moments)
    marks = columns["event_recorded"]
    waits = columns["stream_waited"]
    mark_of: dict[int, tuple[int, int]] = {}
    ends, awaited = [], []
    for kind, seq, event, stream in sorted(
        [
            *((0, *row) for row in marks.rows("seq", "event", "stream")),
            *((1, *row) for row in waits.rows("seq", "event", "stream")),
        ],
        key=lambda row: row[1],
    ):
        if kind == 0:
            mark_of[event] = stream, seq
            continue
        other, marked = mark_of.get(event, (stream, -1))
        before = (launched["stream"] == other) & (launched["seq"] < marked)
        ends.append(int(done[before].max(initial=-1)))
        awaited.append(other)
    end = np.maximum(np.array(ends, np.int64), waits["seq"])
    rows = Table(
        {
            **{name: waits.narrow(name) for name in waits},
            "awaited": np.array(awaited, np.int64),
        }
    )
    return Spans(launched, launched["seq"], done), Spans(rows, waits["seq"], end)


def _seqs_of(some_ns: Sequence[int | None], t_ns: Column) -> Column:
    """The first event at or after each time; `NEVER` where that is not known."""
    known = np.array([-1 if one is None else one for one in some_ns], np.int64)
    return np.where(known < 0, NEVER, np.searchsorted(t_ns, known))


def _num_until(begin: Column, seq: int) -> int:
    return int(np.searchsorted(begin, seq, side="right"))


def _open_rows(some: Spans, seq: int, *names: str) -> Iterable[tuple[int, ...]]:
    return some.rows.at(some.open_at(seq)).rows(*names)
