"""Elements at arrays of indices, taken and put."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.promotion import Scalar
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import sum_to
from gradviz.ops.shapes.gathering import add_rows
from gradviz.ops.shapes.index_arrays import (
    Indices,
    index_array,
    is_mask,
    misfit,
    prepared,
)
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "IndexBackward0",
    arrays=("indices",),
    x=lambda grad, x_shape, indices: _index_backward(None, grad, x_shape, indices),
)
def index_at(x: Array, indices: Indices) -> Array:
    """Return ``x[indices]``."""
    try:
        return in_c_order(x[indices])
    except IndexError as error:
        raise misfit(x.shape, indices) from error


@differentiable(
    "IndexPutImplBackward0",
    arrays=("indices",),
    onto=lambda grad: grad,
    x=lambda grad, indices: index_at(grad, indices),
)
def _index_backward(onto: None, x: Array, shape: Shape, indices: Indices) -> Array:
    del onto  # an edge that leads nowhere, as in PyTorch
    result: Array = np.zeros_like(x, shape=shape, order="C")  # for `add_rows`
    if _never_twice(indices):
        assign(result, indices, x)
    elif len(indices) == 1 and len(shape) > 1:
        add_rows(result, indices[0], x)
    else:
        np.add.at(result, indices, x)
    return result


def _put_backward(grad: Gradient, indices: Indices, accumulate: bool) -> Gradient:
    return grad if accumulate else _index_put(grad, indices, 0, False)


@differentiable(
    "IndexPutBackward0",
    arrays=("indices",),
    x=_put_backward,
    value=lambda grad, indices, value_shape: sum_to(
        index_at(grad, indices), value_shape
    ),
)
def _index_put(x: Array, indices: Indices, value: Array, accumulate: bool) -> Array:
    result = np.copy(x)
    mask = None if accumulate else _lone_mask(x.ndim, indices, value)
    if mask is not None:
        np.copyto(result, np.reshape(value, ()), where=mask)
        return result
    try:
        if accumulate:
            np.add.at(result, indices, value)
        else:
            assign(result, indices, value)
    except IndexError as error:
        raise misfit(x.shape, indices) from error
    return result


def index_put(
    input: Value,
    indices: Sequence[Value],
    values: Value,
    accumulate: bool = False,
) -> Value:
    """A copy of `input` with `values` where the indices say.

    Args:
        input: Tensor that is copied first.
        indices: A tensor of integers or booleans for each dimension that is indexed;
            they broadcast. None stands for all of a dimension.
        values: Elements that are written; broadcasts to what the indices take.
        accumulate: Add to what is there, for a place named twice both.

    Raises:
        IndexError: An index is out of range, or of an unknown type.
        RuntimeError: The dtypes differ, or the values do not fit.
    """
    x = raw(input)
    gathers: dict[int, Array] = {}
    dim = 0
    for one in indices:
        if one is None:
            dim += 1
            continue
        array = index_array(one)
        gathers[dim] = array
        dim += array.ndim if is_mask(array) else 1
    if dim > x.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension {x.ndim} (got {dim})"
        )
    return put(input, prepared(x, gathers), values, accumulate)


def put(input: Value, indices: Indices, values: Value, accumulate: bool) -> Value:
    """`index_put` for indices that `views_and_arrays` returned.

    Raises:
        RuntimeError: The dtypes differ, or the values do not fit.
    """
    x, given = raw(input), raw(values)
    if x.dtype != given.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got "
            f"{scalar_type_name(x.dtype)} for the destination and "
            f"{scalar_type_name(given.dtype)} for the source."
        )
    if not accumulate and _lone_mask(x.ndim, indices, given) is not None:
        return _index_put(input, indices, values, accumulate)
    try:
        place = _taken_shape(x.shape, indices)
    except IndexError as error:
        raise misfit(x.shape, indices) from error
    lacking = len(given.shape) - len(place)
    if lacking > 0 and set(given.shape[:lacking]) == {1}:
        values = reshape(values, given.shape[lacking:])
    try:
        np.broadcast_to(raw(values), place)
    except ValueError as error:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given.shape)} cannot be "
            f"broadcast to indexing result of shape {list(place)}"
        ) from error
    return _index_put(input, indices, values, accumulate)


def _taken_shape(shape: Shape, indices: Indices) -> Shape:
    """Return the shape of ``x[indices]`` without taking it."""
    stand_ins: list[Any] = []
    for one in indices:
        if isinstance(one, slice):
            stand_ins.append(one)
        elif is_mask(one):
            stand_ins += [np.zeros(int(np.count_nonzero(one)), np.int64)] * one.ndim
        else:
            stand_ins.append(np.zeros(one.shape, np.int64))
    return np.broadcast_to(np.int8(), shape)[tuple(stand_ins)].shape


def _lone_mask(ndim: int, indices: Indices, value: Array | Scalar) -> Array | None:
    """The mask that one number is written at, as it broadcasts; None if not so.

    How often it holds does not matter then, and nobody waits to see it.
    """
    *before, mask = indices
    if not is_mask(mask) or np.size(value) != 1 or any(map(_is_array, before)):
        return None
    return mask.reshape(*mask.shape, *(1,) * (ndim - len(before) - mask.ndim))


def _is_array(index: Array | slice) -> bool:
    return not isinstance(index, slice)


def _never_twice(indices: Indices) -> bool:
    """Return whether no element can be taken twice."""
    return all(isinstance(one, slice) or is_mask(one) for one in indices)


PUBLIC = [*names("gv.f gv.f_ x.f x.f_", index_put)]
