"""Variances, deviations, and counts of values."""

from typing import NamedTuple

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Dims, Shape, num_reduced, wrap_dims
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import masked_fill, where
from gradviz.ops.reductions.reduction import mean
from gradviz.ops.shapes.broadcasting import restored
from gradviz.ops.variables.variable import Value, raw, variable

# --- variances --------------------------------------------------------------------


class Moments(NamedTuple):
    """A spread and the mean around which it was taken.

    Attributes:
        spread: The variance or the standard deviation.
        mean: The mean.
    """

    spread: Value
    mean: Value


def _moments(x: Array, dims: Shape, correction: float, keepdim: bool) -> Moments:
    """Variance and mean, worked out in float32 at least."""
    dtype = np.empty(0, x.dtype).real.dtype
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    count = num_reduced(x.shape, dims)
    mean = np.true_divide(wide.sum(axis=dims, keepdims=True), count)
    deviation = wide - mean
    squares = deviation * deviation
    if x.dtype.kind == "c":
        squares = np.real(deviation) ** 2 + np.imag(deviation) ** 2
    freedom = max(count - correction, 0.0)
    summed = in_c_order(squares.sum(axis=dims, keepdims=keepdim))
    variance = np.true_divide(summed, freedom)
    if not keepdim:
        mean = in_c_order(np.squeeze(mean, axis=dims))
    return Moments(variance.astype(dtype), mean.astype(x.dtype))


def _var_backward(
    grad: Gradient, x: Gradient, dims: Shape, correction: float
) -> Gradient:
    is_whole = raw(grad).ndim == 0
    if not is_whole:
        grad = restored(grad, x.shape, dims)
    freedom = num_reduced(x.shape, dims) - correction
    factor = 2.0 / freedom if freedom > 0 else 0.0
    deviation = x - (mean(x) if is_whole else mean(x, dims or None, keepdim=True))
    if freedom <= 0:
        return grad * where(raw(deviation) == 0, np.nan, np.inf).astype(raw(x).dtype)
    return grad * factor * deviation


def _std_backward(
    grad: Gradient, x: Gradient, result: Gradient, dims: Shape, correction: float
) -> Gradient:
    is_zero = raw(result) == 0
    slope = masked_fill(grad / (result * 2), is_zero, 0)
    return _var_backward(slope, x, dims, correction)


def _mean_backward(grad: Gradient, x: Gradient, dims: Shape) -> Gradient:
    even = restored(grad, x.shape, dims) / num_reduced(x.shape, dims)
    return even * np.ones_like(raw(x))


@differentiable(
    "VarBackward0",
    x=_var_backward,
)
def _var(x: Array, dims: Shape, correction: float, keepdim: bool) -> Array:
    return _moments(x, dims, correction, keepdim).spread


@differentiable(
    "StdBackward0",
    x=_std_backward,
)
def _std(x: Array, dims: Shape, correction: float, keepdim: bool) -> Array:
    return np.sqrt(_moments(x, dims, correction, keepdim).spread)


@differentiable(
    "VarMeanBackward0",
    results=("spread", "middle"),
    x=lambda grads, x, dims, correction: _added(
        grads[0] is not None and _var_backward(grads[0], x, dims, correction),
        grads[1] is not None and _mean_backward(grads[1], x, dims),
    ),
)
def _var_mean(
    x: Array, dims: Shape, correction: float, keepdim: bool
) -> tuple[Array, Array]:
    return tuple(_moments(x, dims, correction, keepdim))


@differentiable(
    "StdMeanBackward0",
    results=("spread", "middle"),
    x=lambda grads, x, spread, dims, correction: _added(
        grads[0] is not None and _std_backward(grads[0], x, spread, dims, correction),
        grads[1] is not None and _mean_backward(grads[1], x, dims),
    ),
)
def _std_mean(
    x: Array, dims: Shape, correction: float, keepdim: bool
) -> tuple[Array, Array]:
    variance, mean = _moments(x, dims, correction, keepdim)
    return np.sqrt(variance), mean


