"""Elements repeated."""

from collections.abc import Sequence
from math import prod

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Dims, Shape, several, wrap_dim
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import expand
from gradviz.ops.shapes.copying import contiguous_copy
from gradviz.ops.shapes.gathering import index_select
from gradviz.ops.shapes.shape import reshape, view
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, raw, variable


def _folded(grad: Gradient, repeats: Shape, shape: Shape) -> Gradient:
    """The sum of all repetitions of each element."""
    added = len(repeats) - len(shape)
    lengths = (1,) * added + shape
    pairs = tuple(size for pair in zip(repeats, lengths, strict=True) for size in pair)
    if not prod(repeats):
        return grad.sum() * np.zeros_like(raw(grad), shape=shape)
    each = reshape(grad, pairs).sum(tuple(range(0, len(pairs), 2)))
    return reshape(each, shape)


@differentiable(
    "RepeatBackward0",
    x=lambda grad, repeats, x_shape: _folded(grad, repeats, x_shape),
)
def _repeat(x: Array, repeats: Shape) -> Array:
    return np.tile(x, repeats)


def repeat(input: Value, repeats: Sequence[int]) -> Value:
    """Copies one after the other, so many for each dimension.

    Raises:
        RuntimeError: There are less numbers than dimensions, or negative ones.
    """
    numbers = tuple(repeats)
    if len(numbers) < raw(input).ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    for number in numbers:
        if number < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {number}: "
                f"{list(numbers)}"
            )
    return _repeat(input, numbers)


def tile(input: Value, dims: Dims) -> Value:
    """`repeat`, where dimensions without a number stay as they are."""
    numbers = several(dims)
    missing = raw(input).ndim - len(numbers)
    return repeat(input, (1,) * missing + numbers)


def repeat_interleave(
    input: Value,
    repeats: int | Value = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Value:
    """Each element, or each entry of a dimension, so many times in a row.

    Args:
        input: Tensor to repeat; alone it is `repeats`, and its indices are repeated.
        repeats: Number of times: a number for all, or a vector with one for each entry.
        dim: Dimension to repeat along; None takes the flattened elements.
        output_size: Number of entries that result, if it is known: nobody has to wait
            for a device then to see it.

    Raises:
        RuntimeError: The numbers do not fit.
    """
    repeats = python_number(repeats)
    if repeats is None:
        _check_repeats(raw(input))
        return variable(_places(raw(input), output_size))
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if not raw(input).ndim:
        input = reshape(input, (1,))
    dim = wrap_dim(dim, raw(input).ndim)
    if not hasattr(repeats, "dtype"):
        return _in_a_row(input, repeats, dim)
    _check_repeats(raw(repeats))
    length = raw(input).shape[dim]
    numbers = raw(repeats)
    if numbers.ndim == 1 and numbers.size == 1:
        numbers = numbers.reshape(())
    if numbers.ndim == 1 and numbers.size != length:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {numbers.size} and input.size({dim}) = {length}"
        )
    places = _places(np.broadcast_to(numbers, (length,)), output_size)
    return index_select(input, dim, places)


def _places(repeats: Array, count: int | None) -> Array:
    """0, 1, ... each as often as a vector says; `count` in all, if that is known."""
    if count is None:
        return np.repeat(np.cumsum(np.ones_like(repeats)) - 1, repeats)
    ends, places = np.cumsum(repeats), beside(repeats, np.arange(count))
    return np.searchsorted(ends, places, side="right")


def _in_a_row(x: Value, repeats: int, dim: int) -> Value:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = raw(x).shape
    wide = (*shape[: dim + 1], repeats, *shape[dim + 1 :])
    copied = contiguous_copy(expand(unsqueeze(x, dim + 1), wide))
    return view(copied, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))


def _check_repeats(repeats: Array) -> None:
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise RuntimeError("repeats has to be Long or Int tensor")
    check_elements("repeat_interleave: check", _check_not_negative, repeats)


def _check_not_negative(repeats: Array) -> None:
    if repeats.size and np.min(repeats) < 0:
        raise RuntimeError("repeats can not be negative")


PUBLIC = [
    *names("gv.f", tile),
    *names("gv.f x.f", repeat_interleave),
]
