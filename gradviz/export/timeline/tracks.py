"""Tracks besides those of threads, and their processes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from gradviz.analysis.tables.kernels import KernelRun, stream_order_key
from gradviz.export.timeline.activity import Activity, levels
from gradviz.export.timeline.arguments import queue_name
from gradviz.trace.format.model import Trace

#: A task in a queue: from when to when, and its place among what was queued.
LyingTask: TypeAlias = tuple[int, int, int]


class Counter(NamedTuple):
    """A number that changes over time.

    Attributes:
        process: Number of the process that it belongs to.
        name: Its name in the timeline.
        unit: Unit of its numbers.
        steps: Times at which it changed, each with its new value.
    """

    process: int
    name: str
    unit: Literal["tasks", "bytes"]
    steps: list[tuple[int, int]]


class StreamTrack(NamedTuple):
    """A stream of a device in a process, with its work."""

    process: int
    device: str
    stream: str
    kernels: list[KernelRun]


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


def queue_tasks(what: Activity) -> Mapping[int, list[LyingTask]]:
    """Return the tasks that waited in each queue, in order of arrival."""
    queueing = what.queueing
    found: dict[int, list[LyingTask]] = defaultdict(list)
    rows = zip(
        queueing.queue.tolist(),
        queueing.begin_ns.tolist(),
        queueing.end_ns.tolist(),
        strict=True,
    )
    for place, (queue, begin_ns, end_ns) in enumerate(rows):
        found[queue].append((begin_ns, max(begin_ns, end_ns), place))
    return dict(sorted(found.items()))


def counters(trace: Trace, what: Activity, processes: Processes) -> Iterator[Counter]:
    """Yield the lengths of queues, and the bytes of gradients in input buffers."""
    queueing, gradients = what.queueing, what.gradients
    for queue in np.unique(queueing.queue).tolist():
        mine = queueing.queue == queue
        yield Counter(
            processes.of(int(queueing.thread[mine][0])),
            f"queue {queue_name(trace, queue)}: length",
            "tasks",
            levels(
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
            levels(
                gradients.begin_ns[mine],
                np.maximum(gradients.begin_ns, gradients.end_ns)[mine],
                gradients.size_bytes[mine],
            ),
        )


def stream_tracks(what: Activity, processes: Processes) -> list[StreamTrack]:
    """The streams that did work, as people count them."""
    found: dict[tuple[int, str], list[KernelRun]] = defaultdict(list)
    for kernel in what.kernels:
        found[processes.of(kernel.thread), kernel.stream].append(kernel)
    order = sorted(found, key=lambda one: (one[0], stream_order_key(one[1])))
    return [
        StreamTrack(process, found[process, stream][0].device, stream, kernels)
        for process, stream in order
        for kernels in [found[process, stream]]
    ]