def _added(*parts: Gradient) -> Gradient:
    """The sum of the gradients that are there."""
    defined = [part for part in parts if part is not False]
    return defined[0] if len(defined) == 1 else defined[0] + defined[1]


@numpy_names
def var(
    input: Value,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Value:
    """The variance along `dim`, or of all elements.

    Args:
        input: Floats or complex numbers.
        dim: Dimensions to reduce; a boolean here is `unbiased`.
        unbiased: Divide by one less than the number of elements.
        keepdim: Keep the dimensions, with length 1.
        correction: Amount to subtract from the divisor, the number of elements;
            instead of `unbiased`.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: `input` does not have floats.
    """
    return _var(input, *_options("var", input, dim, unbiased, correction), keepdim)


@numpy_names
def std(
    input: Value,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Value:
    """The standard deviation along `dim`, or of all elements; see `var`."""
    return _std(input, *_options("std", input, dim, unbiased, correction), keepdim)


@numpy_names
def var_mean(
    input: Value,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Value, Value]:
    """The variance and the mean along `dim`, or of all elements; see `var`."""
    options = _options("var_mean", input, dim, unbiased, correction)
    both: tuple[Value, Value] = _var_mean(input, *options, keepdim)
    return both


@numpy_names
def std_mean(
    input: Value,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Value, Value]:
    """The standard deviation and the mean along `dim`, or of all; see `var`."""
    options = _options("std_mean", input, dim, unbiased, correction)
    both: tuple[Value, Value] = _std_mean(input, *options, keepdim)
    return both


def _options(
    name: str, x: Value, dim: Dims | bool, unbiased: bool, correction: float | None
) -> tuple[Shape, float]:
    if not isinstance(unbiased, bool):
        raise TypeError(
            f"{name}(): argument 'unbiased' must be bool, not {type(unbiased).__name__}"
        )
    if isinstance(dim, bool):
        unbiased = dim
        dim = None
    if raw(x).dtype.kind not in "fc":
        what = "std and var" if "_" not in name else name
        raise RuntimeError(f"{what} only support floating point and complex dtypes")
    if correction is None:
        correction = 1.0 if unbiased else 0.0
    return wrap_dims(dim, raw(x).ndim), correction


# --- not differentiable: how often a value is there ---------------------------------


def bincount(input: Value, weights: Value = None, minlength: int = 0) -> Value:
    """Return the count of each non-negative integer.

    Args:
        input: A vector of integers.
        weights: Weight of each element.
        minlength: Minimum length of the result.

    Raises:
        RuntimeError: `input` is no such vector, or the weights do not fit.
    """
    x = raw(input)
    if x.ndim != 1 or x.dtype.kind not in "iu" or (x.size and np.min(x) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is None:
        return variable(np.bincount(x, minlength=minlength))
    if raw(weights).shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    counts = np.bincount(x, raw(weights), minlength)
    single = raw(weights).dtype == np.float32
    return variable(counts.astype(np.float32) if single else counts)


def histc(input: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """Return the number of elements in each of several equal bins of a range.

    Args:
        input: Floats.
        bins: Number of bins.
        min: Start of the range.
        max: End of the range; if equal to `min`, the range of the elements is used.

    Raises:
        RuntimeError: There is no such range.
    """
    x = raw(input)
    if x.dtype.kind != "f":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{x.dtype}'")
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if min == max and x.size:
        min, max = float(np.min(x)), float(np.max(x))
    if min == max:
        min, max = min - 1, max + 1
    if not np.isfinite([min, max]).all():
        raise RuntimeError(f"range of [{min}, {max}] is not finite")
    if min > max:
        raise RuntimeError("max must be larger than min")
    return variable(in_one_kernel("histc", _histogram, x, bins, min, max))


def _histogram(x: Array, bins: int, start: float, stop: float) -> Array:
    counts, _ = np.histogram(x, bins, (start, stop))
    return counts.astype(x.dtype)


PUBLIC = [
    *names("gv.f", std_mean, var_mean),
    *names("gv.f x.f", bincount),
    *names("gv.f(out=) x.f", histc, std, var),
]
