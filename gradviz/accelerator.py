"""The program's accelerator: PyTorch's names in ``gradviz.accelerator``.

It is the GPU of `gradviz.cuda` where there is one, else the simulated devices of
`gradviz.sim`, if the program has asked for them. A program that uses these names runs
on both, and on the CPU where there is neither. A device is a `Device`, its name, its
index, or None for the current one.
"""

from gradviz.backends import base
from gradviz.backends.device import Device
from gradviz.backends.device_type import DeviceType
from gradviz.backends.stream import set_stream

_devices = DeviceType(None)

current_device_index = _devices.current_device
current_stream = _devices.current_stream
device_count = _devices.device_count
device_index = _devices.device
empty_cache = _devices.empty_cache
is_available = _devices.is_available
max_memory_allocated = _devices.max_memory_allocated
memory_allocated = _devices.memory_allocated
memory_reserved = _devices.memory_reserved
reset_peak_memory_stats = _devices.reset_peak_memory_stats
set_device_index = _devices.set_device
synchronize = _devices.synchronize


def current_accelerator(check_available: bool = False) -> Device | None:
    """The current device of the accelerator, None if there is none.

    Args:
        check_available: Accepted; an unavailable device is None in any case.
    """
    del check_available
    return base.find_accelerator()


__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device_index",
    "set_stream",
    "synchronize",
]
