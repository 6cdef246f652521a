# ruff: noqa: D102 - what a probe's methods mean is said in `probe`
"""The recorder: a probe that keeps its reports as a trace.

Its methods are called in the middle of every backward, so each does the least: it
reads the clock and appends one row of integers to a list of the calling thread (see
`buffer`). It takes no lock, touches no file, never raises and never waits; the
`writer` does the rest elsewhere.
"""

import atexit
import contextlib
import functools
import inspect
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from gradviz.posix import at_fork
from gradviz.thread_frames import thread_frames
from gradviz.trace import probe
from gradviz.trace.events import (
    KINDS,
    ArrayAccessed,
    Event,
    EventRecorded,
    ForwardBegun,
    ForwardEnded,
    HandedOver,
    HandoversHeard,
    HostAccessed,
    KernelLaunched,
    KernelRan,
    Mark,
    MemoryAllocated,
    MemoryFreed,
    NodeFailed,
    NodeStarted,
    ProgramThreadBegun,
    ReentrantEntered,
    ReentrantLeft,
    SavedElsewhere,
    StreamWaited,
    TakenOver,
    TaskBegun,
    TaskPopped,
    TensorSaved,
    kind_name,
    own_columns,
)
from gradviz.trace.format.clock import Clock, event_clock
from gradviz.trace.format.kept_events import layouts_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.row_layouts import Inferred
from gradviz.trace.format.scope import Scope
from gradviz.trace.format.strings import Strings
from gradviz.trace.node_like import NodeLike
from gradviz.trace.node_reports import JOINED, NodeReports
from gradviz.trace.probe import NO_LINES, Model, Probe, Tracking
from gradviz.trace.recording.buffer import (
    MANY,
    TOO_MANY,
    Buffers,
    NoRows,
    ThreadRows,
)
from gradviz.trace.recording.node_filter import NodeFilter
from gradviz.trace.recording.node_rows import NodeRows, Origins
from gradviz.trace.recording.pending_graph import PendingGraph
from gradviz.trace.recording.sink import Sink
from gradviz.trace.recording.writer import Counts, Writer
from gradviz.trace.reporting.location import Locations, NoLocations, Stacks
from gradviz.trace.reporting.thread_knowledge import note_news

if TYPE_CHECKING:
    from gradviz.trace.recording.rings.ring_writer import RingWriter, Save

#: Time within which a report is in the sink, unless the sink is slow.
_FLUSH_EVERY_S: Final = 0.05

#: Time that `close` waits for a sink that does not return.
_CLOSE_TIMEOUT_S: Final = 5.0


#: A name of a stream is looked for at so many lines.
_MAX_TRIES: Final = 8


#: Columns that a report may leave out of a row, which then has -1 there.
_COMMON: Final = ("task", "node")


#: The scope of a recorder that keeps everything.
_EVERYTHING: Final = Scope()

#: Keys of rows in which there are texts.
_WITH_TEXTS: Final = frozenset(
    key
    for kind in KINDS.values()
    if any(one.type is str for one in own_columns(kind))
    for key in (kind, Inferred(kind))
)


def _nameless(stream: str, frame: FrameType) -> tuple[str, str]:
    del stream, frame
    return "", ""


class Recorder(Probe):
    """Records into a sink until it is closed. Install it with `probe.install`.

    Args:
        sink: Receives the trace; a header is written to it at once. A flight recorder
            (a scope with a ring) keeps it and leaves the sink alone.
        clock: Monotonic nanoseconds.
        thread_clock: Running time of the calling thread, in nanoseconds; None is the
            operating system's with its own clock, and with any other nobody knows.
        local: The class of thread-local storage; see `Buffers`.
        thread_name: The name of the calling thread.
        flush_every_s: Number of seconds after which an event is in the sink at the
            latest. None starts no writer thread: everything is written by `flush` and
            `close`.
        describe_stream: Name of a stream in a frame that uses it, and the line that
            made it; empty where that is not known.
        scope: Scope of the events that are kept; its schedule is for who installs this.

    Raises:
        Exception: Whatever the sink raises when the header is written.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        clock: Clock = time.perf_counter_ns,
        thread_clock: Clock | None = None,
        local: type[threading.local] = threading.local,
        thread_name: Callable[[], str] = lambda: threading.current_thread().name,
        flush_every_s: float | None = _FLUSH_EVERY_S,
        describe_stream: Callable[[str, FrameType], tuple[str, str]] = _nameless,
        scope: Scope = _EVERYTHING,
    ) -> None:
        self._clock = event_clock(clock)
        self._strings = Strings()
        find = NoLocations if scope.stacks == "none" else Locations
        self._locations = find(self._strings.intern)
        self._stacks = Stacks(self._strings.intern) if scope.stacks == "full" else None
        self._filter = NodeFilter(scope) if scope.only else None
        self._reports = functools.partial(
            NodeRows,
            clock=self._clock,
            call_writer=_weakly(self._call_writer),
            origins=Origins(
                self._locations.of_caller,
                None if self._stacks is None else self._stacks.of_caller,
                self._filter,
            ),
        )
        if thread_clock is None and clock is time.perf_counter_ns:
            thread_clock = time.thread_time_ns
        self._buffers = Buffers(
            local=local,
            thread_name=thread_name,
            reports=self._reports,
            thread_clock=thread_clock,
            layouts=layouts_of(scope),
        )
        self._local: ThreadRows = self._buffers.local
        self._graph = PendingGraph(self._strings, defines_again=scope.ring_bytes > 0)
        self._describe = describe_stream
        #: Streams whose names are known, or given up; where others were looked for.
        self._named: set[str] = set()
        self._tried: dict[str, set[int]] = {}
        #: The thread that has yet to say that hand-overs are heard, 0 for none.
        self._heard_by = 0
        self._is_closed = False
        parts = self._buffers, self._strings, self._graph
        settings: dict[str, Any] = {
            "clock": self._clock,
            "interval_s": flush_every_s,
            "scope": scope,
            "nodes": self._filter,
        }
        #: The writer, if it keeps a ring.
        self._ring: RingWriter | None = None
        self._writer: Writer
        if scope.ring_bytes:
            # Loaded where it is asked for.
            from gradviz.trace.recording.rings import ring_writer  # noqa: PLC0415

            self._ring = ring_writer.RingWriter(*parts, known=self._known, **settings)
            self._writer = self._ring
        else:
            self._writer = Writer(*parts, sink=sink, **settings)
        _open.add(self)
        atexit.register(self.close)

    @property
    def counts(self) -> Counts:
        """Return the counts written so far; all of them, once it is closed."""
        return self._writer.counts

    @property
    def failure(self) -> Exception | None:
        """The error that stopped the writing; None without one."""
        return self._writer.failure

    def is_in(self, trace: Trace) -> bool:
        """Return whether `trace` is of this recording."""
        return trace.header == self._writer.header

    def muted(self) -> Probe:
        """Return a probe that does the same work and keeps nothing.

        A pass that begins while it is installed is not in the trace, none of it.
        """
        other = Recorder.__new__(Recorder)
        vars(other).update(vars(self))
        other._is_closed = True  # so it defines nothing
        other._named, other._tried = set(), {}
        other._local = NoRows(self._reports)
        return other

    def flush(self) -> None:
        """Write all earlier reports; see `Writer.flush`."""
        self._writer.flush()

    def save(self, save: "Save") -> None:
        """Pass the frames of a trace of the latest events to `save`.

        For a flight recorder; see `RingWriter.save`.

        Raises:
            TypeError: This is none.
        """
        if self._ring is None:
            raise TypeError("only a recorder whose scope has a ring saves one")
        self._ring.save(save)

    def end_step(self) -> None:
        """End a step here, for a recorder that keeps odd ones. Any thread."""
        if self._ring is not None:
            self._ring.end_step(self._clock())

    def _known(self) -> tuple[set[int], set[int]]:
        texts, inputs = self._graph.known()
        texts |= self._strings.known() | self._locations.known()
        if self._stacks is not None:
            texts |= self._stacks.known()
        return texts, inputs

    def close(self) -> None:
        """Write the rest and close the sink; later reports are dropped.

        Does nothing the second time. A program that ends without it is closed at exit.
        """
        if self._is_closed:
            return
        self._is_closed = True
        _open.discard(self)
        atexit.unregister(self.close)
        self._writer.close(_CLOSE_TIMEOUT_S)

    # --- what a probe hears: hot, so nothing but a clock and an append -------------
    #
    # All other kinds of events have methods of `_thread_report` and `_plain_report`.

    def nodes_defined(
        self, nodes: Iterable[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        if self._is_closed:
            return
        if self._filter is not None:
            nodes = tuple(nodes)
            self._filter.offer(nodes)
        self._graph.define_nodes(nodes, made_at)

    def nodes_placed(
        self, nodes: Sequence[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        if self._is_closed:
            return
        if self._filter is not None:
            self._filter.offer(nodes)
        self._graph.define_anew(nodes, made_at)

    def tensor_saved(self, node: int, size_bytes: int) -> None:
        rows = self._local.rows[TensorSaved]
        rows.extend((self._clock(), -1, node, size_bytes))

    def saved_elsewhere(
        self, node: int, parameter_bytes: int, shared_bytes: int
    ) -> None:
        rows = self._local.rows[SavedElsewhere]
        rows.extend((self._clock(), -1, node, parameter_bytes, shared_bytes))

    def task_begun(
        self,
        task: int,
        *,
        parent: int,
        reentrant_depth: int,
        owner: int,
        num_roots: int,
        num_outputs: int,
        keep_graph: bool,
        create_graph: bool,
    ) -> None:
        self._local.rows[TaskBegun].extend(
            (
                self._clock(),
                task,
                -1,
                parent,
                reentrant_depth,
                owner,
                num_roots,
                num_outputs,
                keep_graph,
                create_graph,
                self._locations.of_caller(),
            )
        )

    def task_popped(self, task: int, node: int, queue: int, queue_length: int) -> None:
        self._local.rows[TaskPopped].extend(
            (self._clock(), task, node, queue, queue_length)
        )

    def node_started(self, task: int, node: int) -> None:
        now, local = self._clock(), self._local
        local.time.start(now)
        local.rows[NodeStarted].extend((now, task, node))

    def node_failed(self, task: int, node: int, error: str) -> None:
        now, local = self._clock(), self._local
        local.rows[NodeFailed].extend(
            (now, task, node, self._strings.intern(error), local.time.end(now))
        )

    def reentrant_entered(self, task: int, depth: int) -> None:
        local = self._local
        local.time.enter()
        local.rows[ReentrantEntered].extend((self._clock(), task, -1, depth))

    def reentrant_left(self, task: int, depth: int) -> None:
        local = self._local
        local.time.leave()
        local.rows[ReentrantLeft].extend((self._clock(), task, -1, depth))

    def event_recorded(self, task: int, node: int, stream: str, event: int) -> None:
        self._local.rows[EventRecorded].extend(
            (self._clock(), task, node, self._strings.intern(stream), event)
        )

    def stream_waited(
        self, task: int, node: int, stream: str, event: int, producer: int
    ) -> None:
        now = self._clock()
        self._local.rows[StreamWaited].extend(
            (
                now,
                task,
                node,
                self._strings.intern(stream),
                event,
                producer,
                self._locations.of_caller(),
            )
        )

    def kernel_launched(self, kernel: int, stream: str, name: str) -> None:
        if self._heard_by:
            self._say_heard()
        now, intern = self._clock(), self._strings.intern
        location = self._locations.of_caller()
        if stream not in self._named:
            self._name(stream, location)
        rows = self._local.rows[KernelLaunched]
        rows.extend((now, -1, -1, kernel, intern(stream), intern(name), location))
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def array_accessed(
        self, kernel: int, memory: int, layout: str, writes: bool
    ) -> None:
        self._local.rows[ArrayAccessed].extend(
            (
                self._clock(),
                -1,
                -1,
                kernel,
                memory,
                self._strings.intern(layout),
                writes,
            )
        )

    def host_accessed(self, memory: int, layout: str, writes: bool) -> None:
        now, location = self._clock(), self._locations.of_caller()
        rows = self._local.rows[HostAccessed]
        rows.extend(
            (now, -1, -1, memory, self._strings.intern(layout), writes, location)
        )
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def kernel_ran(self, kernel: int, began_ns: int, ended_ns: int) -> None:
        self._local.rows[KernelRan].extend(
            (self._clock(), -1, -1, kernel, began_ns, ended_ns)
        )

    def memory_allocated(self, memory: int, stream: str, size_bytes: int) -> None:
        self._local.rows[MemoryAllocated].extend(
            (self._clock(), -1, -1, memory, self._strings.intern(stream), size_bytes)
        )

    def memory_freed(self, memory: int, stream: str) -> None:
        self._local.rows[MemoryFreed].extend(
            (self._clock(), -1, -1, memory, self._strings.intern(stream))
        )

    def for_this_thread(self) -> NodeReports:
        return self._local.reports

    def queue_defined(self, queue: int, name: str, device: int) -> None:
        if not self._is_closed:
            self._graph.define_queue(queue, name, device)

    def model_defined(self, model: Model) -> None:
        if not self._is_closed:
            self._graph.models.define(model)

    def handovers_heard(self) -> None:
        """Said where it matters: not in a recording without devices and threads."""
        self._heard_by = threading.get_ident()

    def program_thread_begun(self, key: int) -> None:
        if self._heard_by:
            self._say_heard()
        self._local.rows[ProgramThreadBegun].extend((self._clock(), -1, -1, key))

    def handed_over(self, key: int) -> None:
        if self._heard_by:
            self._say_heard()
        rows = self._local.rows[HandedOver]
        rows.extend((self._clock(), -1, -1, key))
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def taken_over(self, key: int) -> None:
        if self._heard_by:
            self._say_heard()
        rows = self._local.rows[TakenOver]
        rows.extend((self._clock(), -1, -1, key))
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def mark(self, text: str) -> None:
        rows = self._local.rows[Mark]
        rows.extend((self._clock(), -1, -1, self._strings.intern(text)))
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def forward_begun(
        self,
        call: int,
        module: str,
        name: str,
        arguments: Tracking = Tracking.UNKNOWN,
        location: str = "",
    ) -> None:
        now, intern = self._clock(), self._strings.intern
        texts = intern(module), intern(name)
        rows = self._local.rows[ForwardBegun]
        rows.extend((now, -1, -1, call, *texts, arguments, intern(location)))
        if len(rows) > MANY:
            self._call_writer(len(rows))

    def forward_ended(
        self, call: int, failed: bool, results: Tracking = Tracking.UNKNOWN
    ) -> None:
        row = self._clock(), -1, -1, call, failed, results
        self._local.rows[ForwardEnded].extend(row)

    def rows_reported(
        self, thread: int, name: str, rows: Mapping[Hashable, Sequence[int | str]]
    ) -> None:
        if self._is_closed:
            return
        intern = self._strings.intern
        if thread == threading.get_native_id():
            _ = self._local.buffer  # which makes it, if there was none
        longest = self._buffers.tell(
            thread,
            name,
            {
                key: tuple(
                    [intern(one) if isinstance(one, str) else one for one in numbers]
                    if key in _WITH_TEXTS
                    else numbers  # type: ignore[arg-type]
                )
                for key, numbers in rows.items()
            },
        )
        if len(longest) > MANY:
            self._writer.call()

    def call_returned(self) -> None:
        """Report no event: the effects of the call have been reported."""

    # --- end of the hot part -------------------------------------------------------

    def _say_heard(self) -> None:
        """Report once that the recording hears hand-overs from here on."""
        if self._heard_by == threading.get_ident():
            self._heard_by = 0
            self._local.rows[HandoversHeard].extend((self._clock(), -1, -1))

    def _name(self, stream: str, location: int) -> None:
        """Find the program's name for a stream, once a line, until it is known."""
        tried = self._tried.setdefault(stream, set())
        if location in tried:
            return
        tried.add(location)
        name, made_at = self._describe(stream, sys._getframe(2))
        if name or (made_at and len(tried) == 1):
            self.stream_named(stream, name, made_at)
        if name or len(tried) >= _MAX_TRIES:
            self._named.add(stream)

    def _call_writer(self, num_numbers: int) -> None:
        """Have a long list written soon, and stop a list that is too long.

        Only the kinds that come in great numbers, with whatever comes with them,
        look at their length: a node's push, its creation, a kernel, a mark.
        """
        buffer = self._local.buffer
        if num_numbers > TOO_MANY:
            buffer.drop()
        elif not buffer.has_called:
            buffer.has_called = True
            self._writer.call()

    def _abandon(self) -> None:
        """Forget everything without writing: the file is the parent process's."""
        self._is_closed = True
        atexit.unregister(self.close)
        self._writer.abandon()
        probe.uninstall(self)


