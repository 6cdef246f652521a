"""Events of CUDA devices, as simulated ones have them, from the profiler's records.

See Note [What the profiler tells of devices] in `device_records`.

Note [Who launched it]
~~~~~~~~~~~~~~~~~~~~~~
A call belongs to the node whose function it was made in: the profiler links the two, or
its thread and time tell. Between two functions the engine itself makes calls: it hands
on a gradient to a node of another stream, which has to wait for the stream of the node
that made it. So the producer is the last node that ended on that thread. Who waits is
known where it hands on to one node alone. After the last node the stream of the caller
waits for the streams of leaves.
Source: torch/csrc/autograd/input_buffer.cpp, InputBuffer::add; engine.cpp,
GraphTask::exec_post_processing.

What nobody says is inferred where one thing can be meant, and says so: an event is
that of the last call of ``cudaEventRecord`` on the thread of the wait; the host waits
for the stream to which its thread gave work last. Else it is left out.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.pytorch.reconstruction.device_records import (
    DeviceRecords,
    DeviceWork,
    HostCall,
)
from gradviz.pytorch.reconstruction.seen_queues import ReplayedPass, SeenThread
from gradviz.trace.events import (
    DeviceSynchronized,
    Event,
    EventRecorded,
    EventSynchronized,
    KernelLaunched,
    KernelRan,
    LeafStreamSynced,
    StreamSynchronized,
    StreamWaited,
)
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.reporting.ids import next_event_id, next_kernel_id

_RECORDS: Final = frozenset(
    {"cudaEventRecord", "cudaEventRecordWithFlags", "hipEventRecord"}
)
_WAITS: Final = frozenset({"cudaStreamWaitEvent", "hipStreamWaitEvent"})
_STREAM_SYNCS: Final = frozenset(
    {"cudaStreamSynchronize", "hipStreamSynchronize", "cudaMemcpy", "hipMemcpy"}
)
_DEVICE_SYNCS: Final = frozenset({"cudaDeviceSynchronize", "hipDeviceSynchronize"})
_EVENT_SYNCS: Final = frozenset({"cudaEventSynchronize", "hipEventSynchronize"})

#: Of a watched function: its start and end, its pass and node, on one thread.
_FunctionSpan = tuple[int, int, int, int]


class DeviceRows:
    """Rows of events of one pass on one thread."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, list[tuple[int | str, ...]]] = defaultdict(list)

    def add(
        self, kind: type[Event], *row: int | str, is_inferred: bool = False
    ) -> None:
        """Add an event: its time, pass, node, and the columns of its kind."""
        self._rows[Inferred(kind) if is_inferred else kind].append(row)

    def flat(self) -> dict[Hashable, list[int | str]]:
        """Return the rows as `Probe.rows_reported` takes them."""
        return {
            key: [one for row in sorted(rows, key=lambda row: row[0]) for one in row]
            for key, rows in self._rows.items()
        }


class _CallPlace(NamedTuple):
    """The place of a call.

    Attributes:
        of: The pass.
        thread: The thread.
        node: The node whose function it was made in, -1 for none.
        before: The node that had ended last on that thread, -1 for none.
    """

    of: ReplayedPass
    thread: SeenThread
    node: int
    before: int


class _RecordedEvent(NamedTuple):
    """An event that was recorded: its id, and its stream."""

    event: int
    stream: str


def tell_devices(
    records: DeviceRecords, passes: Sequence[ReplayedPass], offset_ns: int
) -> None:
    """Report the devices' work for observed passes.

    Args:
        records: Of the profiler.
        passes: As they were gone through, in the order in which they were called.
        offset_ns: From the profiler's clock to that of events.
    """
    reader = _CallReader(records, passes, offset_ns)
    for one in records.calls:
        reader.take(one)
    for (replay, thread), rows in reader.rows.items():
        listener = replay.about.listener
        listener.rows_reported(thread.number, thread.name, rows.flat())


