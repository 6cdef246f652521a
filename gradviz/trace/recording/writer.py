"""The writer: puts the reports of threads into a sink, as frames.

It works on a thread of its own, a few times a second and whenever a buffer has grown
long, and once more on the thread that closes it. Compression, the bulk of the work,
runs outside the interpreter's lock.

Each round writes first the definitions and then the events that refer to them, so a
file that ends anywhere, or a process that is killed, leaves nothing unexplained. To
that end it *takes* in the other order: a thread defines before it refers.
"""

import contextlib
import queue
import secrets
import threading
import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from gradviz.locks import SafeRLock
from gradviz.trace.events import TaskBegun
from gradviz.trace.format.clock import Clock, read_pair
from gradviz.trace.format.columns import encode_events, tabulate
from gradviz.trace.format.definitions import (
    Closed,
    Definitions,
    Lost,
    describe_process,
    encode_definitions,
    encode_json,
)
from gradviz.trace.format.frames import FrameType, Stamp, encode_frame, pack, stamped
from gradviz.trace.format.kept_events import layouts_of
from gradviz.trace.format.row_layouts import LAYOUTS
from gradviz.trace.format.scope import Scope
from gradviz.trace.format.strings import Strings
from gradviz.trace.recording.buffer import Buffers, Taken
from gradviz.trace.recording.node_filter import NodeFilter
from gradviz.trace.recording.pending_graph import PendingGraph
from gradviz.trace.recording.sink import Sink

#: The clocks are read again at the first round after so long.
_ANCHOR_EVERY_NS: Final = 10 * 10**9


class Counts(NamedTuple):
    """Numbers of recorded things.

    Attributes:
        tasks: GraphTasks that started.
        nodes: Nodes that took part in one of them.
        events: Events written.
        dropped: Events that could not be kept.
    """

    tasks: int
    nodes: int
    events: int
    dropped: int


#: Seconds to wait for the end of a write.
_PAUSE_TIMEOUT_S: Final = 1.0