def _weakly(call: Callable[[int], None]) -> Callable[[int], None]:
    """`call`, a method, which is not kept alive for it."""
    method = weakref.WeakMethod(call)

    def call_if_alive(num_numbers: int) -> None:
        if (alive := method()) is not None:
            alive(num_numbers)

    return call_if_alive


def _thread_report(name: str) -> Callable[..., None]:
    """Return a method that makes the thread's `NodeRows` keep a report."""

    @functools.wraps(getattr(Probe, name))
    def report(self: Recorder, *fields: object, **named: object) -> None:
        getattr(self._local.reports, name)(*fields, **named)

    return report


def _plain_report(kind: type[Event]) -> Callable[..., None]:
    """Return a method for a kind of event with its columns as parameters.

    For what does not happen at every node: it takes half as long again as one that is
    written by hand.

    Raises:
        TypeError: No probe reports the kind, or not so.
    """
    name, columns = kind_name(kind), own_columns(kind)
    reported = getattr(Probe, name, None)
    if reported is None:
        raise TypeError(f"nothing reports {kind.__name__}: give Probe a method {name}")
    signature = inspect.signature(reported)
    parameters = tuple(signature.parameters)[1:]
    common = tuple(one for one in _COMMON if one in parameters)
    expected = (*common, *(column.name for column in columns))
    if parameters != expected:
        raise TypeError(
            f"Probe.{name} takes {', '.join(parameters)}; expected the columns of "
            f"{kind.__name__}, {', '.join(expected)}: rename them, or give Recorder a "
            f"method {name} that keeps them"
        )
    row_of = ("t_ns", *_COMMON, *(column.name for column in columns))
    absent = tuple(row_of.index(one) for one in _COMMON if one not in common)
    texts = tuple(row_of.index(one.name) for one in columns if one.type is str)

    @functools.wraps(reported)
    def report(self: Recorder, *fields: object, **named: object) -> None:
        if named or len(fields) != len(parameters):
            bound = signature.bind(self, *fields, **named)
            fields = tuple(bound.arguments.values())[1:]
        row: list[Any] = [self._clock(), *fields]
        for place in absent:
            row.insert(place, -1)
        for place in texts:
            row[place] = self._strings.intern(row[place])
        self._local.rows[kind].extend(tuple(row))

    return report


