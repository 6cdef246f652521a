"""CUDA devices, by way of CuPy: PyTorch's names in ``gradviz.cuda``.

A device is a `Device`, its name, its index, or None for the current one. Without CuPy
or a GPU `is_available` is false, and everything else raises an error that names the
missing part.
"""

from gradviz.backends.device_type import DeviceType, EventOfType, StreamOfType
from gradviz.backends.stream import set_stream, stream
from gradviz.errors import OutOfMemoryError
from gradviz.ops.conventions.generator import default_generator

_devices = DeviceType("cuda")

current_device = _devices.current_device
current_stream = _devices.current_stream
default_stream = _devices.default_stream
device = _devices.device
device_count = _devices.device_count
empty_cache = _devices.empty_cache
get_device_name = _devices.get_device_name
is_available = _devices.is_available
is_initialized = _devices.is_initialized
max_memory_allocated = _devices.max_memory_allocated
memory_allocated = _devices.memory_allocated
memory_reserved = _devices.memory_reserved
reset_peak_memory_stats = _devices.reset_peak_memory_stats
set_device = _devices.set_device
synchronize = _devices.synchronize


def manual_seed(seed: int) -> None:
    """Seed the random numbers.

    Differs: the numbers of all devices are drawn on the host, by one generator.
    """
    default_generator.manual_seed(seed)


#: The devices share a generator.
manual_seed_all = manual_seed


class Stream(StreamOfType, type="cuda"):
    """A queue of work of a CUDA device; see `gradviz.Stream`."""

    __slots__ = ()


class Event(EventOfType, type="cuda"):
    """A point in the work of a CUDA stream; see `gradviz.Event`."""

    __slots__ = ()


__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
]
