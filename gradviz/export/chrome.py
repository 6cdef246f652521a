"""Chrome's trace format: JSON for chrome://tracing and whatever else reads it.

A process of the viewer for each process of the trace, and one for each of its devices.
Slices are complete events (``X``), tasks in queues asynchronous ones (``b``, ``e``),
arrows flows (``s``, ``f``), lengths of queues and bytes of gradients counters (``C``).
Times are microseconds from the first moment of the trace.

Source: the document Trace Event Format.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from gradviz.export.timeline.activity import activity
from gradviz.export.timeline.arguments import (
    details,
    process_name,
    queue_name,
    thread_name,
)
from gradviz.export.timeline.flows import Flows
from gradviz.export.timeline.slices import (
    NODE,
    PUSH,
    QUEUED,
    Slice,
    Slices,
    apart,
    nesting,
    pass_slices,
    thread_slices,
)
from gradviz.export.timeline.tracks import (
    Processes,
    counters,
    queued_slices,
    stream_tracks,
)
from gradviz.trace.format.model import Trace

#: Number of events in a part.
_BATCH: Final = 1 << 10

ViewerEvent: TypeAlias = dict[str, Any]


def parts(trace: Trace) -> Iterator[bytes]:
    """The JSON, about a thousand events a part."""
    encode = msgspec.json.Encoder().encode
    about = {
        "header": trace.header,
        "losses": trace.losses,
        "is_complete": trace.losses.is_complete,
    }
    yield (
        b'{"displayTimeUnit":"ns","otherData":' + encode(about) + b',"traceEvents":[\n'
    )
    events = _Events(trace).all()
    separator = b""
    while batch := list(itertools.islice(events, _BATCH)):
        yield separator + b",\n".join(map(encode, batch))
        separator = b",\n"
    yield b"\n]}\n"


class _Events:
    """The events of a trace.

    A viewer tells tracks apart by the numbers of a process and a thread. The former
    count processes from 1 and then devices, the latter count all tracks.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._what = activity(trace)
        self._details = details(trace, self._what)
        self._flows = Flows(self._what)
        self._next_track = itertools.count(1).__next__
        self._next_process = itertools.count(1).__next__
        self._processes = Processes(trace)

    def all(self) -> Iterator[ViewerEvent]:
        """Every event."""
        for process in self._trace.processes:
            pid = self._next_process()
            name = f"{process_name(process)}, pid {process.pid}"
            yield _name("process_name", pid, 0, name)
            for slices in nesting(pass_slices(self._what, process.threads)):
                yield from self._track(pid, "backward passes", slices)
        for thread, slices in thread_slices(self._trace, self._what):
            name = thread_name(self._trace, thread)
            for number, track in enumerate(nesting(slices)):
                more = f" ({number + 1})" if number else ""
                yield from self._track(self._processes.of(thread), name + more, track)
        yield from self._queued()
        yield from self._counters()
        yield from self._devices()

    def _track(self, pid: int, name: str, slices: Slices) -> Iterator[ViewerEvent]:
        tid = self._next_track()
        yield _name("thread_name", pid, tid, name)
        for one in slices:
            event = self._event("X", pid, tid, one.begin_ns)
            event["name"] = self._details[one.kind].name(one.place)
            event["cat"] = one.kind
            event["dur"] = (one.end_ns - one.begin_ns) / 1000
            event["args"] = self._details[one.kind].said(one.place)
            yield event
            if one.kind == NODE:
                yield from self._flows_of_run(pid, tid, one)
            elif one.kind == PUSH and self._what.queueing.run[one.place] >= 0:
                begun = self._event("s", pid, tid, one.begin_ns)
                yield _flow(begun, "push", self._flows.push(one.place))

    def _flows_of_run(self, pid: int, tid: int, run: Slice) -> Iterator[ViewerEvent]:
        gradients = self._what.gradients
        for number in self._flows.given.of(run.place):
            when = int(gradients.begin_ns[self._flows.gradient(number)])
            inside = min(max(when, run.begin_ns), run.end_ns)
            yield _flow(self._event("s", pid, tid, inside), "gradient", number)
        ends = [("push", one) for one in self._flows.pushes.of(run.place)]
        ends += [("gradient", one) for one in self._flows.taken.of(run.place)]
        for name, number in ends:
            event = self._event("f", pid, tid, run.begin_ns)
            event["bp"] = "e"  # it ends at the slice around it
            yield _flow(event, name, number)

    def _queued(self) -> Iterator[ViewerEvent]:
        told = self._details[QUEUED]
        for queue, tasks in queued_slices(self._what):
            category = f"queue {queue_name(self._trace, queue)}"
            pusher = int(self._what.queueing.thread[tasks.place[0]])
            for one in tasks:
                for phase, t_ns in (("b", one.begin_ns), ("e", one.end_ns)):
                    event = self._event(phase, self._processes.of(pusher), 0, t_ns)
                    event["name"] = told.name(one.place)
                    event["cat"] = category
                    event["id"] = self._flows.push(one.place)
                    event["args"] = told.said(one.place)
                    yield event

    def _counters(self) -> Iterator[ViewerEvent]:
        for one in counters(self._trace, self._what, self._processes):
            for t_ns, value in zip(one.t_ns.tolist(), one.values.tolist(), strict=True):
                event = self._event("C", one.process, 0, t_ns)
                yield event | {"name": one.name, "args": {one.unit: value}}

    def _devices(self) -> Iterator[ViewerEvent]:
        devices: dict[tuple[int, str], int] = {}
        for stream in stream_tracks(self._what, self._processes):
            key = stream.process, stream.device
            if key not in devices:
                devices[key] = self._next_process()
                yield _name("process_name", devices[key], 0, f"device {stream.device}")
            for track in apart(stream.kernels):
                yield from self._track(devices[key], f"stream {stream.stream}", track)

    def _event(self, phase: str, pid: int, tid: int, t_ns: int) -> ViewerEvent:
        ts = (t_ns - self._what.origin_ns) / 1000
        return {"ph": phase, "pid": pid, "tid": tid, "ts": ts}


def _flow(event: ViewerEvent, name: str, number: int) -> ViewerEvent:
    return event | {"name": name, "cat": name, "id": number}


def _name(of: str, pid: int, tid: int, name: str) -> ViewerEvent:
    return {"ph": "M", "pid": pid, "tid": tid, "name": of, "args": {"name": name}}