_of_nodes = {name for name in vars(NodeReports) if not name.startswith("_")}
_has_own_method = vars(NodeRows).keys() & _of_nodes

for _name in _has_own_method - JOINED.keys():
    setattr(Recorder, _name, _thread_report(_name))

if _has_own_method != _of_nodes:
    # All is recorded, as any listener hears it, if more slowly; a test says what is
    # missing.
    Recorder.for_this_thread = Probe.for_this_thread  # type: ignore[method-assign]

for _kind in KINDS.values():
    if kind_name(_kind) not in vars(Recorder):
        setattr(Recorder, kind_name(_kind), _plain_report(_kind))

note_news(Recorder)


#: Recorders that write, so that the child of a fork can stop its copies of them.
_open: Final[weakref.WeakSet[Recorder]] = weakref.WeakSet()


@contextlib.contextmanager
def alone() -> Iterator[bool]:
    """Pause all writers; yield True if no other thread of the process can run.

    For a search among all objects that the program did not ask for: see Note [Objects
    under construction] in `live_objects`.
    """
    with contextlib.ExitStack() as stack:
        writers = [recorder._writer for recorder in list(_open)]
        are_paused = [stack.enter_context(writer.paused()) for writer in writers]
        paused = {writer.thread_id for writer in writers}
        others = thread_frames().keys() - paused
        yield all(are_paused) and not others


def _abandon_all() -> None:
    for recorder in list(_open):
        recorder._abandon()
    _open.clear()


at_fork(after_in_child=_abandon_all)
