"""Elements chosen by their rank or frequency: medians and modes.

What lies between elements is in `gradviz.ops.reductions.quantiles`.
"""

from typing import overload

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import at, wrap_dim
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.equal_elements import at_rank, rearranged
from gradviz.ops.reductions.extremes import (
    check_length,
    chosen,
    evenly_of_all,
    put_back,
)
from gradviz.ops.reductions.sorting import order_of, unstable_order_of
from gradviz.ops.variables import return_types
from gradviz.ops.variables.return_types import Extremes, ExtremesClass
from gradviz.ops.variables.variable import Value, raw

# --- by rank ------------------------------------------------------------------------


def _is_nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros_like(x, dtype=np.bool_)


def _median_index(x: Array, dim: int, *, ignore_nan: bool) -> Array:
    """Return the index of the lower median along `dim`; NaN is the largest."""
    return in_one_kernel("median", _median_places, x, dim, ignore_nan)


def _median_places(x: Array, dim: int, ignore_nan: bool) -> Array:
    order = order_of(x, dim)
    missing = _is_nan(x)
    if ignore_nan:
        numbers = x.shape[dim] - missing.sum(axis=dim, keepdims=True)
        rank = np.maximum(numbers - 1, 0) // 2
    else:
        rank = np.full_like(order[at(dim, slice(1))], (x.shape[dim] - 1) // 2)
    index = np.take_along_axis(order, rank, dim)
    if ignore_nan or not np.any(missing):
        return index
    first = np.argmax(missing, axis=dim, keepdims=True)
    return np.where(np.any(missing, axis=dim, keepdims=True), first, index)


def _median_of_all(x: Array, *, ignore_nan: bool) -> Array:
    flat = x.reshape(-1)
    if not flat.size:
        return np.full_like(x, np.nan if x.dtype.kind == "f" else 0, shape=())
    index = _median_index(flat, 0, ignore_nan=ignore_nan)
    return np.take_along_axis(flat, index, 0).reshape(())


@differentiable("MedianBackward0", x=evenly_of_all)
def _median_all(x: Array) -> Array:
    return _median_of_all(x, ignore_nan=False)


@differentiable("NanmedianBackward0", x=evenly_of_all)
def _nanmedian_all(x: Array) -> Array:
    return _median_of_all(x, ignore_nan=True)


@differentiable(
    "MedianBackward1",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _median(x: Array, dim: int, keepdim: bool) -> Extremes:
    return _at_rank(return_types.median, x, dim, keepdim)


@differentiable(
    "NanmedianBackward1",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _nanmedian(x: Array, dim: int, keepdim: bool) -> Extremes:
    return _at_rank(return_types.nanmedian, x, dim, keepdim)


def _at_rank(kind: ExtremesClass, x: Array, dim: int, keepdim: bool) -> Extremes:
    if not x.ndim:
        return chosen(kind, x, np.zeros_like(x, dtype=np.int64), dim, keepdim)
    index = _median_index(x, dim, ignore_nan=kind is return_types.nanmedian)
    return chosen(kind, x, index, dim, keepdim)


@differentiable(
    "KthvalueBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _kthvalue(x: Array, k: int, dim: int, keepdim: bool) -> Extremes:
    index = in_one_kernel("kthvalue", _kth_place, x, k, dim)
    return chosen(return_types.kthvalue, x, index, dim, keepdim)


def _kth_place(x: Array, k: int, dim: int) -> Array:
    index = order_of(x, dim)
    if x.ndim:
        index = rearranged(x, index, dim, slice(k - 1, k), at_rank(k - 1))
    return index


@overload
def median(input: Value, dim: None = None) -> Value: ...
@overload
def median(input: Value, dim: int, keepdim: bool = False) -> Extremes: ...
@numpy_names
def median(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """The median, the lower of two; along a dimension with its indices.

    Args:
        input: Tensor to look at. If there is a NaN, it is the median.
        dim: Dimension to take medians along; None takes all elements.
        keepdim: Keep the dimension, with length 1.

    Returns:
        A tensor; with a dimension the named tuple ``(values, indices)``.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    check_kinds("median", "biuf", raw(input))
    if dim is None:
        return _median_all(input)
    return _median(input, _checked("median", input, dim), keepdim)


@overload
def nanmedian(input: Value, dim: None = None) -> Value: ...
@overload
def nanmedian(input: Value, dim: int, keepdim: bool = False) -> Extremes: ...
@numpy_names
def nanmedian(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Return the median without NaN; see `median`."""
    check_kinds("nanmedian", "biuf", raw(input))
    if dim is None:
        return _nanmedian_all(input)
    return _nanmedian(input, _checked("nanmedian", input, dim), keepdim)


@numpy_names
def kthvalue(input: Value, k: int, dim: int = -1, keepdim: bool = False) -> Extremes:
    """The `k`-th smallest element along `dim`, and where it was.

    Args:
        input: Tensor to look at; NaN counts as larger than any number.
        k: 1 for the smallest.
        dim: Dimension to look along.
        keepdim: Keep the dimension, with length 1.

    Raises:
        IndexError: There is no such dimension, or it is empty.
        RuntimeError: There are not as many elements.
    """
    dim = wrap_dim(dim, raw(input).ndim)
    shape = raw(input).shape
    if shape and not shape[dim]:
        raise IndexError(
            f"kthvalue(): Expected reduction dim {dim} to have non-zero size."
        )
    if not 0 < k <= (shape[dim] if shape else 1):
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}"
        )
    result: Extremes = _kthvalue(input, k, dim, keepdim)
    return result


# --- by frequency -------------------------------------------------------------------


@differentiable(
    "ModeBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _mode(x: Array, dim: int, keepdim: bool) -> Extremes:
    order = unstable_order_of(x, dim)
    if not x.ndim:
        return chosen(return_types.mode, x, order, dim, keepdim)
    values = np.take_along_axis(x, order, dim)
    step = np.cumsum(np.ones_like(order), dim)
    is_first = np.ones_like(order)
    later = at(dim, slice(1, None))
    is_first[later] = values[later] != values[at(dim, slice(None, -1))]
    # The number of equal ones so far: most at the end of the longest run.
    run = step - np.maximum.accumulate(step * is_first, dim)
    end = np.argmax(run, axis=dim, keepdims=True)
    return chosen(
        return_types.mode, x, np.take_along_axis(order, end, dim), dim, keepdim
    )


@numpy_names
def mode(input: Value, dim: int = -1, keepdim: bool = False) -> Extremes:
    """The most frequent element along `dim`, the smallest of several, and where it is.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    result: Extremes = _mode(input, _checked("mode", input, dim), keepdim)
    return result


# --- what is checked ----------------------------------------------------------------


def _checked(name: str, x: Value, dim: int) -> int:
    dim = wrap_dim(dim, raw(x).ndim)
    check_length(name, raw(x), dim)
    return dim


PUBLIC = [*names("gv.f(out=) x.f", kthvalue, median, mode, nanmedian)]
