"""Protocols of a backend: implement these to write one."""

from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from gradviz.backends.device import Device

Array = Any  # an array of some library: NumPy's, CuPy's, a simulated device's
ArrayTypes: TypeAlias = tuple[type, ...]


@runtime_checkable
class Backend(Protocol):
    """A kind of device: how many there are, and how arrays get there and back.

    Attributes:
        type: The part of a device's name before the colon.
        array_types: The classes of its arrays. They answer NumPy's functions and
            ufuncs (NEP 13 and 18), so that an op is written once, in NumPy's words,
            and have a `device`.
    """

    array_types: ArrayTypes
    type: str

    def device_count(self) -> int:
        """Return the number of devices of this kind."""

    def is_initialized(self) -> bool:
        """Return whether a device of this kind has been used and needs a thread."""

    def device_of(self, array: Array) -> Device:
        """Return the device of one of this backend's arrays."""

    def from_host(
        self, array: Array, device: Device, *, non_blocking: bool = False
    ) -> Array:
        """Copy a NumPy array to `device`.

        Args:
            array: Array to copy.
            device: Device to copy it to.
            non_blocking: `array` stays as it is until the copy is done, so there is
                no need to keep a copy of it meanwhile.
        """

    def to_host(self, array: Array, *, non_blocking: bool = False) -> Array:
        """Copy an array of this backend into a NumPy array.

        Args:
            array: Array to copy.
            non_blocking: Return at once; the elements are there when the stream that
                is current now has come so far.
        """


class MemoryUse(NamedTuple):
    """Memory use of a device.

    Attributes:
        allocated: Bytes of live arrays.
        peak: Maximum of that since the last reset.
        reserved: Bytes that the allocator holds, including those kept for later.
    """

    allocated: int
    peak: int
    reserved: int


class StreamLike(Protocol):
    """A `gradviz.backends.stream.Stream` as a backend sees it."""

    @property
    def device(self) -> Device:
        """Device of the stream."""

    @property
    def stream_id(self) -> int:
        """0 for the default stream, else the result of `new_stream`."""


@runtime_checkable
class Accelerator(Backend, Protocol):
    """A backend with devices that work asynchronously, in streams.

    A *marker* is whatever the backend makes of a point in a stream's work. Launches,
    records and waits return at once; what they do happens in the stream's order.
    """

    def new_stream(self, device: Device, priority: int) -> int:
        """The number of another stream of `device`, from its pool."""

    def make_current(self, stream: StreamLike) -> None:
        """Launch work of the calling thread for that device there from now on."""

    def is_idle(self, stream: StreamLike) -> bool:
        """Return whether all its work is done."""

    def synchronize_stream(self, stream: StreamLike) -> None:
        """Wait for all work of a stream; raise a kernel's error."""

    def synchronize_device(self, device: Device) -> None:
        """Wait for all streams of a device; raise a kernel's error."""

    def record(self, stream: StreamLike, enable_timing: bool) -> Any:
        """A marker of the work that the stream has so far."""

    def wait(self, stream: StreamLike, marker: Any) -> None:
        """Have the stream's later work wait for a marker."""

    def is_done(self, marker: Any) -> bool:
        """Return whether the work before a marker is done."""

    def synchronize_marker(self, marker: Any) -> None:
        """Wait for a marker; raise the error of a kernel before it."""

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """Milliseconds between two markers that keep time and are done."""

    def to_peer(self, array: Array, device: Device) -> Array:
        """Copy an array to another device of this kind; returns at once.

        The copy is work of the source's current stream, after what the destination's
        current stream has so far; later work of the latter waits for the copy.
        Source: aten/src/ATen/native/cuda/Copy.cu, copy_device_to_device.
        """

    def pinned_memory(self, size_bytes: int) -> Any:
        """Host memory that a device copies from and to on its own, as a buffer.

        It is an object of a class of its own, by which `is_pinned` knows it.
        """

    def record_stream(self, array: Array, stream: StreamLike) -> None:
        """Keep the memory of an array, once freed, until that stream's work is done."""

    def memory_use(self, device: Device) -> MemoryUse:
        """Return the memory in use."""

    def reset_peak_memory(self, device: Device) -> None:
        """Begin a new `MemoryUse.peak`."""

    def empty_cache(self) -> None:
        """Give back the memory that is kept for later but in no use."""

    def device_name(self, device: Device) -> str:
        """Return a display name of the device."""


@runtime_checkable
class CopiesIntoHost(Protocol):
    """An accelerator that copies into pinned memory that a program has already."""

    def copy_into_host(self, array: Array, host: Any) -> None:
        """Copy an array of this backend into an array of NumPy; returns at once.

        Args:
            array: Array to copy.
            host: Of the same shape and dtype, in C order, in pinned memory.
        """


__all__ = [
    "Accelerator",
    "Array",
    "ArrayTypes",
    "Backend",
    "CopiesIntoHost",
    "MemoryUse",
    "StreamLike",
]
