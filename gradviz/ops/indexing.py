"""What ``x[...]`` means: a chain of views, then at most one gather.

As in PyTorch, integers, slices, None and the ellipsis each make a view of their own,
from left to right; arrays of integers or booleans are applied together at the end.
Source: torch/csrc/autograd/python_variable_indexing.cpp, THPVariable_getitem.
"""

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.differentiable import differentiable
from gradviz.ops.shape import Shape, alias, unsqueeze
from gradviz.ops.variable import Value, raw


@differentiable(
    "SelectBackward0",
    x=lambda grad, x_shape, dim, index: _select_backward(grad, x_shape, dim, index),
)
def select(x: Array, dim: int, index: int) -> Array:
    """One entry of a dimension, which is then gone."""
    return x[(*(slice(None),) * dim, index)]


@differentiable(
    "SliceBackward0",
    x=lambda grad, x_shape, dim, part: _slice_backward(grad, x_shape, dim, part),
)
def slice_(x: Array, dim: int, part: slice) -> Array:
    """Some entries of a dimension."""
    return x[(*(slice(None),) * dim, part)]


@differentiable(
    "SelectBackwardBackward0", x=lambda grad, dim, index: select(grad, dim, index)
)
def _select_backward(x: Array, shape: Shape, dim: int, index: int) -> Array:
    result: Array = np.zeros_like(x, shape=shape)
    result[(*(slice(None),) * dim, index)] = x
    return result


@differentiable(
    "SliceBackwardBackward0", x=lambda grad, dim, part: slice_(grad, dim, part)
)
def _slice_backward(x: Array, shape: Shape, dim: int, part: slice) -> Array:
    result: Array = np.zeros_like(x, shape=shape)
    result[(*(slice(None),) * dim, part)] = x
    return result


@differentiable(
    "IndexBackward0",
    arrays=("indices",),
    x=lambda grad, x_shape, indices: _index_backward(grad, x_shape, indices),
)
def _index(x: Array, indices: Value) -> Array:
    return x[indices]


@differentiable(
    "IndexPutBackward0",
    arrays=("indices",),
    x=lambda grad, indices: _index(grad, indices),
)
def _index_backward(x: Array, shape: Shape, indices: Value) -> Array:
    result: Array = np.zeros_like(x, shape=shape)
    if all(isinstance(one, slice) or _is_mask(one) for one in indices):
        result[indices] = x  # no element is taken twice
    else:
        np.add.at(result, indices, x)
    return result


def getitem(x: Value, index: Value) -> Value:
    """``x[index]``.

    Raises:
        IndexError: Too many indices, one out of range, or one of an unknown type.
        ValueError: A slice goes backwards.
    """
    if type(index) is int:  # a shorter way to what happens below
        return _selected(x, 0, index)
    if isinstance(index, slice):
        return _sliced(x, 0, index)
    if index is Ellipsis:
        return alias(x)
    items = index if isinstance(index, tuple) else (index,)
    ndim = raw(x).ndim
    _check_number(items, ndim)
    result, gathers = _views(x, items, ndim)
    gathers = _spread_masks(gathers)
    if not gathers:
        return alias(x) if result is x else result
    last = max(gathers)
    return _index(
        result, tuple(gathers.get(dim, slice(None)) for dim in range(last + 1))
    )


def _views(
    x: Value, items: tuple[Value, ...], ndim: int
) -> tuple[Value, dict[int, Array]]:
    """Apply what makes views; return also the arrays, by the dimension they index.

    `dim` counts the dimensions of the result so far, `taken` those of the original.
    """
    gathers: dict[int, Array] = {}
    dim = taken = 0
    for item in items:
        match item:
            case bool() | np.bool_():
                x = unsqueeze(x, dim)
                gathers[dim] = np.full(1, item)
                dim += 1
            case int() | np.integer():
                x = _selected(x, dim, int(item), taken)
                taken += 1
            case slice():
                if item != slice(None):
                    x = _sliced(x, dim, item)
                dim, taken = dim + 1, taken + 1
            case None:
                x = unsqueeze(x, dim)
                dim += 1
            case _ if item is Ellipsis:
                skipped = ndim - _num_indexed(items)
                dim, taken = dim + skipped, taken + skipped
            case _:
                array = _index_array(item)
                if array.ndim == 0 and array.dtype.kind in "iu":
                    x = _selected(x, dim, int(array), taken)
                    taken += 1
                    continue
                gathers[dim] = array
                width = array.ndim if _is_mask(array) else 1
                dim, taken = dim + width, taken + width
    return x, gathers


def _spread_masks(gathers: dict[int, Array]) -> dict[int, Array]:
    """A mask of several dimensions as one array of integers for each (``nonzero``)."""
    spread: dict[int, Array] = {}
    for dim, array in gathers.items():
        if _is_mask(array) and array.ndim > 1:
            spread.update({dim + i: part for i, part in enumerate(np.nonzero(array))})
        else:
            spread[dim] = array
    return spread


def _selected(x: Value, dim: int, index: int, named: int = 0) -> Value:
    shape = raw(x).shape
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim "
            "tensor to a number"
        )
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(
            f"index {index} is out of bounds for dimension {named} "
            f"with size {shape[dim]}"
        )
    return select(x, dim, index % shape[dim])


def _sliced(x: Value, dim: int, part: slice) -> Value:
    shape = raw(x).shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if part.step is not None and part.step <= 0:
        raise ValueError("step must be greater than zero")
    return slice_(x, dim, slice(*part.indices(shape[dim])))


def _index_array(item: object) -> Array:
    array = raw(item)
    if isinstance(array, (list, range)):
        array = np.asarray(array)
        array = array if array.size else array.astype(np.int64)
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.kind not in "iub":
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`), None and long or byte "
            f"Variables are valid indices (got {dtype or type(item).__name__})"
        )
    return array


def _num_indexed(items: tuple[Value, ...]) -> int:
    """How many dimensions the items take."""
    count = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        array = raw(item)
        count += array.ndim if _is_mask(array) else 1
    return count


def _is_mask(index: Value) -> bool:
    return bool(getattr(index, "dtype", None) == np.bool_)


def _check_number(items: tuple[Value, ...], ndim: int) -> None:
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if _num_indexed(items) > ndim and ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
