"""Questions about all devices of one type: which is current, their memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeAlias

from gradviz.backends.base import (
    MemoryUse,
    accelerator_of,
    backend_of,
    count_devices,
    current_accelerator,
    find_accelerator,
)
from gradviz.backends.device import Device, current_index, set_current_index
from gradviz.backends.stream import (
    Event,
    Stream,
    current_stream,
    default_stream,
    make_current_again,
    set_stream,
    synchronize,
)

#: A device, its name or its index; None for the current one of its type.
DeviceLike: TypeAlias = Device | str | int | None


class DeviceType:
    """The functions of `gradviz.cuda`, `gradviz.sim` and `gradviz.accelerator`.

    Each takes a device as PyTorch does, see `DeviceLike`, and raises a ValueError for
    one of another type and a RuntimeError for one that does not exist.

    Args:
        name: The type's; None for that of the current accelerator, whatever it is.

    Source: torch/cuda/__init__.py, torch/cuda/memory.py, torch/accelerator.
    """

    def __init__(self, name: str | None) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """Of the type.

        Raises:
            RuntimeError: That of the accelerator is meant, and there is none.
        """
        return self._name or current_accelerator().type

    def parse(self, device: DeviceLike = None) -> Device:
        """The device that is meant.

        Raises:
            ValueError: It is of another type.
        """
        name = self.name
        if device is None:
            return Device(name)
        parsed = Device(name, device) if isinstance(device, int) else Device(device)
        if parsed.type != name:
            raise ValueError(f"Expected a {name} device, but got: {parsed}")
        return parsed

    # --- which there are ------------------------------------------------------------

    def is_available(self) -> bool:
        """Return whether there is a device of this type that gradviz can use."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """Return the number of usable devices of this type."""
        if self._name is None and find_accelerator() is None:
            return 0
        return count_devices(self.name)

    def is_initialized(self) -> bool:
        """Return whether one of them has been used."""
        return self.is_available() and backend_of(self.parse(0)).is_initialized()

    def get_device_name(self, device: DeviceLike = None) -> str:
        """Return a display name of the device."""
        device = self.parse(device)
        return accelerator_of(device).device_name(device)

    # --- which is current -----------------------------------------------------------

    def current_device(self) -> int:
        """The index of the current one."""
        backend_of(self.parse(0))  # raises if there is none
        return current_index(self.name)

    def set_device(self, device: DeviceLike) -> None:
        """Make it the current one of its type, in the calling context.

        A negative index does nothing, as in PyTorch.

        Raises:
            ValueError: It is None, or of another type.
            RuntimeError: There is no such device.
        """
        if device is None:
            raise ValueError(
                "Expected a device with a specified index or an integer, but got: None"
            )
        if not isinstance(device, int) or device >= 0:
            set_stream(current_stream(self.parse(device)))

    @contextmanager
    def device(self, device: DeviceLike) -> Iterator[None]:
        """Make it the current one of its type for a block.

        None and a negative index do nothing.
        """
        if device is None or (isinstance(device, int) and device < 0):
            yield
            return
        outer = self.parse()
        self.set_device(device)
        try:
            yield
        finally:  # even if that was removed meanwhile: whoever uses it is told
            set_current_index(outer.type, outer.number)
            make_current_again(outer)

    # --- streams --------------------------------------------------------------------

    def current_stream(self, device: DeviceLike = None) -> Stream:
        """Return the stream of work that is launched on the device here."""
        return current_stream(self.parse(device))

    def default_stream(self, device: DeviceLike = None) -> Stream:
        """The stream that is current unless another one is chosen."""
        return default_stream(self.parse(device))

    def synchronize(self, device: DeviceLike = None) -> None:
        """Wait for all work of all streams of the device.

        Raises:
            RuntimeError: Some of it failed.
        """
        synchronize(self.parse(device))

    # --- memory ---------------------------------------------------------------------

    def memory_allocated(self, device: DeviceLike = None) -> int:
        """Bytes of the arrays there that live."""
        return self._memory_use(device).allocated

    def max_memory_allocated(self, device: DeviceLike = None) -> int:
        """The most bytes that arrays have had at once since the last reset."""
        return self._memory_use(device).peak

    def memory_reserved(self, device: DeviceLike = None) -> int:
        """Bytes that the allocator holds, those kept for later included."""
        return self._memory_use(device).reserved

    def reset_peak_memory_stats(self, device: DeviceLike = None) -> None:
        """Reset `max_memory_allocated`."""
        device = self.parse(device)
        accelerator_of(device).reset_peak_memory(device)

    def empty_cache(self) -> None:
        """Give back the memory that is kept for later, if any device is in use.

        Raises:
            RuntimeError: That of the accelerator is meant, and there is none.
        """
        first = self.parse(0)
        if self.is_initialized():
            accelerator_of(first).empty_cache()

    def _memory_use(self, device: DeviceLike) -> MemoryUse:
        device = self.parse(device)
        if device.number == 0 and not self.is_available():
            return MemoryUse(0, 0, 0)  # as PyTorch: programs always print it
        return accelerator_of(device).memory_use(device)


class StreamOfType(Stream):
    """A stream of one type of device, made as PyTorch makes those of CUDA.

    Args:
        device: Device of the stream; None for the current one of its type.
        priority: As of `Stream`.

    Source: torch.cuda.Stream.
    """

    __slots__ = ()

    _type: ClassVar[str]

    def __init_subclass__(cls, type: str) -> None:  # noqa: A002 - as Device has it
        super().__init_subclass__(type)
        cls._type = type

    def __init__(self, device: DeviceLike = None, priority: int = 0) -> None:
        super().__init__(DeviceType(self._type).parse(device), priority=priority)


class EventOfType(Event):
    """An event of streams of one type, made as PyTorch makes those of CUDA.

    The arguments are those of `Event`. Source: torch.cuda.Event.
    """

    __slots__ = ()

    def __init_subclass__(cls, type: str) -> None:  # noqa: A002 - as Device has it
        cls._type = type

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        super().__init__(
            enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )
