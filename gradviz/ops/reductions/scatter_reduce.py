"""Elements combined where they are scattered to: sums, products, means, extremes."""

from typing import Any, Final, Literal, NoReturn, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.elementwise.selection import where
from gradviz.ops.shapes.gathering import gather_at, mesh
from gradviz.ops.variables.variable import raw

Reduce: TypeAlias = Literal["sum", "prod", "mean", "amax", "amin"]

_UFUNCS: Final[dict[str, np.ufunc]] = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _reduced(
    x: Array,
    dim: int,
    index: Array,
    source: Array,
    reduce: Reduce,
    include_self: bool,
) -> Array:
    """Combine elements of `source` with those of `x` at the places in `index`."""
    places = mesh(index, dim, x.ndim)
    part = source[tuple(map(slice, index.shape))] if index.ndim else source
    result = np.copy(x)
    if not index.size:
        return result
    if not include_self:
        result[places] = _neutral(reduce, x.dtype)
    _UFUNCS[reduce].at(result, places, part)
    if reduce == "mean":
        count = _num_combined(x, dim, index, include_self)
        divide = np.floor_divide if x.dtype.kind in "iu" else np.true_divide
        result = divide(result, count).astype(x.dtype)
    return result


def _neutral(reduce: Reduce, dtype: np.dtype[Any]) -> complex:
    """Return the neutral element of a reduction."""
    match reduce:
        case "sum" | "mean":
            return 0
        case "prod":
            return 1
        case _:
            pass
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def _num_combined(x: Array, dim: int, index: Array, include_self: bool) -> Array:
    """Return the number of elements combined in each result, at least 1."""
    count = np.full_like(x, include_self, dtype=np.int64)
    np.add.at(count, mesh(index, dim, x.ndim), 1)
    return np.maximum(count, 1)


def _backward_of_input(
    grad: Gradient,
    x: Gradient,
    dim: int,
    index: Array,
    source: Gradient,
    reduce: Reduce,
    include_self: bool,
    result: Gradient,
) -> Gradient:
    match reduce:
        case "sum":
            gradient = grad
        case "mean":
            gradient = grad / _num_combined(raw(x), dim, index, include_self)
        case "prod":
            nonzero = where(raw(x) == 0, 1, x)
            others = reduce_at(nonzero, dim, index, source, reduce, include_self)
            gradient = grad * others / nonzero
        case _:
            gradient = _share(grad, x, dim, index, source, result) * (
                raw(x) == raw(result)
            )
    return gradient if include_self else _zeroed(gradient, dim, index)


def _backward_of_source(
    grad: Gradient,
    x: Gradient,
    dim: int,
    index: Array,
    source: Gradient,
    reduce: Reduce,
    include_self: bool,
    result: Gradient,
) -> Gradient:
    match reduce:
        case "sum":
            return gather_at(grad, dim, index)
        case "mean":
            count = _num_combined(raw(x), dim, index, include_self)
            return gather_at(grad / count, dim, index)
        case "prod":
            return _backward_of_factor(
                grad, x, dim, index, source, include_self, result
            )
        case _:
            pass
    chosen = raw(source) == gather_at(raw(result), dim, index)
    return gather_at(_share(grad, x, dim, index, source, result), dim, index) * chosen


def _backward_of_factor(
    grad: Gradient,
    x: Gradient,
    dim: int,
    index: Array,
    source: Gradient,
    include_self: bool,
    result: Gradient,
) -> Gradient:
    """The gradient of factors: the product of the others, even if one is 0."""
    zero = raw(source) == 0
    num_zeros = np.zeros_like(raw(x), dtype=np.int64)
    np.add.at(num_zeros, mesh(index, dim, num_zeros.ndim), zero)
    only_zero = zero & (gather_at(num_zeros, dim, index) == 1)
    without = reduce_at(
        x, dim, index, where(only_zero, 1, source), "prod", include_self
    )
    gradient = where(
        only_zero,
        gather_at(grad * without, dim, index),
        gather_at(grad * result, dim, index) / where(zero, 1, source),
    )
    return _once_differentiable(gradient) if np.any(num_zeros > 1) else gradient


@differentiable("Error", x=lambda grad: _refuse(grad))
def _once_differentiable(x: Array) -> Array:
    return x


def _refuse(grad: Gradient) -> NoReturn:
    del grad
    raise RuntimeError(
        "scatter_reduce(): Double backward is unsupported for src when >1 zeros in "
        "src are scattered to the same position in self"
    )


def _share(
    grad: Gradient,
    x: Gradient,
    dim: int,
    index: Array,
    source: Gradient,
    result: Gradient,
) -> Gradient:
    """The gradient of an extreme in equal parts, for all that equal it."""
    extreme = raw(result)
    count = np.zeros_like(extreme)
    count[...] = raw(x) == extreme
    chosen = raw(source) == gather_at(extreme, dim, index)
    np.add.at(count, mesh(index, dim, extreme.ndim), chosen)
    return grad / count


@differentiable(
    "ScatterBackward1",
    arrays=("index",),
    x=lambda grad, dim, index: _zeroed(grad, dim, index),
)
def _zeroed(x: Array, dim: int, index: Array) -> Array:
    result = np.copy(x)
    result[mesh(index, dim, x.ndim)] = 0
    return result


reduce_at = differentiable(
    "ScatterReduceBackward0",
    arrays=("index",),
    x=_backward_of_input,
    source=_backward_of_source,
)(_reduced)
reduce_slices = differentiable(
    "IndexReduceBackward0",
    arrays=("index",),
    x=_backward_of_input,
    source=_backward_of_source,
)(_reduced)
