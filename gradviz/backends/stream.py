"""Streams and events: the order of a device's work, and its waits.

A *stream* is a queue of work of one device, done in order; two streams are in no order
unless one waits for an *event* that the other has recorded. Backends do the work
(`Accelerator`); here are the handles that a program holds, which stream is the current
one, and the reports of who waited for whom.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from gradviz.backends.base import accelerator_of, current_accelerator
from gradviz.backends.device import Device, current_index, set_current_index
from gradviz.backends.reports import users_line
from gradviz.trace import probe
from gradviz.trace.reporting.ids import EVENT_IDS
from gradviz.trace.reporting.made_streams import stream_made

_NONE: "Final[Mapping[Device, Stream]]" = {}

#: The streams that `stream` and `set_stream` have chosen, where that is not the default
#: one. A context's own, so that a coroutine keeps its stream; replaced, never mutated.
CHOSEN: "Final[ContextVar[Mapping[Device, Stream]]]" = ContextVar(
    "streams", default=_NONE
)

#: For each ``with stream:`` block that the calling context is in, the innermost last,
#: which stream of its device and which device of its type were current before. Not the
#: stream's own, which several threads may have entered.
_OUTER: "Final[ContextVar[tuple[tuple[Stream, int], ...]]]" = ContextVar(
    "outer streams", default=()
)

_event_ids: Final = EVENT_IDS


class Stream:
    """A queue of work of a device.

    As a context manager it is the current stream of its device, and that the current
    device of its type, until the block is left.

    Args:
        device: Its device; text such as ``"sim:0"`` will do. None for the current
            accelerator.
        priority: Streams of lower numbers may go first, where the device cares.

    Attributes:
        device: As given.
        stream_id: 0 for the default stream of its device.

    Raises:
        RuntimeError: There is no such device, or it has no streams.

    Source: torch.Stream. As there, streams come from a small pool: two of many may be
    the same one, and so be in an order that nobody asked for. Differs: the CPU has no
    streams, not even one that does nothing.
    """

    __slots__ = ("_text", "device", "stream_id")

    device: Device
    stream_id: int

    #: For types of device whose streams are of a class of their own.
    _classes: ClassVar[dict[str, type["Stream"]]] = {}

    def __init__(
        self, device: str | Device | None = None, *, priority: int = 0
    ) -> None:
        device = _device(device)
        self._initialise(device, accelerator_of(device).new_stream(device, priority))
        stream_made(str(self), users_line())

    def __init_subclass__(cls, type: str | None = None) -> None:  # noqa: A002 - as Device has it
        """Make `cls` the class of all streams of a type of device, if one is given."""
        if type is not None:
            cls._classes[type] = cls

    def _initialise(self, device: Device, stream_id: int) -> None:
        self.device = device
        self.stream_id = stream_id
        self._text = f"{device}/{stream_id}"

    def record_event(self, event: "Event | None" = None) -> "Event":
        """An event that has happened once all work so far is done."""
        event = event or Event(self.device)
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Have all work from now on wait for `event`; returns at once."""
        event.wait(self)

    def wait_stream(self, stream: "Stream") -> None:
        """Have all work from now on wait for the work that `stream` has so far."""
        self.wait_event(stream.record_event())

    def query(self) -> bool:
        """Return whether all work is done; True orders the program as a wait does.

        Raises:
            RuntimeError: It is, and some of it failed; or stream or device are gone.
        """
        is_idle = accelerator_of(self.device).is_idle(self)
        if is_idle and (listener := probe.current):
            listener.stream_synchronized(str(self))
        return is_idle

    def synchronize(self) -> None:
        """Wait for all work so far.

        Raises:
            RuntimeError: Some of it failed.
        """
        accelerator_of(self.device).synchronize_stream(self)
        if listener := probe.current:
            listener.stream_synchronized(str(self))

    def __enter__(self) -> Self:
        """Make this the current stream of its device until the block is left."""
        outer = current_stream(self.device), current_index(self.device.type)
        set_stream(self)
        _OUTER.set((*_OUTER.get(), outer))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        *rest, (stream, index) = _OUTER.get()
        _OUTER.set(tuple(rest))
        _choose(stream)
        set_current_index(stream.device.type, index)
        make_current_again(stream.device)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Stream)
            and self.stream_id == other.stream_id
            and self.device is other.device
        )

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"gradviz.Stream(device={str(self.device)!r}, id={self.stream_id})"


