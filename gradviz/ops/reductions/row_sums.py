"""Sums and largest elements of rows, faster than by NumPy's own reductions.

NumPy begins anew with each row, which takes 50 to 100 ns, and adds up one by one what
lies apart. BLAS adds up rows, or all rows, as a product with ones. The largest elements
of short rows are found in all rows at once, in a copy that has them as columns.
"""

from math import prod
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, kept_shape

#: From so many elements on it pays.
_MANY: Final = 1024

#: Rows that are no longer are copied.
_SHORT: Final = 48

#: Types that BLAS computes with.
_OF_BLAS: Final = "fdFD"


def largest(x: Array, axis: int) -> Array:
    """The largest elements along an axis, which stays; of no elements -inf."""
    is_last = axis in (-1, x.ndim - 1) and x.ndim > 1
    if is_last and x.size >= _MANY and x.shape[axis] <= _SHORT:
        columns = np.copy(np.moveaxis(x, axis, 0), order="C")
        return np.max(columns, axis=0)[..., None]
    return np.max(x, axis=axis, keepdims=True, initial=-np.inf)


def summed(x: Array, axes: Shape) -> Array:
    """The sums over axes, in ascending order, which stay."""
    if x.dtype.char == "e":  # its own sums lose all precision
        wide = np.add.reduce(x, axis=axes, keepdims=True, dtype=np.float32)
        return wide.astype(x.dtype)
    if x.size < _MANY or x.dtype.char not in _OF_BLAS or not x.flags.c_contiguous:
        return np.add.reduce(x, axis=axes, keepdims=True)
    last = _num_last(x, axes)
    size = prod([x.shape[axis] for axis in axes[len(axes) - last :] or axes])
    ones = np.ones_like(x, shape=(size,))
    if last:
        sums = np.matmul(x.reshape((-1, size)), ones)
        return _summed_further(sums, x, axes, last)
    if axes == tuple(range(len(axes))):
        sums = np.matmul(ones, x.reshape((size, -1)))
        return sums.reshape(kept_shape(x.shape, axes))
    if axes == (x.ndim - 2,):
        return np.matmul(ones, x)[..., None, :]
    return np.add.reduce(x, axis=axes, keepdims=True)


def summed_products(x: Array, y: Array, axes: Shape) -> Array:
    """The sums of ``x * y``, both real and of one shape, over axes, which stay."""
    last = _num_last(x, axes)
    if not last or not (x.flags.c_contiguous and y.flags.c_contiguous) or not x.size:
        return summed(x * y, axes)
    rows = (-1, prod(x.shape[x.ndim - last :]))
    sums = np.vecdot(x.reshape(rows), y.reshape(rows))
    return _summed_further(sums, x, axes, last)


def _num_last(x: Array, axes: Shape) -> int:
    """Return how many of the axes are the last ones of `x`."""
    count = 0
    while count < len(axes) and axes[-1 - count] == x.ndim - 1 - count:
        count += 1
    return count


def _summed_further(sums: Array, x: Array, axes: Shape, last: int) -> Array:
    """The sums over the last axes of `x`, over its other axes too."""
    others = axes[: len(axes) - last]
    sums = sums.reshape(kept_shape(x.shape, axes[len(axes) - last :]))
    return np.add.reduce(sums, axis=others, keepdims=True) if others else sums
