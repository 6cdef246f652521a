"""Sums, means, products, all and any: fewer elements out than in.

Extremes, variances and norms have modules of their own.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy import ndarray  # in one step: each sum asks

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import (
    Dims,
    Shape,
    at,
    num_reduced,
    wrap_dims,
)
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.promotion import DTypeLike, as_floating
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.transcendental import exp
from gradviz.ops.reductions.cumulative import cumprod
from gradviz.ops.shapes.broadcasting import broadcast_to, restored, spread
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.joining import cat
from gradviz.ops.shapes.movement import flip
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, Variable, raw, variable

_add_up: Final[Callable[..., Any]] = np.add.reduce

# --- sums and means ---------------------------------------------------------------


def total(x: Array, dims: Shape | None, keepdim: bool, dtype: DTypeLike) -> Array:
    """The sum in the dtype that PyTorch sums in."""
    if dtype is None and x.dtype.kind in "biu":
        dtype = np.int64
    if x.dtype.char == "e" and dtype is None:  # its own sums lose all precision
        wide = x.sum(axis=dims, keepdims=keepdim, dtype=np.float32)
        return wide.astype(np.float16)
    if type(x) is ndarray:  # what all others come to by way of Python, 0.2 µs later
        if dims is None and not keepdim:  # an array at once, instead of a number first
            out = np.empty((), x.dtype if dtype is None else dtype)
            return _add_up(x, None, dtype, out)
        return in_c_order(_add_up(x, dims, dtype, None, keepdim))
    return in_c_order(x.sum(axis=dims, keepdims=keepdim, dtype=dtype))


@differentiable("SumBackward0", x=lambda grad, x_shape: broadcast_to(grad, x_shape))
def _sum_all(x: Array, dtype: DTypeLike) -> Array:
    return total(x, None, keepdim=False, dtype=dtype)


@differentiable(
    "SumBackward1", x=lambda grad, x_shape, dims: spread(grad, x_shape, dims)
)
def _sum(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    return total(x, dims, keepdim, dtype)


@differentiable(
    "NansumBackward0",
    x=lambda grad, x, dims: spread(grad, x.shape, dims) * ~np.isnan(raw(x)),
)
def _nansum(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    numbers = np.where(np.isnan(x), 0, x) if x.dtype.kind in "fc" else x
    return total(numbers, dims, keepdim, dtype)


def _mean_of(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    # Not numpy.mean, which warns of what PyTorch answers with NaN: nothing to average.
    dtype = x.dtype if dtype is None else np.dtype(dtype)
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    sums = x.sum(axis=dims, keepdims=keepdim, dtype=wide)
    mean = np.true_divide(in_c_order(sums), num_reduced(x.shape, dims))
    return mean if wide is dtype else mean.astype(dtype)


def _share(grad: Gradient, shape: Shape, dims: Shape) -> Gradient:
    """The gradient of the elements that a mean of all was taken of."""
    if isinstance(grad, Variable):
        return broadcast_to(grad, shape) / num_reduced(shape, dims)
    # The same numbers; divided before there are many of them.
    return broadcast_to(grad / num_reduced(shape, dims), shape)


@differentiable(
    "MeanBackward0", x=lambda grad, x_shape, dims: _share(grad, x_shape, dims)
)
def _mean_all(x: Array, dims: Shape, dtype: DTypeLike) -> Array:
    return _mean_of(x, dims, keepdim=False, dtype=dtype)


def _shares(grad: Gradient, shape: Shape, dims: Shape) -> Gradient:
    """`_share`, where the mean was taken along some dimensions."""
    if isinstance(grad, Variable):
        return spread(grad, shape, dims) / num_reduced(shape, dims)
    return spread(grad / num_reduced(shape, dims), shape, dims)


@differentiable(
    "MeanBackward1",
    x=lambda grad, x_shape, dims: _shares(grad, x_shape, dims),
)
def _mean(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    return _mean_of(x, dims, keepdim, dtype)


@numpy_names
def sum(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None
) -> Value:
    """The sum along `dim`, or of all elements.

    Args:
        input: Tensor to sum; sums of integers and booleans are int64.
        dim: Dimensions to sum along.
        keepdim: Keep them, with length 1.
        dtype: Type to sum in.

    Raises:
        IndexError: There is no such dimension.
    """
    if dim is None and not keepdim:
        return _sum_all(input, dtype)
    return _sum(input, wrap_dims(dim, raw(input).ndim), keepdim, dtype)


@numpy_names
def nansum(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None
) -> Value:
    """Return the sum without NaN; see `sum`.

    Raises:
        RuntimeError: `input` is complex.
    """
    if raw(input).dtype.kind == "c":
        raise RuntimeError("nansum does not support complex inputs")
    return _nansum(input, wrap_dims(dim, raw(input).ndim), keepdim, dtype)


@numpy_names
def mean(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None
) -> Value:
    """The mean along `dim`, or of all elements.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: `input` does not have floats, and `dtype` is none of floats.
    """
    _check_mean(raw(input).dtype, dtype)
    dims = wrap_dims(dim, raw(input).ndim)
    if dim is None and not keepdim:
        return _mean_all(input, dims, dtype)
    return _mean(input, dims, keepdim, dtype)


def _check_mean(known: np.dtype[Any], dtype: DTypeLike) -> None:
    used, which = (known, "Input") if dtype is None else (np.dtype(dtype), "Optional")
    if used.kind not in "fc":
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a "
            f"floating point or complex dtype. Got: {scalar_type_name(used)}"
        )


@numpy_names
def nanmean(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike = None
) -> Value:
    """Return the mean without NaN; see `mean`.

    Raises:
        RuntimeError: `input` does not have floats.
    """
    if raw(input).dtype.kind not in "fc":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but "
            f"got {scalar_type_name(raw(input).dtype)}"
        )
    numbers = ~np.isnan(raw(input))
    count = numbers.sum(axis=wrap_dims(dim, numbers.ndim), keepdims=keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / variable(count)


@differentiable(
    "LogsumexpBackward0",
    x=lambda grad, x, result, dims: (
        restored(grad, x.shape, dims) * conj(exp(x - restored(result, x.shape, dims)))
    ),
)
def _logsumexp(x: Array, dims: Shape, keepdim: bool) -> Array:
    x = as_floating(x)
    if not num_reduced(x.shape, dims):
        return np.log(np.sum(np.exp(x), axis=dims, keepdims=keepdim))
    largest = np.max(np.real(x), axis=dims, keepdims=True)
    # An infinite maximum is itself the result; subtracted it would make NaN.
    shift = np.where(np.isinf(largest), 0, largest).astype(x.dtype)
    result = np.log(np.sum(np.exp(x - shift), axis=dims, keepdims=True)) + shift
    return result if keepdim else np.squeeze(result, axis=dims)


@numpy_names
def logsumexp(input: Value, dim: Dims, keepdim: bool = False) -> Value:
    """The logarithm of the sum of exponentials along `dim`.

    Raises:
        IndexError: There is no such dimension.
    """
    return _logsumexp(input, wrap_dims(dim, raw(input).ndim), keepdim)


# --- products ---------------------------------------------------------------------


def _product(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    if dtype is None and x.dtype.kind in "biu":
        dtype = np.int64
    return np.prod(x, axis=dims, keepdims=keepdim, dtype=dtype)


def _product_backward(
    grad: Gradient, x: Gradient, result: Gradient, dims: Shape
) -> Gradient:
    """The gradient times the product of all other elements."""
    grad = restored(grad, x.shape, dims)
    if np.all(raw(x) != 0):
        return grad * conj(restored(result, x.shape, dims) / x)
    if len(dims) == 1:
        return grad * conj(_product_of_others(x, dims[0]))
    return reshape(grad * conj(_product_of_others(reshape(x, (-1,)), 0)), x.shape)


def _product_of_others(x: Gradient, dim: int) -> Gradient:
    """For each element the product of all others along `dim`, which may be 0."""
    before = _shifted_products(x, dim)
    after = flip(_shifted_products(flip(x, dim), dim), dim)
    return before * after


def _shifted_products(x: Gradient, dim: int) -> Gradient:
    """For each element the product of those before it."""
    ones = np.ones_like(raw(x)[at(dim, slice(1))])
    return cumprod(cat([ones, x[at(dim, slice(-1))]], dim), dim)


@differentiable(
    "ProdBackward0",
    x=_product_backward,
)
def _prod_all(x: Array, dims: Shape, dtype: DTypeLike) -> Array:
    return _product(x, dims, keepdim=False, dtype=dtype)


@differentiable(
    "ProdBackward1",
    x=_product_backward,
)
def _prod(x: Array, dims: Shape, keepdim: bool, dtype: DTypeLike) -> Array:
    return _product(x, dims, keepdim, dtype)


@numpy_names
def prod(
    input: Value,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DTypeLike = None,
) -> Value:
    """The product along `dim`, or of all elements.

    Raises:
        IndexError: There is no such dimension.
    """
    dims = wrap_dims(dim, raw(input).ndim)
    if dim is None:
        return _prod_all(input, dims, dtype)
    return _prod(input, dims, keepdim, dtype)


# --- not differentiable -----------------------------------------------------------


@numpy_names
def all(input: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """Return whether all elements are true, along `dim` or in the whole."""
    return _truth(np.all, input, dim, keepdim)


@numpy_names
def any(input: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """Return whether any element is true, along `dim` or in the whole."""
    return _truth(np.any, input, dim, keepdim)


def _truth(function: Value, x: Value, dim: Dims, keepdim: bool) -> Value:
    array = raw(x)
    result = function(array, axis=wrap_dims(dim, array.ndim), keepdims=keepdim)
    # Bytes are the booleans of old.
    return variable(result.astype(np.uint8) if array.dtype == np.uint8 else result)


@numpy_names
def count_nonzero(input: Value, dim: Dims = None) -> Value:
    """Return the number of nonzero elements, along `dim` or in the whole."""
    array = raw(input)
    count = np.count_nonzero(array, axis=wrap_dims(dim, array.ndim))
    return variable(np.asarray(count) if isinstance(count, int) else count)


PUBLIC = [
    *names("gv.f x.f", count_nonzero),
    *names("gv.f(out=) x.f", all, any, logsumexp, mean, nanmean, nansum, prod, sum),
    *names("special.f(out=)", logsumexp),
    *names("np.f(axis=)", all, any, mean, prod, sum),
]
