"""Perfetto: a trace as ``ui.perfetto.dev`` and its trace processor read it.

Tracks for threads, queues, devices and their streams; slices for passes, nodes, sleeps,
queued tasks and kernels; arrows from pushes to what was popped and from the node that
made a gradient to the one that took it; counters of queues and of buffered gradients.
Times are counted from the first moment of the trace.
"""

import itertools
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.export.table_rows import losses_rows
from gradviz.export.timeline import packets
from gradviz.export.timeline.activity import activity
from gradviz.export.timeline.arguments import (
    details,
    process_name,
    queue_name,
    thread_name,
)
from gradviz.export.timeline.facts import Details, each
from gradviz.export.timeline.fields import Fields
from gradviz.export.timeline.flows import Flows
from gradviz.export.timeline.slices import (
    KINDS,
    NODE,
    PUSH,
    Slices,
    apart,
    moments,
    nesting,
    pass_slices,
    thread_slices,
)
from gradviz.export.timeline.tracks import (
    Counter,
    Processes,
    counters,
    queued_slices,
    stream_tracks,
)
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, Narrow

#: Number of events made at a time, about.
_BATCH: Final = 1 << 12

#: Maximum number of words told of a command line.
_MAX_WORDS: Final = 64

_UNITS: Final = {"tasks": packets.COUNT, "bytes": packets.BYTES}

#: Kinds of events besides the begins of slices, which have the place of their kind.
_LOSS, _END, _COUNT = range(len(KINDS), len(KINDS) + 3)


class _Track(NamedTuple):
    """A track, or a part of one.

    Attributes:
        packet: Its own; empty of a part that is not the first.
        number: Its number.
        kind: Kind of each of its events, in the order of time.
        t_ns: Time of each, from the first moment of the trace.
        place: Place of each among the slices of its kind; of a counter its value.
    """

    packet: bytes
    number: int = 0
    kind: Narrow = np.empty(0, np.int8)
    t_ns: Column = np.empty(0, np.int64)
    place: Column = np.empty(0, np.int64)