class _CallReader:
    """Goes through the calls of all threads, in the order of time."""

    def __init__(
        self, records: DeviceRecords, passes: Sequence[ReplayedPass], offset_ns: int
    ) -> None:
        self.rows: dict[tuple[ReplayedPass, SeenThread], DeviceRows] = defaultdict(
            DeviceRows
        )
        self._records = records
        self._offset_ns = offset_ns
        self._places = _CallPlaces(passes)
        self._work: dict[int, list[DeviceWork]] = defaultdict(list)
        for one in records.work:
            self._work[one.correlation].append(one)
        #: Of each thread the stream to which it gave work last, and the last event.
        self._given: dict[int, DeviceWork] = {}
        self._recorded: dict[int, HostCall] = {}
        self._calls = {one.correlation: one for one in records.calls}
        #: By the id of the call that recorded it; told once it is waited for.
        self._marks: dict[int, _RecordedEvent] = {}

    def take(self, call: HostCall) -> None:
        """Report a call, and its launches."""
        place = self._place_of(call)
        for one in self._work.get(call.correlation, ()):
            self._given[call.thread] = one
            if place is not None:
                self._launched(call, one, place)
        if call.name in _RECORDS:
            self._recorded[call.thread] = call
        if place is None:
            return
        if call.name in _WAITS:
            self._waited(call, place)
        elif call.name in _EVENT_SYNCS:
            self._event_synchronized(call, place)
        elif call.name in _STREAM_SYNCS:
            self._stream_synchronized(call, place)
        elif call.name in _DEVICE_SYNCS:
            self._device_synchronized(call, place)

    def _launched(self, call: HostCall, one: DeviceWork, place: _CallPlace) -> None:
        rows = self.rows[place.of, place.thread]
        kernel, task = next_kernel_id(), place.of.about.task
        launched = call.begin_ns + self._offset_ns
        began, ended = one.begin_ns + self._offset_ns, one.end_ns + self._offset_ns
        stream, node = one.stream_name, place.node
        rows.add(KernelLaunched, launched, task, node, kernel, stream, one.name, "")
        told = max(launched + 1, ended)
        rows.add(KernelRan, told, task, node, kernel, began, ended)

    def _waited(self, call: HostCall, place: _CallPlace) -> None:
        wait = self._records.synchronizations.get(call.correlation)
        if wait is None or wait.stream < 0:
            return  # nobody says which stream
        mark, is_inferred = self._mark_of(wait, call)
        if mark is None:
            return
        rows, replay = self.rows[place.of, place.thread], place.of
        t_ns, task = call.begin_ns + self._offset_ns, replay.about.task
        stream = wait.stream_name
        node, producer = place.node, -1
        if node < 0:
            node, producer = (
                self._places.consumer_of(replay, place.before),
                place.before,
            )
            is_callers = place.thread.number == replay.about.thread
            if is_callers and self._places.is_after_all(replay, t_ns):
                rows.add(
                    LeafStreamSynced,
                    *(t_ns, task, -1, mark.stream, stream, mark.event),
                    is_inferred=is_inferred,
                )
                return
        rows.add(
            StreamWaited,
            *(t_ns, task, node, stream, mark.event, producer, ""),
            is_inferred=is_inferred,
        )

    def _mark_of(
        self, wait: DeviceWork, call: HostCall
    ) -> tuple[_RecordedEvent | None, bool]:
        """Return the event that is waited for, and whether that is inferred."""
        recorded, is_inferred = self._calls.get(wait.recorded), False
        stream = f"cuda:{wait.device}/{wait.recorded_on}"
        if recorded is None or wait.recorded_on < 0:
            recorded, is_inferred = self._recorded.get(call.thread), True
            given = self._given.get(call.thread)
            if recorded is None or given is None:
                return None, True
            stream = given.stream_name
        mark = self._marks.get(recorded.correlation)
        if mark is None:
            place = self._place_of(recorded)
            if place is None:
                return None, is_inferred
            mark = self._marks[recorded.correlation] = _RecordedEvent(
                next_event_id(), stream
            )
            self.rows[place.of, place.thread].add(
                EventRecorded,
                recorded.begin_ns + self._offset_ns,
                place.of.about.task,
                place.node if place.node >= 0 else place.before,
                stream,
                mark.event,
                is_inferred=is_inferred,
            )
        return mark, is_inferred

    def _event_synchronized(self, call: HostCall, place: _CallPlace) -> None:
        wait = self._records.synchronizations.get(call.correlation)
        mark, is_inferred = (None, True) if wait is None else self._mark_of(wait, call)
        if mark is not None:
            self._host_waited(
                EventSynchronized, call, place, mark.event, is_inferred=is_inferred
            )

    def _stream_synchronized(self, call: HostCall, place: _CallPlace) -> None:
        wait = self._records.synchronizations.get(call.correlation)
        given = self._given.get(call.thread)
        if wait is not None and wait.stream >= 0:
            stream = wait.stream_name
            self._host_waited(StreamSynchronized, call, place, stream)
        elif given is not None:
            stream, is_told = given.stream_name, call.name.endswith("Memcpy")
            self._host_waited(
                StreamSynchronized, call, place, stream, is_inferred=not is_told
            )

    def _device_synchronized(self, call: HostCall, place: _CallPlace) -> None:
        wait = self._records.synchronizations.get(call.correlation)
        given = wait or self._given.get(call.thread)
        if given is not None:
            device = f"cuda:{given.device}"
            self._host_waited(
                DeviceSynchronized, call, place, device, is_inferred=wait is None
            )

    def _host_waited(
        self,
        kind: type[Event],
        call: HostCall,
        place: _CallPlace,
        what: int | str,
        *,
        is_inferred: bool = False,
    ) -> None:
        """Tell that the host knows from the end of a call on that something is done."""
        ended = call.end_ns + self._offset_ns
        row = ended, place.of.about.task, place.node, what
        self.rows[place.of, place.thread].add(kind, *row, is_inferred=is_inferred)

    def _place_of(self, call: HostCall) -> _CallPlace | None:
        """Find where a call was made, None if in no pass that is known."""
        function = self._records.functions.get(call.function)
        thread = call.thread if function is None else function[0]
        return self._places.at(thread, call.begin_ns + self._offset_ns)


