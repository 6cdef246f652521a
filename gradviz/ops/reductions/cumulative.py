"""Running sums, products and extremes along a dimension.

Differences, which undo running sums, are in `gradviz.ops.reductions.differences`.
"""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import at, wrap_dim
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.promotion import DTypeLike, as_floating
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import where
from gradviz.ops.elementwise.transcendental import exp, log
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.gathering import sum_at
from gradviz.ops.shapes.joining import cat
from gradviz.ops.shapes.movement import flip
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables import return_types
from gradviz.ops.variables.return_types import Extremes, ExtremesClass
from gradviz.ops.variables.variable import Value, raw

# --- sums -------------------------------------------------------------------------


@differentiable("CumsumBackward0", x=lambda grad, dim: _sums_from_the_end(grad, dim))
def _cumsum(x: Array, dim: int, dtype: DTypeLike) -> Array:
    if not x.ndim:
        return _cast(x, dtype)
    return in_c_order(np.cumsum(x, dim, _summed_dtype(x, dtype)))


def _sums_from_the_end(x: Gradient, dim: int) -> Gradient:
    return flip(_cumsum(flip(x, dim), dim, raw(x).dtype), dim)


def _summed_dtype(x: Array, dtype: DTypeLike) -> DTypeLike:
    if dtype is None:
        return np.int64 if x.dtype.kind in "biu" else x.dtype
    return np.dtype(dtype)


def _cast(x: Array, dtype: DTypeLike) -> Array:
    return x.astype(_summed_dtype(x, dtype))


@numpy_names
def cumsum(input: Value, dim: int, *, dtype: DTypeLike = None) -> Value:
    """The sum of each element and those before it along `dim`.

    Args:
        input: Tensor to sum; sums of integers and booleans are int64.
        dim: Dimension to sum along.
        dtype: Type to sum in.

    Raises:
        IndexError: There is no such dimension.
    """
    return _cumsum(input, wrap_dim(dim, raw(input).ndim), dtype)


@differentiable(
    "LogcumsumexpBackward0",
    x=lambda grad, x, result, dim: _logcumsumexp_backward(grad, x, result, dim),
)
def _logcumsumexp(x: Array, dim: int) -> Array:
    x = as_floating(x)
    if not x.ndim:
        return np.copy(x)
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, dim)
    result = np.copy(x)
    for i in range(1, x.shape[dim]):  # NumPy adds no complex exponentials
        result[at(dim, i)] = _log_add(result[at(dim, i - 1)], x[at(dim, i)])
    return result


def _log_add(x: Array, y: Array) -> Array:
    """``log(exp(x) + exp(y))``, without overflow.

    Source: aten/src/ATen/native/cpu/LogAddExp.h, _log_add_exp_helper.
    """
    is_less = np.real(x) < np.real(y)
    less: Array = np.where(is_less, x, y)
    more: Array = np.where(is_less, y, x)
    result = np.log1p(np.exp(less - more)) + more
    return np.where(np.isinf(np.real(less)) & (np.real(less) < 0), more, result)


def _logcumsumexp_backward(
    grad: Gradient, x: Gradient, result: Gradient, dim: int
) -> Gradient:
    """The sum, from the end, of ``grad * exp(x - result)``, in logarithms.

    Positive and negative gradients are summed apart, for they have logarithms.
    """
    if raw(x).dtype.kind == "c":
        sums = _logcumsumexp(flip(log(conj(grad)) - result, dim), dim)
        return conj(exp(flip(sums, dim) + x))

    def part(gradient: Gradient) -> Gradient:
        is_there = raw(gradient) > 0
        is_there &= raw(result) != -np.inf  # nothing flows to what is exp(-inf)
        terms = log(where(is_there, gradient, 1.0)) - where(is_there, result, 0.0)
        sums = _logcumsumexp(flip(where(is_there, terms, -np.inf), dim), dim)
        return exp(flip(sums, dim) + x)

    return part(grad) - part(-grad)


@numpy_names
def logcumsumexp(input: Value, dim: int) -> Value:
    """The logarithm of the running sum of exponentials along `dim`.

    Raises:
        IndexError: There is no such dimension.
    """
    return _logcumsumexp(input, wrap_dim(dim, raw(input).ndim))


