"""Tracks besides those of threads, and their processes."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from gradviz.analysis.tables.kernels import stream_order_key
from gradviz.export.timeline.activity import Activity, levels
from gradviz.export.timeline.arguments import queue_name
from gradviz.export.timeline.slices import KERNEL, QUEUED, Slices, grouped, of_kind
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column


class Counter(NamedTuple):
    """A number that changes over time.

    Attributes:
        process: Number of the process that it belongs to.
        name: Its name in the timeline.
        unit: Unit of its numbers.
        t_ns: Times at which it changed.
        values: Its new value at each.
    """

    process: int
    name: str
    unit: Literal["tasks", "bytes"]
    t_ns: Column
    values: Column


class StreamTrack(NamedTuple):
    """A stream of a device in a process, with its work."""

    process: int
    device: str
    stream: str
    kernels: Slices


class Processes:
    """Owner process of each thread, from 1; unknown threads are its own."""

    def __init__(self, trace: Trace) -> None:
        self._by_thread = {
            thread: number
            for number, process in enumerate(trace.processes, 1)
            for thread in process.threads
        }

    def of(self, thread: int) -> int:
        """The number of a thread's process."""
        return self._by_thread.get(thread, 1)


def queued_slices(what: Activity) -> Iterator[tuple[int, Slices]]:
    """Yield each queue with the tasks that waited in it, in order of arrival."""
    queueing = what.queueing
    every = of_kind(QUEUED, queueing.begin_ns, queueing.end_ns)
    for queue, places in grouped(queueing.queue):
        yield queue, every.at(places)


def counters(trace: Trace, what: Activity, processes: Processes) -> Iterator[Counter]:
    """Yield the lengths of queues, and the bytes of gradients in input buffers."""
    queueing, gradients = what.queueing, what.gradients
    for queue in np.unique(queueing.queue).tolist():
        mine = queueing.queue == queue
        yield Counter(
            processes.of(int(queueing.thread[mine][0])),
            f"queue {queue_name(trace, queue)}: length",
            "tasks",
            *levels(
                queueing.begin_ns[mine],
                np.maximum(queueing.begin_ns, queueing.end_ns)[mine],
                np.ones(np.count_nonzero(mine), np.int64),
            ),
        )
    owner = np.array([processes.of(one) for one in gradients.thread.tolist()], np.int64)
    for process in np.unique(owner).tolist():
        mine = owner == process
        yield Counter(
            process,
            "buffered gradients",
            "bytes",
            *levels(
                gradients.begin_ns[mine],
                np.maximum(gradients.begin_ns, gradients.end_ns)[mine],
                gradients.size_bytes[mine],
            ),
        )


def stream_tracks(what: Activity, processes: Processes) -> list[StreamTrack]:
    """The streams that did work, as people count them."""
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, kernel in enumerate(what.kernels):
        found[processes.of(kernel.thread), kernel.stream].append(place)
    every = of_kind(
        KERNEL,
        np.array([one.start_ns for one in what.kernels], np.int64),
        np.array([one.end_ns for one in what.kernels], np.int64),
    )
    order = sorted(found, key=lambda one: (one[0], stream_order_key(one[1])))
    return [
        StreamTrack(
            process, what.kernels[places[0]].device, stream, every.at(np.array(places))
        )
        for process, stream in order
        for places in [found[process, stream]]
    ]
