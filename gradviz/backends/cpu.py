"""The CPU: plain NumPy arrays.

Note [Freed memory is kept]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
Each step of a training needs the same arrays again. Yet glibc returns freed memory to
the system until a program has once freed an array of some size: from then on it keeps
up to twice as much. Getting and losing the pages of a medium-sized model took a tenth
to a quarter of each step. So an array of nearly the largest size that counts, 32 MB, is
made and freed at the start; as nothing is written to it, it never takes memory. This
concerns neither other C libraries nor programs whose environment sets
``MALLOC_TRIM_THRESHOLD_`` or another of glibc's options: those stand.

Source: glibc, malloc/malloc.c, __libc_free (mmap_threshold, trim_threshold).
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy import ndarray

from gradviz.backends.arrays.pinned_array import PinnedArray
from gradviz.backends.base import Array, ArrayTypes, register
from gradviz.backends.device import CPU, Device

_add_up: Final[Callable[..., Any]] = np.add.reduce

#: As many as a batch has rows, mostly; never written to.
_ONES: Final = {
    np.dtype(kind): np.ones(4096, kind) for kind in (np.float32, np.float64)
}

#: See Note [Freed memory is kept].
_LARGEST_THAT_COUNTS: Final = 31 << 20


def sum_along(array: Array, axes: int | tuple[int, ...]) -> Array:
    """``array.sum(axes)``; the rows of a matrix of floats are added up by BLAS.

    That is what becomes of the gradient of each bias. BLAS takes a half to a tenth of
    the time: NumPy adds row by row.
    """
    if type(array) is not ndarray:
        return array.sum(axes)
    if axes == 0 and array.ndim == 2 and array.flags.c_contiguous:
        ones, num_rows = _ONES.get(array.dtype), len(array)
        if ones is not None and num_rows <= len(ones):
            return ones[:num_rows].dot(array)
    return _add_up(array, axes)


class CpuBackend:
    """NumPy arrays in host memory."""

    type = "cpu"
    # NumPy's scalars, which its functions return for arrays without dimensions, count.
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


np.empty(_LARGEST_THAT_COUNTS, np.uint8)
register(CpuBackend())
