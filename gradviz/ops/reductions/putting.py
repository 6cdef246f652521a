"""Copies of a tensor with elements of another at flat places, or where a mask holds."""

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Scalar
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import where
from gradviz.ops.reductions.scatter import padded
from gradviz.ops.shapes.broadcasting import common_shape
from gradviz.ops.shapes.gathering import (
    check_flat_bounds,
    select_by_mask,
    take_at,
)
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "PutBackward0",
    arrays=("index",),
    x=lambda grad, index, accumulate: (
        grad if accumulate else _put_number(grad, index, 0)
    ),
    source=lambda grad, index, source_shape: reshape(
        take_at(grad, index), source_shape
    ),
)
def _put(x: Array, index: Array, source: Array, accumulate: bool) -> Array:
    result = np.copy(x, order="C")  # so that `reshape` is a view
    flat, values = result.reshape(-1), source.reshape(index.shape)
    if accumulate:
        np.add.at(flat, index, values)
    else:
        assign(flat, index, values)
    return result


@differentiable(
    "PutBackward0",
    arrays=("index",),
    x=lambda grad, index: _put_number(grad, index, 0),
)
def _put_number(x: Array, index: Array, value: Scalar) -> Array:
    result = np.copy(x, order="C")  # so that `reshape` is a view
    result.reshape(-1)[index] = value
    return result


def put(input: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """`input`, with elements of `source` at flat places.

    Args:
        input: Tensor that is copied first.
        index: Integers, places in the flattened input.
        source: As many elements.
        accumulate: Add them to what is there.

    Raises:
        IndexError: An index is out of range, or there are not as many elements.
        RuntimeError: The dtypes do not fit.
    """
    x, indices, values = raw(input), raw(index), raw(source)
    if indices.dtype != np.int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got "
            f"{scalar_type_name(indices.dtype)}"
        )
    if x.dtype != values.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got "
            f"self.dtype = {scalar_type_name(x.dtype)} and source.dtype = "
            f"{scalar_type_name(values.dtype)}"
        )
    if indices.size != values.size:
        raise IndexError(
            f"put_(): Expected source and index to have the same number of elements, "
            f"but got source.numel() = {values.size}, index.numel() = {indices.size}"
        )
    check_flat_bounds("put", indices, x.size)
    return _put(input, indices, source, accumulate)


@differentiable(
    "MaskedScatterBackward0",
    arrays=("mask",),
    x=lambda grad, mask: where(mask, 0, grad),
    source=lambda grad, mask, source_shape: _scattered_source(grad, mask, source_shape),
)
def _masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    return in_one_kernel("masked_scatter", _masked_copy, x, mask, source)


def _masked_copy(x: Array, mask: Array, source: Array) -> Array:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    result = np.broadcast_to(x, shape).copy()
    wide = np.broadcast_to(mask, shape)
    count = int(np.count_nonzero(wide))
    if count > source.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    assign(result, wide, source.reshape(-1)[:count])
    return result


def _scattered_source(grad: Gradient, mask: Array, shape: Shape) -> Gradient:
    taken = select_by_mask(grad, mask)
    return reshape(padded(taken, (int(np.prod(shape)),)), shape)


def masked_scatter(input: Value, mask: Value, source: Value) -> Value:
    """`input`, with the elements of `source`, one after the other, where `mask` holds.

    Raises:
        RuntimeError: `source` has too few, or shapes or dtypes do not fit.
    """
    x, places, values = raw(input), raw(mask), raw(source)
    if places.dtype != np.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{scalar_type_name(places.dtype)}"
        )
    if x.dtype != values.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got"
            f"{scalar_type_name(x.dtype)} and {scalar_type_name(values.dtype)}"
        )
    common_shape(x.shape, places.shape)
    return _masked_scatter(input, places, source)


PUBLIC = [*names("gv.f x.f x.f_", masked_scatter, put)]