class Writer:
    """Writes one trace. Every method may be called by any thread.

    Attributes:
        header: Header that the trace begins with.

    Args:
        buffers: Source of events.
        strings: Source of texts.
        graph: Source of nodes, queues and models.
        sink: Destination of frames.
        clock: The clock of the events.
        interval_s: Time that reports may stay unwritten, in seconds. None starts no
            thread: nothing is written before `flush` or `close`.
        scope: Scope of the events that are kept.
        nodes: Knows of which nodes, None for all.

    Raises:
        Exception: Whatever the sink raises when the header is written.
    """

    def __init__(
        self,
        buffers: Buffers,
        strings: Strings,
        graph: PendingGraph,
        sink: Sink,
        clock: Clock,
        interval_s: float | None,
        scope: Scope,
        nodes: NodeFilter | None,
    ) -> None:
        self._buffers = buffers
        self._strings = strings
        self._graph = graph
        self._clock = clock
        self._nodes = nodes
        self._kept_layouts = layouts_of(scope)
        self._layouts = self._kept_layouts if nodes is None else LAYOUTS
        self._sink: Sink | None = sink
        self._counts = Counts(0, 0, 0, 0)
        self._failure: Exception | None = None
        self._is_ending = False
        self._lock = SafeRLock()  # held by whoever writes; guards all above
        self._is_called_back = False  # see Note [Inside a write]
        # A mailbox and no Condition: a signal handler may call in the middle of a call.
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        now = read_pair(clock)
        self._next_anchor_ns = now.monotonic_ns + _ANCHOR_EVERY_NS
        self.header: Final = describe_process(now, secrets.randbits(31), scope)
        self._num_frames = 1
        sink.write(encode_frame(FrameType.HEADER, encode_json(self.header)))
        self._thread = self._start(interval_s)

    @property
    def counts(self) -> Counts:
        """Return the counts written so far."""
        return self._counts

    @property
    def thread_id(self) -> int | None:
        """The `threading.get_ident` of its thread; None if there is none."""
        return None if self._thread is None else self._thread.ident

    @property
    def failure(self) -> Exception | None:
        """The error that stopped the writing; None without one."""
        return self._failure

    def call(self) -> None:
        """Make the writer come at once. Returns at once; takes no lock."""
        self._calls.put(True)

    def flush(self) -> None:
        """Write all earlier reports.

        Called from inside a write, by a signal handler or a finalizer, it has that
        write go on with this when it is done, and returns at once.

        Note [Inside a write]
        ~~~~~~~~~~~~~~~~~~~~~
        A signal handler may run in the middle of a write, on the writing thread. It
        cannot wait for a lock that its own thread holds, and may not write either:
        frames of two rounds would mix. So it leaves a request, and the writing thread
        checks for requests after it has released the lock; a later request finds the
        lock free.
        """
        if self._is_inside():
            self._is_called_back = True
            return
        while self._sink is not None:
            with self._lock:
                self._is_called_back = False
                self._write()
            if not self._is_called_back:
                return

    def close(self, timeout_s: float) -> None:
        """Write the rest, mark the end, and close the sink.

        Gives up on a sink that does not return within `timeout_s`. Called from inside a
        write, it returns before that is done, as `flush` does.
        """
        self._is_ending = True
        self._calls.put(False)
        if self._is_inside():
            self._is_called_back = True
            return
        if self._thread is not None:
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                timeout_s = 0
        if not self._lock.acquire(timeout=timeout_s):
            self._buffers.close()
            self._failure = TimeoutError("a write did not return")
            _warn(self._failure)
            return
        try:
            self._write()
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def paused(self) -> Iterator[bool]:
        """Let nobody write meanwhile; yield False if a write did not end in time."""
        is_paused = self._lock.acquire(timeout=_PAUSE_TIMEOUT_S)
        try:
            yield is_paused
        finally:
            if is_paused:
                self._lock.release()

    def abandon(self) -> None:
        """Never write again; for the child of a fork, whose parent keeps writing.

        Takes no lock: the thread that held it does not exist here.
        """
        self._sink = None
        self._lock = SafeRLock()
        self._buffers.close()

    def _is_inside(self) -> bool:
        """Return whether the calling thread is writing, further up its stack."""
        # As a Condition asks its lock. A field of ours that says who writes could not
        # change together with the lock.
        owned: bool = self._lock._is_owned()  # type: ignore[attr-defined]
        return owned

    # --- all below: with the lock held ---------------------------------------------

    def _write(self) -> None:
        """Write pending rows, and end if requested."""
        is_ending = self._is_ending  # asked once: nothing may come between the two
        if is_ending:
            self._buffers.close()
        self._round()
        if is_ending:
            self._finish()

    def _round(self) -> None:
        """Take everything and write it."""
        if self._sink is None:
            return
        try:
            for frame in self._frames():
                self._sink.write(frame)
        except Exception as error:  # noqa: BLE001 - a sink may fail in any way
            self._give_up(error)

    def _frames(self) -> Iterator[bytes]:
        taken = self._buffers.take()
        yield from self._definition_frames()
        for one in taken:
            yield from self._thread_frames(one)
        if self._clock() >= self._next_anchor_ns:
            yield self._anchor()

    def _definition_frames(self) -> Iterator[bytes]:
        for piece in encode_definitions(self._new_definitions()):
            yield self._packed(FrameType.DEFINITIONS, piece)

    def _new_definitions(self) -> Definitions:
        nodes, inputs, queues = self._graph.take()
        models = self._graph.models.take()
        self._count(nodes=len(nodes))
        return Definitions(
            strings=self._strings.take(),
            threads=self._buffers.take_new_threads(),
            queues=queues,
            inputs=inputs,
            nodes=nodes,
            models=models,
        )

    def _thread_frames(self, taken: Taken) -> Iterator[bytes]:
        payloads, num_dropped = self._encoded(taken)
        for payload in payloads:
            yield self._packed(FrameType.EVENTS, payload)
        if num_dropped:
            yield self._json(FrameType.LOST, Lost(taken.thread, num_dropped))

    def _encoded(self, taken: Taken) -> tuple[Iterator[bytes], int]:
        """Return a thread's reports, not packed yet, and the number lost."""
        tables = []
        num_dropped = taken.num_dropped
        rows = taken.rows if self._nodes is None else self._nodes.pick(taken.rows)
        for key in rows:  # see Note [Items without memory]
            layout, numbers = self._layouts[key], rows[key]
            num_rows = len(numbers) // layout.width
            num_events = num_rows * len(layout.parts)
            try:
                tables.append(tabulate(layout, numbers))
            except Exception:  # noqa: BLE001 - what was reported may be anything
                # No 64-bit integers: a defect of the producer, which costs it these.
                num_dropped += num_events
            else:
                self._count(
                    events=num_events, tasks=num_rows if key is TaskBegun else 0
                )
        self._count(dropped=num_dropped)
        return encode_events(taken.thread, tables), num_dropped

    def _anchor(self) -> bytes:
        now = read_pair(self._clock)
        self._next_anchor_ns = now.monotonic_ns + _ANCHOR_EVERY_NS
        return self._json(FrameType.ANCHOR, now)

    def _packed(self, kind: FrameType, raw: bytes) -> bytes:
        return encode_frame(kind, pack(raw, self._next_stamp()))

    def _json(self, kind: FrameType, value: msgspec.Struct) -> bytes:
        return encode_frame(kind, stamped(encode_json(value), self._next_stamp()))

    def _next_stamp(self) -> Stamp:
        stamp = Stamp(self.header.recording, self._num_frames)
        self._num_frames += 1
        return stamp

    def _finish(self) -> None:
        """Write the last frames and close the sink."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        _, nodes, events, dropped = self._counts
        anchor = self._anchor()
        closed = Closed(events, nodes, dropped)
        try:
            sink.write(anchor + self._json(FrameType.CLOSED, closed))
            sink.close()
        except Exception as error:  # noqa: BLE001 - a sink may fail in any way
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Drop the sink. Later events are counted and lost."""
        sink, self._sink = self._sink, None
        self._failure = error
        self._buffers.close()
        if sink is not None:
            with contextlib.suppress(Exception):
                sink.close()
        _warn(error)

    def _count(
        self, *, tasks: int = 0, nodes: int = 0, events: int = 0, dropped: int = 0
    ) -> None:
        more = (tasks, nodes, events, dropped)
        self._counts = Counts(*map(sum, zip(self._counts, more, strict=True)))

    # --- the thread ------------------------------------------------------------------

    def _start(self, interval_s: float | None) -> threading.Thread | None:
        if interval_s is None:
            return None
        thread = threading.Thread(
            target=self._run, args=(interval_s,), name="gradviz-writer", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads: everything is written at the end
            return None
        return thread

    def _run(self, interval_s: float) -> None:
        goes_on = True
        while goes_on:
            try:
                goes_on = self._calls.get(timeout=interval_s)
            except queue.Empty:
                goes_on = True
            self.flush()


def _warn(error: Exception) -> None:
    with contextlib.suppress(Exception):  # a warning filter may raise
        warnings.warn(
            f"the trace is incomplete: it could not be written ({error}); "
            f"the program goes on without recording",
            RuntimeWarning,
            stacklevel=2,
        )
