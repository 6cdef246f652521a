"""The CPU: plain NumPy arrays."""

import numpy as np

from gradviz.backends.base import ArrayTypes, register
from gradviz.backends.device import CPU, Device
from gradviz.backends.pinned_array import PinnedArray


class CpuBackend:
    """NumPy arrays in host memory."""

    type = "cpu"
    # What NumPy's functions return in place of an array without dimensions counts too.
    array_types: ArrayTypes = (np.ndarray, PinnedArray, *set(np.sctypeDict.values()))

    def device_count(self) -> int:
        """There is one CPU."""
        return 1

    def is_initialized(self) -> bool:
        """The CPU is always there."""
        return True

    def device_of(self, array: np.ndarray) -> Device:
        """Every NumPy array is on the CPU."""
        del array
        return CPU

    def from_host(
        self, array: np.ndarray, device: Device, *, non_blocking: bool = False
    ) -> np.ndarray:
        """A copy, as every other backend makes one."""
        del device, non_blocking
        return array.copy()

    def to_host(self, array: np.ndarray, *, non_blocking: bool = False) -> np.ndarray:
        """A copy, as every other backend makes one; of a NumPy scalar a 0-d array."""
        del non_blocking
        return np.asarray(array.copy())


register(CpuBackend())