# --- products ---------------------------------------------------------------------


@differentiable(
    "CumprodBackward0",
    x=lambda grad, x, result, dim: _cumprod_backward(grad, x, result, dim),
)
def _cumprod(x: Array, dim: int, dtype: DTypeLike) -> Array:
    if not x.ndim:
        return _cast(x, dtype)
    return in_c_order(np.cumprod(x, dim, _summed_dtype(x, dtype)))


def _cumprod_backward(
    grad: Gradient, x: Gradient, result: Gradient, dim: int
) -> Gradient:
    if not x.ndim:
        return grad
    if np.all(raw(x) != 0):
        return _sums_from_the_end(grad * conj(result), dim) / conj(x)
    # Element k is a factor of every product i >= k. What is left of that product
    # without it: those before k, which `before` has, and those from k + 1 to i.
    ones = np.ones_like(raw(x)[at(dim, slice(1))])
    before = cat([ones, result[at(dim, slice(-1))]], dim)
    step = _steps(raw(x), dim)
    is_later = np.expand_dims(step, dim) > np.expand_dims(step, dim + 1)
    is_same = np.expand_dims(step, dim) >= np.expand_dims(step, dim + 1)
    factors = where(is_later, unsqueeze(x, dim), 1)
    between = where(is_same, _cumprod(factors, dim + 1, None), 0)
    return conj(before) * (conj(between) * unsqueeze(grad, dim)).sum(dim + 1)


@numpy_names
def cumprod(input: Value, dim: int, *, dtype: DTypeLike = None) -> Value:
    """The product of each element and those before it along `dim`.

    Args:
        input: Tensor to multiply; products of integers and booleans are int64.
        dim: Dimension to multiply along.
        dtype: Type to multiply in.

    Raises:
        IndexError: There is no such dimension.
    """
    return _cumprod(input, wrap_dim(dim, raw(input).ndim), dtype)


# --- extremes ---------------------------------------------------------------------


def _running(kind: ExtremesClass, x: Array, dim: int, ufunc: np.ufunc) -> Extremes:
    if not x.ndim:
        return kind(np.copy(x), np.zeros_like(x, dtype=np.int64))
    values = ufunc.accumulate(x, dim)
    is_new = (x == values) | np.isnan(x) if x.dtype.kind == "f" else x == values
    indices = np.maximum.accumulate(is_new * _steps(x, dim), dim)
    return kind(values, indices)


def _steps(x: Array, dim: int) -> Array:
    """Return the position of each element along `dim`, on the device of `x`."""
    return np.cumsum(np.ones_like(x, dtype=np.int64), dim) - 1


@differentiable(
    "CummaxBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=lambda grad, x_shape, dim, indices: sum_at(grad, x_shape, dim, raw(indices)),
)
def _cummax(x: Array, dim: int) -> Extremes:
    return _running(return_types.cummax, x, dim, np.maximum)


@differentiable(
    "CumminBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=lambda grad, x_shape, dim, indices: sum_at(grad, x_shape, dim, raw(indices)),
)
def _cummin(x: Array, dim: int) -> Extremes:
    return _running(return_types.cummin, x, dim, np.minimum)


@numpy_names
def cummax(input: Value, dim: int) -> Extremes:
    """The largest of each element and those before it along `dim`, and where it is.

    Raises:
        IndexError: There is no such dimension.
    """
    result: Extremes = _cummax(input, wrap_dim(dim, raw(input).ndim))
    return result


@numpy_names
def cummin(input: Value, dim: int) -> Extremes:
    """The smallest of each element and those before it along `dim`, and where it is.

    Raises:
        IndexError: There is no such dimension.
    """
    result: Extremes = _cummin(input, wrap_dim(dim, raw(input).ndim))
    return result


PUBLIC = [
    *names("gv.f(out=) x.f", cummax, cummin, logcumsumexp),
    *names("gv.f(out=) x.f x.f_", cumprod, cumsum),
    *names("np.f(axis=)", cumsum),
]