class _CallPlaces:
    """Times of nodes, by thread."""

    def __init__(self, passes: Sequence[ReplayedPass]) -> None:
        self._passes = passes
        self._of_task = {one.about.task: one for one in passes}
        self._threads: dict[int, SeenThread] = {}
        self._spans: dict[int, list[_FunctionSpan]] = defaultdict(list)
        self._last: dict[int, int] = {}  # of each pass, when its last node ended
        for thread, span in (found for one in passes for found in _spans_of(one)):
            self._threads[thread.number] = thread
            self._spans[thread.number].append(span)
            self._last[span[2]] = max(self._last.get(span[2], 0), span[1])
        for spans in self._spans.values():
            spans.sort()

    def at(self, thread: int, t_ns: int) -> _CallPlace | None:
        """Return the node that was running then; the innermost of several."""
        spans = self._spans.get(thread, [])
        before = -1
        place = bisect_right(spans, t_ns, key=lambda span: span[0])
        for begin, end, task, node in reversed(spans[:place]):
            if begin <= t_ns <= end:
                return _CallPlace(self._of_task[task], self._threads[thread], node, -1)
            if before < 0:
                before = node
                last_task = task
        open_there = [
            one
            for one in self._passes
            if one.about.called_ns <= t_ns <= one.about.returned_ns
        ]
        if thread not in self._threads or not open_there:
            return None
        mine = [
            one for one in open_there if before >= 0 and one.about.task == last_task
        ]
        return _CallPlace((mine or open_there)[-1], self._threads[thread], -1, before)

    def is_after_all(self, replay: ReplayedPass, t_ns: int) -> bool:
        """Return whether all nodes of a pass have ended."""
        return t_ns > self._last.get(replay.about.task, t_ns)

    def consumer_of(self, replay: ReplayedPass, producer: int) -> int:
        """Return the one node to which another hands its gradients; -1 if several."""
        graph = replay.about.graph
        for node in () if graph is None or producer < 0 else graph.nodes:
            if node.id == producer:
                after = {edge.node.id for edge in node.next_edges if edge.node}
                return after.pop() if len(after) == 1 else -1
        return -1


def _spans_of(replay: ReplayedPass) -> Iterator[tuple[SeenThread, _FunctionSpan]]:
    """Yield the functions that ran in a pass, with their threads."""
    for thread, rows in replay.rows.items():
        # It lets go of its gradients right after its end, and then hands on others.
        ends = {
            (table[at + 1], table[at + 2]): int(table[at])
            for table in (rows.completed, rows.freed)
            for at in range(0, len(table), 4)
        }
        for at in range(0, len(rows.started), 3):
            begin, task, node = map(int, rows.started[at : at + 3])
            end = ends.get((task, node), replay.about.returned_ns)
            yield thread, (begin, end, task, node)
