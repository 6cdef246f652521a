"""Simulated accelerators: asynchronous devices over NumPy.

``sim:0`` to ``sim:N-1`` keep their arrays apart from the host's and do their work in
streams, as a GPU does: a launch returns at once, a stream works in order, two streams
do not wait for each other unless told to, memory that is free is used again, and errors
of kernels come late. A program that is wrong on a GPU is wrong here as well, and it
shows: see `set_executor` and `set_latency`.

In: calls of NumPy's functions. Out: arrays, filled once their stream has worked. Read
bottom up: `devices`, `arrays`, `backend`, `settings`.
"""

from gradviz.backends.simulated.arrays.array import SimulatedArray
from gradviz.backends.simulated.backend import SimulatedBackend
from gradviz.backends.simulated.backend import backend as _backend
from gradviz.backends.simulated.devices.latency import (
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