class Event:
    """A point in the work of a stream that others can wait for.

    Args:
        device: Of the streams that record it; None for that of the first.
        enable_timing: True if `elapsed_time` will be asked for.
        blocking: Ignored, as in PyTorch.
        interprocess: Ignored, as in PyTorch.

    Attributes:
        device: As given.
        id: Of the latest record, unique in the process; -1 before the first.

    Source: torch.Event. An event never recorded has happened.
    """

    __slots__ = ("_enable_timing", "_marker", "device", "id")

    #: The type of the device that is meant where nothing is said; None: accelerators'.
    _type: ClassVar[str | None] = None

    def __init__(
        self,
        device: str | Device | None = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        del blocking, interprocess
        self.device = None if device is None else Device(device)
        self._enable_timing = enable_timing
        self._marker: Any = None
        self.id = -1

    def record(
        self, stream: Stream | None = None, *, task: int = -1, node: int = -1
    ) -> None:
        """Happen when all work that `stream` has so far is done.

        Args:
            stream: The current one of the event's device if None.
            task: Id of the GraphTask that it is for, as a trace shows it,
            node: and the id of the node whose work is recorded.

        Raises:
            RuntimeError: The event is another device's.
        """
        if stream is None:
            stream = current_stream(self.device or self._type)
        elif self.device not in (None, stream.device):
            raise RuntimeError(
                f"Event device {self.device} does not match recording stream's device "
                f"{stream.device}: record it on a stream of {self.device}, or make "
                f"another event"
            )
        self.device = stream.device
        marker = accelerator_of(stream.device).record(stream, self._enable_timing)
        self._marker, self.id = marker, next(_event_ids)
        if listener := probe.current:
            listener.event_recorded(task, node, str(stream), self.id)

    def wait(
        self,
        stream: Stream | None = None,
        *,
        task: int = -1,
        node: int = -1,
        producer: int = -1,
    ) -> None:
        """Have all later work of `stream` wait for the event; returns at once.

        Args:
            stream: That of the current device of the event's type if None. It may be
                of another device of the same type.
            task: Id of the GraphTask that it is for, as a trace shows it,
            node: the id of the node that waits,
            producer: and of the node that it waits for.

        Raises:
            RuntimeError: The stream's backend is another one.
        """
        if self.device is None or self._marker is None:
            return
        stream = stream or current_stream(self.device.type)
        if stream.device.type != self.device.type:
            raise RuntimeError(
                f"Event device type {self.device.type} does not match blocking "
                f"stream's device type {stream.device.type}: {stream} cannot wait for "
                f"an event of {self.device}; synchronize() the event instead"
            )
        if stream.device is not self.device:
            accelerator_of(self.device)  # raises if that is gone
        accelerator_of(stream.device).wait(stream, self._marker)
        if listener := probe.current:
            listener.stream_waited(task, node, str(stream), self.id, producer)

    def query(self) -> bool:
        """Return whether it has happened; True orders the program as a wait does.

        Raises:
            RuntimeError: It has, and work before it failed; or the device is gone.
        """
        if self.device is None or self._marker is None:
            return True
        has_happened = accelerator_of(self.device).is_done(self._marker)
        if has_happened and (listener := probe.current):
            listener.event_synchronized(self.id)
        return has_happened

    def synchronize(self) -> None:
        """Wait until it has happened.

        Raises:
            RuntimeError: Work before it failed.
        """
        if self.device is None or self._marker is None:
            return
        accelerator_of(self.device).synchronize_marker(self._marker)
        if listener := probe.current:
            listener.event_synchronized(self.id)

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to `end`; both must have happened.

        Raises:
            ValueError: One of them keeps no time, or was never recorded.
            RuntimeError: One has not happened yet, or is of another type of device.
        """
        if not (self._enable_timing and end._enable_timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        if self._marker is None or end._marker is None:
            raise ValueError(
                "Both events must be recorded before calculating elapsed time."
            )
        if not (self.query() and end.query()):
            raise RuntimeError(
                "Both events must be completed before calculating elapsed time."
            )
        assert self.device is not None
        if end.device is None or end.device.type != self.device.type:
            raise RuntimeError(
                f"Event device type {self.device.type} does not match other's device "
                f"type {end.device and end.device.type}."
            )
        return accelerator_of(self.device).elapsed_ms(self._marker, end._marker)

    def __repr__(self) -> str:
        return f"gradviz.Event(device={str(self.device)!r}, id={self.id})"


def stream(stream: Stream | None) -> AbstractContextManager[Stream | None]:
    """Make a stream the current one for a block; None does nothing.

    Source: torch.cuda.stream.
    """
    return nullcontext() if stream is None else stream


def stream_at(device: Device, stream_id: int) -> Stream:
    """The stream of that number, which its backend has made before."""
    cls = Stream._classes.get(device.type, Stream)
    stream = cls.__new__(cls)
    stream._initialise(device, stream_id)
    return stream


def default_stream(device: str | Device | None = None) -> Stream:
    """The stream of a device that is current unless another one is chosen.

    Args:
        device: The device; None for the current accelerator.

    Raises:
        RuntimeError: There is no such device, or it has no streams.
    """
    device = _device(device)
    accelerator_of(device)
    return stream_at(device, 0)


def current_stream(device: str | Device | None = None) -> Stream:
    """Return the stream of work that is launched on a device here.

    Args:
        device: The device; None for the current accelerator.

    Raises:
        RuntimeError: There is no such device, or it has no streams.
    """
    device = _device(device)
    chosen = CHOSEN.get().get(device)
    if chosen is None:
        return default_stream(device)
    accelerator_of(device)  # raises if the device is gone
    return chosen


def stream_id_for(device: Device) -> int:
    """The number of a device's current stream; for its backend, at every launch."""
    chosen = CHOSEN.get().get(device)
    return 0 if chosen is None else chosen.stream_id


def set_stream(stream: Stream) -> None:
    """Make a stream the current one of its device, and that the current device.

    Differs: PyTorch keeps both for the thread; a coroutine here has its own.

    Source: torch.accelerator.set_stream.

    Raises:
        RuntimeError: The stream or its device is gone. What was current still is.
    """
    accelerator_of(stream.device).make_current(stream)
    _choose(stream)
    set_current_index(stream.device.type, stream.device.number)


def make_current_again(device: Device) -> None:
    """Restore a device's current stream in its backend, at a block's end.

    What was current is again, even if it is gone by now: whoever uses it is told.
    """
    with suppress(RuntimeError):
        accelerator_of(device).make_current(current_stream(device))


def _choose(stream: Stream) -> None:
    chosen = {**CHOSEN.get(), stream.device: stream}
    if stream.stream_id == 0:  # nothing is kept of a device at its default stream
        del chosen[stream.device]
    CHOSEN.set(chosen)


def keep_for(array: Any, stream: Stream) -> None:
    """Keep the memory of an array, once freed, until work of `stream` so far is done.

    Args:
        array: An array of the stream's kind of device, or a tensor of it.
        stream: Stream that works with it, other than the one that it was made for.
    """
    accelerator = accelerator_of(stream.device)
    if isinstance(array, accelerator.array_types):
        accelerator.record_stream(array, stream)
    elif hasattr(array, "record_stream"):
        array.record_stream(stream)


def synchronize(device: str | Device | None = None) -> None:
    """Wait for all work of all streams of a device.

    Args:
        device: The device; None for the current accelerator.

    Raises:
        RuntimeError: Some of it failed; there is no such device, or it has no streams.
    """
    device = _device(device)
    accelerator_of(device).synchronize_device(device)
    if listener := probe.current:
        listener.device_synchronized(str(device))


def _device(device: str | Device | None) -> Device:
    return current_accelerator() if device is None else Device(device)
