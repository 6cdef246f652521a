"""The tables of a page about ready queues and streams: tasks, and waits."""

from collections.abc import Sequence

import numpy as np

from gradviz.analysis.moments.engine_state import (
    by_priority,
    gradient_spans,
    sleep_spans,
)
from gradviz.analysis.moments.queue_delays import queue_delays
from gradviz.analysis.tables.kernels import KernelRun, kernels
from gradviz.analysis.tables.queue_waits import queue_waits
from gradviz.analysis.tables.spans import times
from gradviz.analysis.timelines.idle_spans import StreamWait, blocked_spans
from gradviz.analysis.timelines.timeline_spans import Period
from gradviz.render.page.columns import RowPlaces
from gradviz.render.page.extract import Extract
from gradviz.render.page.node_tables import family_places
from gradviz.render.page.tables import (
    BlockedTable,
    GradientTable,
    KernelTable,
    KernelWaitTable,
    OvertakingTable,
    SleepTable,
    StayTable,
    StreamWaitTable,
)


def stay_tables(extract: Extract) -> tuple[StayTable, OvertakingTable]:
    """Return the tasks in queues, and those that left one before another task."""
    waits = queue_waits(extract.trace).of_passes(extract.tasks)
    if extract.last_seq is not None:
        waits = waits.until(extract.trace, extract.last_seq)
    rows = waits.pushes
    every = np.arange(rows.num_rows)
    delays = queue_delays(extract.trace, extract.executions, waits, every)
    turn = np.empty(len(every), np.int64)
    turn[by_priority(waits.spans, every)] = every
    stays = StayTable(
        queue=rows["queue"],
        task=extract.task_places.of(rows["task"]),
        node=extract.node_places.of(rows["node"]),
        pushed=extract.moments(waits.pushed),
        popped=extract.until(waits.ended),
        pushed_by=extract.node_places.of(rows["pushed_by"]),
        thread=rows["thread"],
        popped_by=waits.popped_by.astype(np.int64),
        what=rows["what"],
        turn=turn,
        busy_ns=delays.busy_ns,
        slept_ns=delays.slept_ns,
        num_ahead=delays.num_ahead,
    )
    return stays, OvertakingTable(*delays.overtakings)


def gradient_table(extract: Extract) -> GradientTable:
    """Return the gradients that nodes were given."""
    held, _ = gradient_spans(extract.trace, extract.tasks.tolist())
    held = extract.shown(held)
    given = held.rows
    return GradientTable(
        extract.task_places.of(given["task"]),
        extract.node_places.of(given["node"]),
        extract.node_places.of(given["producer"]),
        given["input_nr"],
        given["remaining"],
        given["size_bytes"],
        extract.moments(held.begin),
        extract.until(held.end),
    )


def sleep_table(extract: Extract) -> SleepTable:
    """Return the sleeps of threads on queues."""
    rows = extract.trace.columns["queue_waited"]
    begin = rows["t_ns"] - rows["waited_ns"]
    rows = rows.at((begin < extract.end_ns) & (rows["t_ns"] > extract.origin_ns))
    asleep = sleep_spans(rows, times(extract.trace))
    end_ns = asleep.rows["t_ns"]
    begin_ns = np.maximum(end_ns - asleep.rows["waited_ns"], extract.origin_ns)
    return SleepTable(
        thread=asleep.rows["thread"],
        queue=asleep.rows["queue"],
        begin=np.searchsorted(extract.seq, asleep.begin),
        end=extract.until(asleep.end),
        begin_ns=extract.since_ns(begin_ns),
        end_ns=extract.since_ns(np.minimum(end_ns, extract.end_ns)),
    )


def stream_wait_table(extract: Extract) -> StreamWaitTable:
    """Return the table of waits of streams for others."""
    rows = extract.of_tasks(extract.trace.columns["stream_waited"])
    rows = rows.at(rows["producer"] >= 0)
    return StreamWaitTable(
        extract.task_places.of(rows["task"]),
        extract.node_places.of(rows["node"]),
        extract.node_places.of(rows["producer"]),
    )


def kernels_meanwhile(extract: Extract) -> list[KernelRun]:
    """Return the kernels that ran during the passes, or were still to run."""
    return [
        one
        for one in kernels(extract.trace)
        if one.launched_ns < extract.end_ns and one.end_ns > extract.origin_ns
    ]


def kernel_table(extract: Extract, ran: Sequence[KernelRun]) -> KernelTable:
    """Return those kernels as a table."""
    times = np.array(
        [(one.launched_ns, one.start_ns, one.end_ns) for one in ran], np.int64
    ).reshape(-1, 3)
    return KernelTable(
        extract.places([one.stream for one in ran]),
        extract.places([one.name for one in ran]),
        family_places([one.name for one in ran]),
        np.array([one.thread for one in ran], np.int64),
        *extract.since_ns(times).T,
    )


def kernel_wait_table(
    extract: Extract, ran: Sequence[KernelRun], waits: Sequence[StreamWait]
) -> KernelWaitTable:
    """Return the waits of kernels for kernels of other streams."""
    places = RowPlaces(np.array([one.kernel for one in ran], np.int64))
    rows = np.array(
        [(one.kernel, one.awaited_kernel, one.node, one.producer) for one in waits],
        np.int64,
    ).reshape(-1, 4)
    kernel, awaited, node, producer = rows.T
    return KernelWaitTable(
        places.of(kernel),
        places.of(awaited),
        extract.node_places.of(node),
        extract.node_places.of(producer),
    )


def blocked_table(
    extract: Extract, ran: Sequence[KernelRun], waits: Sequence[StreamWait]
) -> BlockedTable:
    """Return the times in which streams had work and waited for that of others."""
    end_ns = max([extract.end_ns, *(one.end_ns for one in ran)])
    found = list(blocked_spans(ran, waits, Period(extract.origin_ns, end_ns)))
    times = np.array(
        [(span.start_ns, span.end_ns) for _, span in found], np.int64
    ).reshape(-1, 2)
    return BlockedTable(
        extract.places([stream for stream, _ in found]),
        extract.places([span.name for _, span in found]),
        *times.T,
    )