def parts(trace: Trace) -> Iterator[bytes]:
    """The packets, some thousands a part."""
    writing = _Writing(trace)
    waiting: list[_Track] = []
    size = 0
    for track in writing.all():
        waiting.append(track)
        size += 1 + len(track.kind)
        if size >= _BATCH:
            yield writing.encoded(waiting)
            waiting, size = [], 0
    if waiting:
        yield writing.encoded(waiting)


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
        losses = [f"{what}: {told or many}" for what, many, told in losses_rows(trace)]
        self._details = {
            **details(trace, self._what),
            "loss": Details(each(losses), {}),
        }

    def all(self) -> Iterator[_Track]:
        """Every track, each behind the one that it belongs to."""
        for process in self._trace.processes:
            own, name = self._next_track(), process_name(process)
            words = process.argv[:_MAX_WORDS]
            yield _Track(packets.process(own, process.pid, name, words))
        yield from self._losses()
        for number, process in enumerate(self._trace.processes, 1):
            for track in nesting(pass_slices(self._what, process.threads)):
                own = self._next_track()
                packet = packets.lane(own, number, "backward passes")
                yield from self._nested(packet, own, track)
        for thread, slices in thread_slices(self._trace, self._what):
            yield from self._thread(thread, slices)
        yield from self._queues()
        for counter in counters(self._trace, self._what, self._processes):
            yield self._counter(counter)
        yield from self._devices()

    def encoded(self, tracks: list[_Track]) -> bytes:
        """Return the packets of some tracks and of their events."""
        sizes = [len(one.kind) for one in tracks]
        number = np.repeat([one.number for one in tracks], sizes)
        kind = np.concatenate([one.kind for one in tracks])
        t_ns = np.concatenate([one.t_ns for one in tracks])
        place = np.concatenate([one.place for one in tracks])
        found = [b""] * (len(kind) + 1)
        for own in np.unique(kind).tolist():
            rows = np.flatnonzero(kind == own)
            made = self._events(own, number[rows], t_ns[rows], place[rows])
            for row, packet in zip(rows.tolist(), made, strict=True):
                found[row] = packet
        begin = len(kind)
        for one, size in zip(reversed(tracks), reversed(sizes), strict=True):
            begin -= size
            found[begin] = one.packet + found[begin]
        return b"".join(found)

    def _events(
        self, kind: int, track: Column, t_ns: Column, place: Column
    ) -> list[bytes]:
        """Return the packets of events of one kind."""
        if kind == _END:
            return packets.ends(track, t_ns)
        if kind == _COUNT:
            return packets.counts(track, t_ns, place)
        name = KINDS[kind] if kind < len(KINDS) else "loss"
        told = self._details[name]
        return packets.named(
            packets.INSTANT if name in (PUSH, "loss") else packets.BEGIN,
            track,
            t_ns,
            name,
            told.title.at(place),
            {key: fact.at(place) for key, fact in told.arguments.items()},
            *self._flows_of(name, place),
        )

    def _flows_of(self, kind: str, places: Column) -> list[Fields]:
        flows = self._flows
        if kind == PUSH:  # an arrow starts where the node ran
            ran = self._what.queueing.run[places] >= 0
            return [packets.flows_from(flows.push(places[ran]), ran.astype(np.int64))]
        if kind == NODE:
            return [
                packets.flows_from(*flows.given.of_all(places)),
                packets.flows_to(*flows.pushes.of_all(places)),
                packets.flows_to(*flows.taken.of_all(places)),
            ]
        return []

    def _losses(self) -> Iterator[_Track]:
        """Yield a mark at the start for each loss."""
        many = len(self._details["loss"].title.values)
        if many:
            own = self._next_track()
            packet = packets.lane(own, 1, "missing from the trace")
            start, places = np.zeros(many, np.int64), np.arange(many)
            yield _Track(packet, own, np.full(many, _LOSS, np.int8), start, places)

    def _thread(self, thread: int, slices: Slices) -> Iterator[_Track]:
        name = thread_name(self._trace, thread)
        process = self._processes.of(thread)
        pid = self._trace.processes[process - 1].pid
        own = self._next_track()
        # The system's number is not known, and 0 is the idle thread.
        packet = packets.thread(own, process, pid, thread + 1, name)
        for number, track in enumerate(nesting(slices)):
            if number:
                parent, own = own, self._next_track()
                packet = packets.lane(own, parent, f"{name} ({number + 1})")
            yield from self._nested(packet, own, track)

    def _nested(self, packet: bytes, number: int, slices: Slices) -> Iterator[_Track]:
        """Yield a track and its events, in parts."""
        order = moments(slices)
        for first in range(0, len(order), _BATCH):
            some = order[first : first + _BATCH]
            begins = some >= 0
            own = slices.at(np.where(begins, some, ~some))
            # A push takes no time: it has no end.
            kept = begins | (own.kind != KINDS.index(PUSH))
            kind = np.where(begins, own.kind, _END)[kept]
            t_ns = np.where(begins, own.begin_ns, own.end_ns)[kept]
            yield _Track(
                packet, number, kind, t_ns - self._what.origin_ns, own.place[kept]
            )
            packet = b""

    def _apart(self, packet: bytes, number: int, slices: Slices) -> Iterator[_Track]:
        """The same for slices that do not overlap: there may be many such tracks."""
        for first in range(0, len(slices), _BATCH):
            own = slices.at(slice(first, first + _BATCH))
            kind = np.full(2 * len(own), _END, np.int8)
            kind[::2] = own.kind
            t_ns = np.repeat(own.begin_ns, 2)
            t_ns[1::2] = own.end_ns
            t_ns -= self._what.origin_ns
            yield _Track(packet, number, kind, t_ns, np.repeat(own.place, 2))
            packet = b""

    def _queues(self) -> Iterator[_Track]:
        for queue, tasks in queued_slices(self._what):
            name = f"queue {queue_name(self._trace, queue)}"
            pusher = int(self._what.queueing.thread[tasks.place[0]])
            for track in apart(tasks):
                own = self._next_track()
                packet = packets.lane(own, self._processes.of(pusher), name)
                yield from self._apart(packet, own, track)

    def _counter(self, counter: Counter) -> _Track:
        own = self._next_track()
        unit = _UNITS[counter.unit]
        packet = packets.counter(own, counter.process, counter.name, unit)
        t_ns = counter.t_ns - self._what.origin_ns
        kind = np.full(len(t_ns), _COUNT, np.int8)
        return _Track(packet, own, kind, t_ns, counter.values)

    def _devices(self) -> Iterator[_Track]:
        streams = stream_tracks(self._what, self._processes)
        found = {(one.process, one.device) for one in streams} | self._ran_on()
        tracks = {one: self._next_track() for one in sorted(found)}
        for (process, device), own in tracks.items():
            yield _Track(packets.lane(own, process, f"device {device}"))
        for stream in streams:
            parent = tracks[stream.process, stream.device]
            for track in apart(stream.kernels):
                own = self._next_track()
                packet = packets.lane(own, parent, f"stream {stream.stream}")
                yield from self._apart(packet, own, track)

    def _ran_on(self) -> set[tuple[int, str]]:
        """The processes and devices of nodes that ran."""
        runs = self._what.runs
        names, places = self._trace.nodes.names(runs.node, "device")
        pairs = np.unique(runs.thread * len(names) + places).tolist()
        return {
            (self._processes.of(thread), shortened(names[place], MAX_TEXT))
            for thread, place in (divmod(pair, len(names)) for pair in pairs)
        }
