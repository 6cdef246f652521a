"""Checking a program while it runs: does it order its work on streams?

`check_streams` is the live form of what ``gradviz check`` finds in a trace. The threads
of the program only note what they report; one of them now and then has a look at all
of it.

Note [Noting reports]
~~~~~~~~~~~~~~~~~~~~~
A report can come in the middle of any other: any code that drops the last array in a
block frees memory, and so does a garbage collection in the machine's own code. So
reporting takes no lock: it appends to a deque, which is atomic. A thread that finds the
deque long, and no thread at work on it, passes it to the machine; the others go on, and
so does a report from that loop.
"""

import functools
import inspect
import itertools
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from gradviz.analysis.races.event_dispatch import HANDLERS
from gradviz.analysis.races.happens_before import HappensBefore
from gradviz.analysis.races.race_reports import Findings, NodeOrigin, Race, StreamOrigin
from gradviz.errors import StreamRaceError
from gradviz.stream_check import thread_handovers
from gradviz.stream_check.silent_locks import has_silent_lock
from gradviz.stream_check.stream_names import name_of_stream, name_of_tensor
from gradviz.trace import probe
from gradviz.trace.events import (
    ArrayAccessed,
    Event,
    KernelLaunched,
    StreamWaited,
    kind_name,
)
from gradviz.trace.node_like import NodeLike
from gradviz.trace.probe import NO_LINES, Guard, Probe
from gradviz.trace.reporting.location import Locations
from gradviz.trace.reporting.made_streams import made_at
from gradviz.trace.reporting.thread_knowledge import note_news

__all__ = ["StreamCheck", "check_streams"]

#: Maximum number of reports that wait for somebody to look at them.
_MANY: Final = 256

#: Maximum number of nodes remembered by name, so that a race can say which one it was.
_MAX_NODES: Final = 100_000


class StreamCheck(Probe):
    """Looks out for accesses to memory by two streams that nothing orders.

    From `start` to `stop`, or in a ``with`` block. Work that was launched before is
    unknown, and so no race with it is found.

    Args:
        raise_error: True if a ``with`` block in which there was a race raises at its
            end.
    """

    def __init__(self, *, raise_error: bool = True) -> None:
        self._raise_error = raise_error
        self._threads = _Threads()
        self._machine = HappensBefore(self._origin, self._stream_origin)
        #: Names of the program's streams, and the lines at which they were searched
        #: for.
        self._names: dict[str, str] = {}
        self._looked_at: set[tuple[str, str]] = set()
        #: Names of the tensors that a line works on: the first, the second, ...
        self._tensors: dict[tuple[str, int], str] = {}
        self._locations: Locations[str] = Locations(str)
        self._made: OrderedDict[int, str] = OrderedDict()  # node -> where
        self._origins: OrderedDict[int, NodeOrigin] = OrderedDict()
        self._reports: deque[tuple[Callable[..., None], Sequence[object]]] = deque()
        #: Held while reports go to the machine.
        self._processing = threading.Lock()
        self._guard = Guard(self)
        self._is_over = False

    def start(self) -> None:
        """Listen to all that begins from now on."""
        # A lock made before hands over unheard; then threads cannot be told apart.
        if not has_silent_lock(sys._getframe(1)):
            self.handovers_heard()
        thread_handovers.listen()
        probe.install(self._guard)

    def stop(self) -> None:
        """Listen no more."""
        probe.uninstall(self._guard)
        if not self._is_over:
            thread_handovers.unlisten()
        self._is_over = True

    @property
    def findings(self) -> Findings:
        """Return all findings so far; not for a finalizer or a signal handler."""
        with self._processing:
            self._process()
            return self._machine.findings

    @property
    def races(self) -> tuple[Race, ...]:
        """Each race that was found so far, once."""
        return tuple(race for race, _ in self.findings.races)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        findings = self.findings
        if not findings.races:
            return
        if error is not None:
            error.add_note(str(findings))
        elif self._raise_error:
            raise StreamRaceError(str(findings))

    # --- what a probe hears ---------------------------------------------------------
    #
    # All other kinds that the machine handles have methods of `_hearing`.

    def node_created(self, node: NodeLike) -> None:
        """See `Probe.node_created`."""
        self._made[node.id] = self._locations.of_caller()
        if len(self._made) > _MAX_NODES:
            self._made.popitem(last=False)

    def nodes_defined(
        self, nodes: Iterable[NodeLike], made_at: Mapping[int, str] = NO_LINES
    ) -> None:
        """See `Probe.nodes_defined`."""
        for node in nodes:
            if node.id not in self._origins:
                self._origins[node.id] = NodeOrigin(
                    name=str(node.name()),
                    location=self._made.pop(node.id, made_at.get(node.id, "")),
                    module=node.module_path,
                )
                if len(self._origins) > _MAX_NODES:
                    self._origins.popitem(last=False)

    def stream_waited(
        self, task: int, node: int, stream: str, event: int, producer: int
    ) -> None:
        """See `Probe.stream_waited`."""
        del producer
        location = self._locations.of_caller()
        self._look_for_name(stream, location)
        thread = self._threads.number
        handler = HANDLERS[StreamWaited].call
        self._note(handler, (task, node, stream, event, location, thread))

    def kernel_launched(self, kernel: int, stream: str, name: str) -> None:
        """See `Probe.kernel_launched`."""
        location = self._locations.of_caller()
        self._look_for_name(stream, location)
        self._threads.line, self._threads.num_accesses = location, 0
        thread = self._threads.number
        handler = HANDLERS[KernelLaunched].call
        self._note(handler, (thread, kernel, stream, name, location))

    def array_accessed(
        self, kernel: int, memory: int, layout: str, writes: bool
    ) -> None:
        """See `Probe.array_accessed`."""
        threads = self._threads
        place = threads.line, threads.num_accesses
        threads.num_accesses += 1
        tensor = self._tensors.get(place)
        if tensor is None:
            tensor = name_of_tensor(memory, sys._getframe(1))
            self._tensors[place] = tensor
        handler = HANDLERS[ArrayAccessed].call
        self._note(handler, (kernel, memory, layout, writes, tensor))

    # --- how --------------------------------------------------------------------------

    def _note(self, handler: Callable[..., None], values: Sequence[object]) -> None:
        """Keep a report for the machine. See Note [Noting reports].

        Args:
            handler: The machine's method.
            values: Arguments of that method.
        """
        if self._is_over:
            return
        self._reports.append((handler, values))
        if len(self._reports) > _MANY:
            self._process_if_nobody_does()

    def _process_if_nobody_does(self) -> None:
        """See Note [Interrupts at a lock] for the loop, which turns once at most."""
        acquire = functools.partial(self._processing.acquire, blocking=False)
        for _ in iter(acquire, False):
            try:
                self._process()
            finally:
                self._processing.release()
            break

    def _process(self) -> None:
        """Feed the machine pending events; later ones are for the next thread."""
        for _ in range(len(self._reports)):
            handler, values = self._reports.popleft()
            handler(self._machine, *values)

    def _look_for_name(self, stream: str, location: str) -> None:
        """Find the variable that has a stream, once a line that works on it."""
        if (stream, location) not in self._looked_at:
            self._looked_at.add((stream, location))
            if name := name_of_stream(stream, sys._getframe(2)):
                self._names[stream] = name

    def _stream_origin(self, stream: str) -> StreamOrigin:
        return StreamOrigin(name=self._names.get(stream, ""), location=made_at(stream))

    def _origin(self, node: int) -> NodeOrigin:
        return self._origins.get(node, NodeOrigin())


