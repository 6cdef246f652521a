"""Devices: the places where arrays live and work is done.

In: names of devices, and calls of NumPy's functions on their arrays. Out: arrays,
streams, and reports of kernels and memory. Read `device`, `protocols`, `base`, the room
`arrays`, then a backend: `cpu`, or the room `cuda` or `simulated`.
"""

from gradviz.backends import cpu, cuda, simulated

__all__ = ["cpu", "cuda", "simulated"]  # imported so that they register themselves
