"""Some entries of a dimension, as views."""

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, at, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "SelectBackward0",
    view=True,
    x=lambda grad, x_shape, dim, index: select_backward(grad, x_shape, dim, index),
)
def select_entry(x: Array, dim: int, index: int) -> Array:
    """`select` without its checks."""
    return x[at(dim, index)]


@differentiable(
    "SliceBackward0",
    view=True,
    x=lambda grad, x_shape, dim, part: slice_backward(grad, x_shape, dim, part),
)
def slice_part(x: Array, dim: int, part: slice) -> Array:
    """Some entries of a dimension."""
    return x[at(dim, part)]


@differentiable(
    "SelectBackwardBackward0", x=lambda grad, dim, index: select_entry(grad, dim, index)
)
def select_backward(x: Array, shape: Shape, dim: int, index: int) -> Array:
    """Zeros of `shape`, with `x` as one entry of a dimension."""
    result: Array = np.zeros_like(x, shape=shape)
    assign(result, at(dim, index), x)
    return result


@differentiable(
    "SliceBackwardBackward0", x=lambda grad, dim, part: slice_part(grad, dim, part)
)
def slice_backward(x: Array, shape: Shape, dim: int, part: slice) -> Array:
    """Zeros of `shape`, with `x` as some entries of a dimension."""
    result: Array = np.zeros_like(x, shape=shape)
    assign(result, at(dim, part), x)
    return result


def select(input: Value, dim: int, index: int) -> Value:
    """One entry of a dimension, which is then gone.

    Raises:
        IndexError: There is no such dimension, or no such entry.
    """
    shape = raw(input).shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at "
            f"dimension {dim}"
        )
    return select_entry(input, dim, index % shape[dim])


def narrow(input: Value, dim: int, start: int | Value, length: int) -> Value:
    """`length` entries of a dimension from `start`, which may be a tensor.

    Raises:
        IndexError: There is no such dimension, or `start` is out of range.
        RuntimeError: The part is too long.
    """
    shape = raw(input).shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if hasattr(start, "dtype"):
        if raw(start).ndim or raw(start).dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(raw(start))
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but "
            f"got {start})"
        )
    start += size * (start < 0)
    if start > size - length:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({size})."
        )
    return slice_part(input, dim, slice(start, start + length, 1))


PUBLIC = [*names("gv.f x.f", narrow, select)]