def _hearing(kind: type[Event]) -> Callable[..., None]:
    """Return a method that notes a kind of event for the machine, and no more."""
    handler, fields = HANDLERS[kind]
    method = getattr(Probe, kind_name(kind))
    signature = inspect.signature(method)
    parameters = tuple(signature.parameters)[1:]
    known = (*parameters, "thread", "location")
    places = [known.index(field) for field in fields]
    is_at_line = "location" in fields

    @functools.wraps(method)
    def hear(self: StreamCheck, *given: object, **named: object) -> None:
        if named or len(given) != len(parameters):
            given = tuple(signature.bind(self, *given, **named).arguments.values())[1:]
        location = self._locations.of_caller() if is_at_line else ""
        row = (*given, self._threads.number, location)
        self._note(handler, [row[place] for place in places])

    return hear


for _kind in HANDLERS:
    if kind_name(_kind) not in vars(StreamCheck):
        setattr(StreamCheck, kind_name(_kind), _hearing(_kind))

note_news(StreamCheck)


_next_number: Final = itertools.count()


class _Threads(threading.local):
    """Per-thread state.

    Attributes:
        number: Unique, even after the thread has ended.
        line: Line of the latest kernel launch,
        num_accesses: and the number of its accesses so far.
    """

    def __init__(self) -> None:
        self.number = next(_next_number)
        self.line = ""
        self.num_accesses = 0


def check_streams(*, raise_error: bool = True) -> StreamCheck:
    """Look out for missing waits between streams in a ``with`` block.

    For example::

        with gv.check_streams():
            loss.backward()

    Two accesses to the same bytes by work of two streams, one of them a write, have to
    be ordered: by a wait of the later stream for the earlier one, or of the program for
    both. Where nothing orders them, this says which they are and what is missing,
    whether or not they collided this time.

    Args:
        raise_error: True if a race raises at the end of the block; if not, the races
            are in `StreamCheck.races`.

    Raises:
        StreamRaceError: At the end of the block, if there was a race. If the block
            raises itself, the report becomes a note of that error.

    Differs: PyTorch has this for CUDA as ``TORCH_CUDA_SANITIZER=1``, for a whole
    program; it takes an array for one whole and looks at no memory that is freed.
    """
    return StreamCheck(raise_error=raise_error)
