"""Elements in order."""

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import wrap_dim
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.equal_elements import SHORT, best, rearranged, sorting
from gradviz.ops.reductions.extremes import put_back
from gradviz.ops.variables import return_types
from gradviz.ops.variables.return_types import Extremes, ExtremesClass
from gradviz.ops.variables.variable import Value, raw, variable


def order_of(x: Array, dim: int, *, descending: bool = False) -> Array:
    """The indices that sort `x` along `dim`; equal elements keep their order.

    NaN counts as larger than any number.
    """
    if not x.ndim:
        return np.zeros_like(x, dtype=np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


def unstable_order_of(x: Array, dim: int, *, descending: bool = False) -> Array:
    """Return `order_of` with equal elements ordered like PyTorch's unstable sort."""
    if not x.ndim or x.shape[dim] <= SHORT:
        return order_of(x, dim, descending=descending)
    return in_one_kernel("sort", _unstable_order, x, dim, descending)


def _unstable_order(x: Array, dim: int, descending: bool) -> Array:
    order = order_of(x, dim, descending=descending)
    return rearranged(x, order, dim, slice(None), sorting)


def _picked(kind: ExtremesClass, x: Array, order: Array, dim: int) -> Extremes:
    return kind(np.take_along_axis(x, order, dim) if x.ndim else np.copy(x), order)


def _stably_sorted(x: Array, dim: int, descending: bool) -> Extremes:
    return _picked(return_types.sort, x, order_of(x, dim, descending=descending), dim)


def _sorted(x: Array, dim: int, descending: bool) -> Extremes:
    order = unstable_order_of(x, dim, descending=descending)
    return _picked(return_types.sort, x, order, dim)


_sort = differentiable(
    "SortBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)(_sorted)


_stable_sort = differentiable(
    "SortBackward1",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)(_stably_sorted)


_unstable_sort = differentiable(
    "SortBackward1",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)(_sorted)


@differentiable(
    "TopkBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _topk(x: Array, k: int, dim: int, largest: bool, in_order: bool) -> Extremes:
    chosen = in_one_kernel("topk", _places_of_best, x, k, dim, largest, in_order)
    values, indices = _picked(return_types.topk, x, chosen, dim)
    return return_types.topk(in_c_order(values), in_c_order(indices))


def _places_of_best(x: Array, k: int, dim: int, largest: bool, in_order: bool) -> Array:
    places = order_of(x, dim, descending=largest)
    if x.ndim:
        algorithm = best(k, in_order=in_order)
        places = rearranged(x, places, dim, slice(k), algorithm, always=not in_order)
    return places


@numpy_names
def sort(
    input: Value,
    dim: int = -1,
    descending: bool = False,
    *,
    stable: bool | None = None,
) -> Extremes:
    """The elements in order along `dim`, and where they were.

    Args:
        input: Tensor to sort; NaN counts as larger than any number.
        dim: Dimension to sort along.
        descending: The largest first.
        stable: Equal elements keep their order. Without it they do in small rows and
            in large arrays; see Note [Equal elements] in
            `gradviz.ops.reductions.equal_elements`.

    Returns:
        The named tuple ``(values, indices)``.

    Raises:
        IndexError: There is no such dimension.
    """
    x = raw(input)
    _refuse_complex("Sort", x)
    sort_op = _sort if stable is None else _stable_sort if stable else _unstable_sort
    result: Extremes = sort_op(input, wrap_dim(dim, x.ndim), descending)
    return result


@numpy_names
def argsort(
    input: Value, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Value:
    """The indices that sort `input` along `dim`; see `sort`."""
    x = raw(input)
    _refuse_complex("Sort", x)
    places = order_of if stable else unstable_order_of
    return variable(places(x, wrap_dim(dim, x.ndim), descending=descending))


def msort(input: Value) -> Value:
    """The elements in order along the first dimension."""
    return sort(input, 0).values


@numpy_names
def topk(
    input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Extremes:
    """The `k` largest elements along `dim`, and where they were.

    Args:
        input: Tensor to choose from; NaN counts as larger than any number.
        k: Number of elements to choose.
        dim: Dimension to choose along.
        largest: The largest; else the smallest.
        sorted: In order; else in small arrays as PyTorch happens to leave them.

    Returns:
        The named tuple ``(values, indices)``.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There are not as many.
    """
    x = raw(input)
    dim = wrap_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    result: Extremes = _topk(input, k, dim, largest, sorted)
    return result


def _refuse_complex(name: str, x: Array) -> None:
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name} currently does not support complex dtypes on CPU")


PUBLIC = [
    *names("gv.f x.f", argsort),
    *names("gv.f(out=) x.f", msort, sort, topk),
]
