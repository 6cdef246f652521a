"""Simulated devices, ``sim:0`` and so on: PyTorch's names in ``gradviz.sim``.

They mirror `gradviz.cuda`'s GPUs. A simulation can also have any number of devices, let
kernels take their time, run out of memory, and fail.
"""

from gradviz.backends.device_type import DeviceType, EventOfType, StreamOfType
from gradviz.backends.simulated import (
    Kernel,
    Latency,
    by_kernel,
    fixed,
    lose,
    preset,
    randomly,
    reset,
    set_device_count,
    set_executor,
    set_latency,
    set_memory_limit,
    stepped,
)
from gradviz.backends.stream import set_stream, stream

_devices = DeviceType("sim")

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


class Stream(StreamOfType, type="sim"):
    """A queue of work of a simulated device; see `gradviz.Stream`."""

    __slots__ = ()


class Event(EventOfType, type="sim"):
    """A point in the work of a simulated stream; see `gradviz.Event`."""

    __slots__ = ()


__all__ = [
    "Event",
    "Kernel",
    "Latency",
    "Stream",
    "by_kernel",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "fixed",
    "get_device_name",
    "is_available",
    "is_initialized",
    "lose",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "preset",
    "randomly",
    "reset",
    "reset_peak_memory_stats",
    "set_device",
    "set_device_count",
    "set_executor",
    "set_latency",
    "set_memory_limit",
    "set_stream",
    "stepped",
    "stream",
    "synchronize",
]
