"""Indexing: brackets become a chain of views, then at most one gather.

As in PyTorch, integers, slices, None and the ellipsis each make a view of their own,
from left to right; arrays of integers or booleans are applied together at the end.
Source: torch/csrc/autograd/python_variable_indexing.cpp, THPVariable_getitem.
"""

import warnings

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.shapes.index_arrays import (
    Indices,
    Subscript,
    index_array,
    is_mask,
    prepared,
)
from gradviz.ops.shapes.index_put import index_at
from gradviz.ops.shapes.shape import alias
from gradviz.ops.shapes.slicing import select_entry, slice_part
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, raw


def getitem(x: Value, index: Subscript) -> Value:
    """``x[index]``.

    Raises:
        IndexError: Too many indices, one out of range, or one of an unknown type.
        ValueError: A slice goes backwards.
    """
    if type(index) is int:  # a shorter way to what happens below
        return _selected(x, 0, index, 0)
    if isinstance(index, slice):
        return _sliced(x, 0, index)
    if index is Ellipsis:
        return alias(x)
    result, indices = views_and_arrays(x, index)
    if indices is not None:
        return index_at(result, indices)
    return alias(x) if result is x else result


def views_and_arrays(x: Value, index: Value) -> tuple[Value, Indices | None]:
    """Apply the views of an index; the rest is a gather, or an `index_put`.

    Returns:
        The view (`x` itself if there is nothing to view), and the arrays that index it,
        for `put`; None if there are none.

    Raises:
        IndexError: Too many indices, one out of range, or one of an unknown type.
        ValueError: A slice goes backwards.
    """
    items = _as_items(index)
    ndim = raw(x).ndim
    if _num_indexed(items) > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, gathers = _views(x, items, ndim)
    return result, prepared(raw(result), gathers) if gathers else None


def _as_items(index: Value) -> tuple[Value, ...]:
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and any(map(_makes_a_tuple, index)):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated; "
            "use x[tuple(seq)] instead of x[seq].",
            UserWarning,
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def _makes_a_tuple(item: object) -> bool:
    """Return whether a list with such an item means the same as a tuple."""
    return (
        item is None
        or item is Ellipsis
        or isinstance(item, (slice, list, tuple, range))
        or getattr(raw(item), "ndim", 0) > 0
    )


def _views(
    x: Value, items: tuple[Value, ...], ndim: int
) -> tuple[Value, dict[int, Array]]:
    """Apply the views; return also the arrays, by the dimension they index."""
    gathers: dict[int, Array] = {}
    dim = 0
    for position, item in enumerate(items):
        match item:
            case bool() | np.bool_():
                x = unsqueeze(x, dim)
                gathers[dim] = np.full(1, item)
                dim += 1
            case int() | np.integer():
                x = _selected(x, dim, int(item), position)
            case slice():
                # Of several, those that take all make no view.
                x = x if _takes_all(item, x, dim) else _sliced(x, dim, item)
                dim += 1
            case None:
                x = unsqueeze(x, dim)
                dim += 1
            case _ if item is Ellipsis:
                dim += ndim - _num_indexed(items)
            case _:
                array = index_array(item)
                if array.ndim == 0 and array.dtype.kind in "iu":
                    x = _selected(x, dim, int(array), position)
                    continue
                if array.ndim == 0:
                    x = unsqueeze(x, dim)
                    array = array.reshape(1)
                gathers[dim] = array
                dim += array.ndim if is_mask(array) else 1
    return x, gathers


def _selected(x: Value, dim: int, index: int, position: int) -> Value:
    shape = raw(x).shape
    if not shape and not index:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
        )
    size = shape[wrap_dim(dim, len(shape))] if shape else 0
    if not -size <= index < size:
        raise IndexError(
            f"index {index} is out of bounds for dimension {position} with size {size}"
        )
    return select_entry(x, dim, index + size if index < 0 else index)


def _length(x: Value, dim: int) -> int:
    shape: Shape = raw(x).shape
    return shape[wrap_dim(dim, len(shape))]


def _takes_all(part: slice, x: Value, dim: int) -> bool:
    return (
        part.start in (None, 0)
        and part.step in (None, 1)
        and (part.stop is None or part.stop >= _length(x, dim))
    )


def _sliced(x: Value, dim: int, part: slice) -> Value:
    shape = raw(x).shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    start, stop, step = part.indices(_length(x, dim))
    if step < 1:
        raise ValueError("step must be greater than zero")
    return slice_part(x, dim, slice(start, max(start, stop), step))


def _num_indexed(items: tuple[Value, ...]) -> int:
    """Return the number of dimensions that the items take."""
    count = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
            continue
        array = raw(item)
        is_mask = getattr(array, "dtype", None) in (np.bool_, np.uint8)
        count += array.ndim if is_mask else 1
    return count
