"""Pinned memory: host memory that a device copies from and to on its own.

A copy from such memory, or into it, may still be going on when `to` returns; the host
must leave it alone until then.
"""

from typing import Any

import numpy as np

from gradviz.backends.arrays.pinned_array import PinnedArray, pinned_array
from gradviz.backends.protocols import Accelerator


class PinnedMemory(bytearray):
    """Memory for backends that read any memory of the host as they read pinned one."""

    __slots__ = ()


#: The classes of the memory that backends have made so far.
_classes: set[type] = {PinnedMemory}


def empty_pinned(
    shape: tuple[int, ...], dtype: np.dtype[Any], accelerator: Accelerator
) -> PinnedArray:
    """An array in pinned memory, in C order, with whatever is in there."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    memory = accelerator.pinned_memory(max(size, 1))
    _classes.add(type(memory))
    return pinned_array(memory, shape, dtype)


def pinned(array: np.ndarray, accelerator: Accelerator) -> np.ndarray:
    """A copy of a host array in pinned memory, in C order."""
    copy = empty_pinned(array.shape, array.dtype, accelerator)
    copy[...] = array
    return copy


def is_pinned(array: object) -> bool:
    """Return whether the elements of a host array are in pinned memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return type(array) in _classes
