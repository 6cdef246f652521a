"""Perfetto: a trace as ``ui.perfetto.dev`` and its trace processor read it.

Tracks for threads, queues, devices and their streams; slices for passes, nodes, sleeps,
queued tasks and kernels; arrows from pushes to what was popped and from the node that
made a gradient to the one that took it; counters of queues and of buffered gradients.
Times are counted from the first moment of the trace.
"""

import itertools
from collections.abc import Iterator
from typing import Final

import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.export.table_rows import losses_rows
from gradviz.export.timeline import packets
from gradviz.export.timeline.activity import activity
from gradviz.export.timeline.arguments import (
    arguments,
    of_kernel,
    of_queued,
    process_name,
    queue_name,
    queued_title,
    thread_name,
    title,
)
from gradviz.export.timeline.flows import Flows
from gradviz.export.timeline.slices import (
    NODE,
    PUSH,
    Slices,
    apart,
    begins_and_ends,
    nesting,
    pass_slices,
    thread_slices,
)
from gradviz.export.timeline.tracks import (
    Counter,
    Processes,
    counters,
    queue_tasks,
    stream_tracks,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

#: Number of packets in a part.
_BATCH: Final = 1 << 10

#: Maximum number of words told of a command line.
_MAX_WORDS: Final = 64

_UNITS: Final = {"tasks": packets.COUNT, "bytes": packets.BYTES}


def parts(trace: Trace) -> Iterator[bytes]:
    """The packets, about a thousand a part."""
    every = _Writing(trace).all()
    while batch := list(itertools.islice(every, _BATCH)):
        yield b"".join(batch)


class _Writing:
    """Makes the packets of a trace.

    Tracks are numbered from 1 on in the order in which they come, those of processes
    first. So each has the number of its process.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._what = activity(trace)
        self._flows = Flows(self._what)
        self._processes = Processes(trace)
        self._next_track = itertools.count(1).__next__

    def all(self) -> Iterator[bytes]:
        """Every packet; those of a track in the order of time, behind its own."""
        for process in self._trace.processes:
            name = process_name(process)
            yield packets.process(
                self._next_track(), process.pid, name, process.argv[:_MAX_WORDS]
            )
        yield from self._losses()
        for number, process in enumerate(self._trace.processes, 1):
            for track in nesting(pass_slices(self._what, process.threads)):
                own = self._next_track()
                yield packets.lane(own, number, "backward passes")
                yield from self._nested(own, track)
        for thread, slices in thread_slices(self._trace, self._what):
            yield from self._thread(thread, slices)
        yield from self._queues()
        for counter in counters(self._trace, self._what, self._processes):
            yield from self._counter(counter)
        yield from self._devices()

    def _losses(self) -> Iterator[bytes]:
        """Yield a mark at the start for each loss."""
        lost = list(losses_rows(self._trace))
        if not lost:
            return
        own = self._next_track()
        yield packets.lane(own, 1, "missing from the trace")
        for what, number, told in lost:
            yield packets.named(
                packets.INSTANT, own, 0, f"{what}: {told or number}", "loss", {}
            )

    def _thread(self, thread: int, slices: Slices) -> Iterator[bytes]:
        name = thread_name(self._trace, thread)
        process = self._processes.of(thread)
        pid = self._trace.processes[process - 1].pid
        own = self._next_track()
        # The system's number is not known, and 0 is the idle thread.
        yield packets.thread(own, process, pid, thread + 1, name)
        for number, track in enumerate(nesting(slices)):
            if number:
                parent, own = own, self._next_track()
                yield packets.lane(own, parent, f"{name} ({number + 1})")
            yield from self._nested(own, track)

    def _nested(self, track: int, slices: Slices) -> Iterator[bytes]:
        for t_ns, one, begins in begins_and_ends(slices):
            name = title(self._trace, self._what, one)
            if one.kind == PUSH:
                if begins:
                    yield packets.named(
                        packets.INSTANT,
                        track,
                        self._at(t_ns),
                        name,
                        one.kind,
                        of_queued(self._trace, self._what, one.place),
                        self._flow_of_push(one.place),
                    )
            elif begins:
                yield packets.named(
                    packets.BEGIN,
                    track,
                    self._at(t_ns),
                    name,
                    one.kind,
                    arguments(self._trace, self._what, one),
                    self._flows_of_run(one.place) if one.kind == NODE else b"",
                )
            else:
                yield packets.end(track, self._at(t_ns))

    def _flow_of_push(self, place: int) -> bytes:
        """Return the arrow that starts at a push, if the node ran."""
        if self._what.queueing.run[place] < 0:
            return b""
        return packets.flow_from(self._flows.push(place))

    def _flows_of_run(self, place: int) -> bytes:
        begins = map(packets.flow_from, self._flows.given(place))
        ends = (*self._flows.pushes(place), *self._flows.taken(place))
        return b"".join((*begins, *map(packets.flow_to, ends)))

    def _queues(self) -> Iterator[bytes]:
        for queue, tasks in queue_tasks(self._what).items():
            name = f"queue {queue_name(self._trace, queue)}"
            pusher = int(self._what.queueing.thread[tasks[0][2]])
            for track in apart(tasks):
                own = self._next_track()
                yield packets.lane(own, self._processes.of(pusher), name)
                for begin_ns, end_ns, place in track:
                    yield packets.named(
                        packets.BEGIN,
                        own,
                        self._at(begin_ns),
                        queued_title(self._trace, self._what, place),
                        "queue",
                        of_queued(self._trace, self._what, place),
                    )
                    yield packets.end(own, self._at(end_ns))

    def _counter(self, counter: Counter) -> Iterator[bytes]:
        own = self._next_track()
        unit = _UNITS[counter.unit]
        yield packets.counter(own, counter.process, counter.name, unit)
        for t_ns, value in counter.steps:
            yield packets.count(own, self._at(t_ns), value)

    def _devices(self) -> Iterator[bytes]:
        streams = stream_tracks(self._what, self._processes)
        found = {(one.process, one.device) for one in streams} | self._ran_on()
        tracks = {one: self._next_track() for one in sorted(found)}
        for (process, device), own in tracks.items():
            yield packets.lane(own, process, f"device {device}")
        for stream in streams:
            parent = tracks[stream.process, stream.device]
            lasting = [(one.start_ns, one.end_ns, one) for one in stream.kernels]
            for track in apart(lasting):
                own = self._next_track()
                yield packets.lane(own, parent, f"stream {stream.stream}")
                for begin_ns, end_ns, one in track:
                    yield packets.named(
                        packets.BEGIN,
                        own,
                        self._at(begin_ns),
                        one.name,
                        "kernel",
                        of_kernel(one),
                    )
                    yield packets.end(own, self._at(end_ns))

    def _ran_on(self) -> set[tuple[int, str]]:
        """The processes and devices of nodes that ran."""
        runs = self._what.runs
        names, places = self._trace.nodes.names(runs.node, "device")
        pairs = np.unique(runs.thread * len(names) + places).tolist()
        return {
            (self._processes.of(thread), shortened(names[place], MAX_TEXT))
            for thread, place in (divmod(pair, len(names)) for pair in pairs)
        }

    def _at(self, t_ns: int) -> int:
        return t_ns - self._what.origin_ns
