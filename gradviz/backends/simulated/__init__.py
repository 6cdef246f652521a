"""Simulated accelerators: asynchronous devices over NumPy.

``sim:0`` to ``sim:N-1`` keep their arrays apart from the host's and do their work in
streams, as a GPU does: a launch returns at once, a stream works in order, two streams
do not wait for each other unless told to, memory that is free is used again, and errors
of kernels come late. What is wrong with a program on a GPU is wrong here as well, and
shows: see `set_executor` and `set_latency`.

Bottom up: `work` and `latency`; `worker` and `stepping`, which carry work out;
`layouts` and `memory`; `machine`, which has the devices; `device_array`; `operands`,
what a call is given; `inference` and `functions`, what it will return; `kernels`,
`calls`, `indexing` and `copies`, what it launches; `array`; `backend`; `settings`.
"""

from gradviz.backends.simulated.array import SimulatedArray
from gradviz.backends.simulated.backend import SimulatedBackend
from gradviz.backends.simulated.backend import backend as _backend
from gradviz.backends.simulated.latency import (
    Kernel,
    Latency,
    by_kernel,
    fixed,
    preset,
    randomly,
)
from gradviz.backends.simulated.settings import (
    device_count,
    empty_cache,
    lose,
    reset,
    set_device_count,
    set_executor,
    set_latency,
    set_memory_limit,
    stepped,
)

__all__ = [
    "Kernel",
    "Latency",
    "SimulatedArray",
    "SimulatedBackend",
    "_backend",
    "by_kernel",
    "device_count",
    "empty_cache",
    "fixed",
    "lose",
    "preset",
    "randomly",
    "reset",
    "set_device_count",
    "set_executor",
    "set_latency",
    "set_memory_limit",
    "stepped",
]
