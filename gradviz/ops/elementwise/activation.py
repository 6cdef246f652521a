"""Activations between the layers of a network."""

from math import pi, sqrt
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Scalar
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, binary, differentiable, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import taken_from
from gradviz.ops.elementwise.choosing import choose
from gradviz.ops.elementwise.error_functions import erf
from gradviz.ops.elementwise.real_kernels import in_blocks
from gradviz.ops.elementwise.rounding import abs
from gradviz.ops.elementwise.scalar_arithmetic import plus
from gradviz.ops.elementwise.selection import threshold_backward, where
from gradviz.ops.elementwise.transcendental import exp, log1p
from gradviz.ops.elementwise.trigonometric import tanh
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, Variable, raw, zeros_like

_SELU_ALPHA: Final = 1.6732632423543772848170429916717
_SELU_SCALE: Final = 1.0507009873554804934193349852946
_NORMAL: Final = 1 / sqrt(2 * pi)
_ROOT_HALF: Final = sqrt(0.5)
_GELU_SCALE: Final = sqrt(2 / pi)
_GELU_CUBIC: Final = 0.044715

# --- straight lines ---------------------------------------------------------------


@differentiable(
    "ReluBackward0",
    silent=True,
    x=lambda grad, result: threshold_backward(grad, result, 0),
)
def relu(x: Array) -> Array:
    """The elements above 0, and 0 for the others.

    Raises:
        RuntimeError: They are booleans.
    """
    kind = x.dtype.kind
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return np.maximum(x, 0)


@differentiable(
    "LeakyReluBackwardBackward0",
    x=lambda grad, y, slope: _leaky_relu_backward(grad, y, slope),
    y=lambda grad: zeros_like(grad),
)
def _leaky_relu_backward(x: Array, y: Array, slope: float) -> Array:
    return choose(y > 0, x, x * slope)


def _leaky_relu_values(x: Array, slope: float) -> Array:
    check_kinds("leaky_relu_cpu", "f", x)
    return choose(x > 0, x, x * slope)


_leaky_relu = differentiable(
    "LeakyReluBackward0",
    x=lambda grad, x, slope: _leaky_relu_backward(grad, x, slope),
)(_leaky_relu_values)
_leaky_relu_in_place = differentiable(
    "LeakyReluBackward1",
    x=lambda grad, result, slope: _leaky_relu_backward(grad, result, slope),
)(_leaky_relu_values)


@differentiable(
    "HardtanhBackwardBackward0",
    x=lambda grad, y, low, high: _hardtanh_backward(grad, y, low, high),
    y=lambda grad: zeros_like(grad),
)
def _hardtanh_backward(x: Array, y: Array, low: float, high: float) -> Array:
    # A NaN is not outside: what comes from above it goes on, as in PyTorch.
    return choose((y <= low) | (y >= high), x.dtype.type(0), x)


@differentiable(
    "HardtanhBackward0",
    x=lambda grad, x, low, high: _hardtanh_backward(grad, x, low, high),
)
def _hardtanh(x: Array, low: float, high: float) -> Array:
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    return np.clip(x, x.dtype.type(low), x.dtype.type(high))


@differentiable(
    "HardsigmoidBackward0",
    x=lambda grad, x: where((raw(x) > -3) & (raw(x) < 3), grad / 6, 0.0),
)
def _hardsigmoid(x: Array) -> Array:
    check_kinds("hardsigmoid_cpu", "f", x)
    return np.clip(x + 3, 0, 6) / 6


@differentiable(
    "HardswishBackwardBackward0",
    x=lambda grad, y: _hardswish_backward(grad, y),
    y=lambda grad, x, y: where((raw(y) > -3) & (raw(y) < 3), grad * x / 3, 0.0),
)
def _hardswish_backward(x: Array, y: Array) -> Array:
    return choose(y <= -3, x.dtype.type(0), choose(y < 3, x * (y / 3 + 0.5), x))


@differentiable("HardswishBackward0", x=lambda grad, x: _hardswish_backward(grad, x))
def _hardswish(x: Array) -> Array:
    check_kinds("hardswish_cpu", "f", x)
    return x * np.clip(x + 3, 0, 6) / 6


def _outside(x: Array, y: Array, limit: float) -> Array:
    """`x` where `y` is NaN or farther than `limit` from 0; 0 elsewhere."""
    return choose((y >= -limit) & (y <= limit), x.dtype.type(0), x)


_softshrink_backward: Op = differentiable(
    "SoftshrinkBackwardBackward0",
    x=lambda grad, y, limit: _softshrink_backward(grad, y, limit),
    y=lambda grad: zeros_like(grad),
)(_outside)
_hardshrink_backward: Op = differentiable(
    "HardshrinkBackwardBackward0",
    x=lambda grad, y, limit: _hardshrink_backward(grad, y, limit),
    y=lambda grad: zeros_like(grad),
)(_outside)


@differentiable(
    "SoftshrinkBackward0", x=lambda grad, x, limit: _softshrink_backward(grad, x, limit)
)
def _softshrink(x: Array, limit: float) -> Array:
    check_kinds("softshrink_check", "f", x)
    # Less than nothing of a NaN is a NaN.
    return choose(x > limit, x - limit, choose(x < -limit, x + limit, x * 0))


@differentiable(
    "HardshrinkBackward0", x=lambda grad, x, limit: _hardshrink_backward(grad, x, limit)
)
def _hardshrink(x: Array, limit: float) -> Array:
    check_kinds("hardshrink_cpu", "f", x)
    return choose((x >= -limit) & (x <= limit), x.dtype.type(0), x)


@differentiable(
    "PreluKernelBackwardBackward0",
    results=("of_x", "of_weight"),
    grad=lambda grads, x, weight: _where_negative(
        x, grads[0], _sum_of_both(grads[0], weight, grads[1], x)
    ),
    x=lambda grads, grad, x: _where_negative(x, 0.0, _product(grads[1], grad)),
    weight=lambda grads, grad, x: _where_negative(x, 0.0, _product(grads[0], grad)),
)
def _prelu_gradients(grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    zero = x.dtype.type(0)
    return choose(x > 0, grad, weight * grad), choose(x > 0, zero, x * grad)


def _where_negative(x: Gradient, above: Gradient, below: Gradient) -> Gradient:
    """`above` where `x` is positive, `below` elsewhere; None stands for zeros."""
    if below is None:
        return None if above is None else where(raw(x) > 0, above, 0.0)
    return where(raw(x) > 0, 0.0 if above is None else above, below)


def _sum_of_both(*factors: Gradient) -> Gradient:
    one, other = _product(*factors[:2]), _product(*factors[2:])
    return other if one is None else one if other is None else one + other


def _product(a: Gradient, b: Gradient) -> Gradient:
    return None if a is None else a * b


@differentiable(
    "PreluKernelBackward0",
    joint=lambda _, grad, x, weight: _prelu_gradients(grad, x, weight),
    x=lambda grad, x, weight: where(raw(x) > 0, grad, weight * grad),
    weight=lambda grad, x: where(raw(x) > 0, 0.0, x * grad),
)
def _prelu(x: Array, weight: Array) -> Array:
    return choose(x > 0, x, weight * x)


def leaky_relu(input: Value, negative_slope: float = 0.01) -> Value:
    """The elements, those below 0 times `negative_slope`."""
    return _leaky_relu(input, negative_slope)


def hardtanh(input: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    """The elements within limits; at a limit the gradient is 0.

    Raises:
        ValueError: `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _hardtanh(input, min_val, max_val)


def relu6(input: Value) -> Value:
    """The elements limited to between 0 and 6."""
    return _hardtanh(input, 0, 6)


def hardsigmoid(input: Value) -> Value:
    """A straight line from 0 at -3 to 1 at 3.

    Differs: its gradient may be differentiated; PyTorch's may not.
    """
    return _hardsigmoid(input)


def hardswish(input: Value) -> Value:
    """The elements times `hardsigmoid` of them."""
    return _hardswish(input)


def softshrink(input: Value, lambd: float = 0.5) -> Value:
    """The elements moved towards 0 by `lambd`.

    Raises:
        RuntimeError: `lambd` is negative.
    """
    dtype = raw(input).dtype
    if lambd < 0 and dtype.kind == "f":
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(dtype).max:g}] for input dtype "
            f"{scalar_type_name(dtype)}, but found {lambd:g}"
        )
    return _softshrink(input, lambd)


def hardshrink(input: Value, lambd: float = 0.5) -> Value:
    """The elements, those not farther than `lambd` from 0 as 0."""
    return _hardshrink(input, lambd)


def prelu(input: Value, weight: Value) -> Value:
    """`leaky_relu` with slopes that are learned.

    Args:
        input: Shape ``(N, C, *)``, or any for a single slope.
        weight: One slope, or one for each of C channels.

    Raises:
        RuntimeError: The number of slopes is neither.
    """
    x, slopes = raw(input), raw(weight)
    if x.dtype != slopes.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {scalar_type_name(x.dtype)} and "
            f"{scalar_type_name(slopes.dtype)}"
        )
    if slopes.size != 1:
        if not x.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != slopes.size:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found "
                f"parameter numbers = {slopes.size} and channel size = {channels}."
            )
    if slopes.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{slopes.ndim}"
        )
    if slopes.ndim and x.ndim != 1:
        sizes = [1] * x.ndim
        if x.ndim > 1:
            sizes[1] = slopes.size
        weight = reshape(weight, tuple(sizes))
    return _prelu(input, weight)


# --- curves -----------------------------------------------------------------------


def _logistic(x: Array) -> Array:
    return np.reciprocal(1 + np.exp(-x))


_sigmoid_backward: Op = binary(
    "SigmoidBackwardBackward0",
    lambda x, y: x * conj((1 - y) * y),
    x=lambda grad, y: _sigmoid_backward(grad, conj(y)),
    y=lambda grad, x, y: conj(grad) * x * (1 - 2 * conj(y)),
    x_first=True,
)
sigmoid: Op = unary(
    "SigmoidBackward0", _logistic, lambda grad, result: _sigmoid_backward(grad, result)
)


@differentiable(
    "LogSigmoidBackwardBackward0",
    x=lambda grad, y: _log_sigmoid_backward(grad, y),
    y=lambda grad, x, y: grad * x * (sigmoid(y) - 1) * sigmoid(y),
)
def _log_sigmoid_backward(x: Array, y: Array) -> Array:
    return x * _logistic(-y)


@differentiable("LogSigmoidBackward0", x=lambda grad, x: _log_sigmoid_backward(grad, x))
def logsigmoid(x: Array) -> Array:
    """The logarithm of `sigmoid`, exact where that is tiny."""
    check_kinds("log_sigmoid_cpu", "f", x)
    return np.minimum(x, x.dtype.type(0)) - np.log1p(np.exp(-np.abs(x)))


@differentiable(
    "EluBackwardBackward0",
    x=lambda grad, y, alpha, scale, input_scale: _elu_backward(
        grad, y, alpha, scale, input_scale
    ),
    y=lambda grad, x, y, alpha, scale, input_scale: where(
        raw(y) < 0,
        grad * x * (alpha * scale * input_scale**2) * exp(y * input_scale),
        0.0,
    ),
)
def _elu_backward(
    x: Array, y: Array, alpha: float, scale: float, input_scale: float
) -> Array:
    curved = x * (alpha * scale * input_scale) * np.exp(y * input_scale)
    return choose(y <= 0, curved, x * scale)


def _elu_values(x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    check_kinds("elu_cpu", "f", x)
    return choose(x <= 0, np.expm1(x * input_scale) * (alpha * scale), x * scale)


_elu = differentiable(
    "EluBackward0",
    x=lambda grad, x, alpha, scale, input_scale: _elu_backward(
        grad, x, alpha, scale, input_scale
    ),
)(_elu_values)
_celu = differentiable(
    "CeluBackward0",
    x=lambda grad, x, alpha, scale, input_scale: _elu_backward(
        grad, x, alpha, scale, input_scale
    ),
)(_elu_values)


def _slope_from_result(
    grad: Gradient, result: Gradient, alpha: float, scale: float, input_scale: float
) -> Gradient:
    """The gradient of `elu` by its result: where it is below 0, an exponential."""
    curved = grad * (result + alpha * scale) * input_scale
    return where(raw(result) <= 0, curved, grad * scale)


_elu_in_place = differentiable("EluBackward1", x=_slope_from_result)(_elu_values)
_celu_in_place = differentiable("CeluBackward1", x=_slope_from_result)(_elu_values)


def _gelu_slope(x: Gradient, approximate: str) -> Gradient:
    """The derivative of `gelu`."""
    if approximate == "none":
        return 0.5 * (1 + erf(x * _ROOT_HALF)) + x * _NORMAL * exp(-0.5 * (x * x))
    inner = tanh(_GELU_SCALE * (x + _GELU_CUBIC * (x * x * x)))
    inner_slope = _GELU_SCALE * (1 + 3 * _GELU_CUBIC * (x * x))
    return 0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * inner_slope


def _gelu_bend(x: Gradient, approximate: str) -> Gradient:
    """The second derivative of `gelu`."""
    if approximate == "none":
        return _NORMAL * exp(-0.5 * (x * x)) * (2 - x * x)
    inner = tanh(_GELU_SCALE * (x + _GELU_CUBIC * (x * x * x)))
    slope = _GELU_SCALE * (1 + 3 * _GELU_CUBIC * (x * x))
    bend = _GELU_SCALE * 6 * _GELU_CUBIC * x
    outer = 1 - inner * inner
    return outer * slope + 0.5 * x * outer * (bend - 2 * inner * slope * slope)


@differentiable(
    "GeluBackwardBackward0",
    x=lambda grad, y, approximate: _gelu_backward(grad, y, approximate),
    y=lambda grad, x, y, approximate: grad * x * _gelu_bend(y, approximate),
)
def _gelu_backward(x: Array, y: Array, approximate: str) -> Array:
    if approximate == "none":
        return in_blocks(_exact_gelu_gradient, x, y)
    return in_blocks(lambda x, y: x * _gelu_slope(y, approximate), x, y)


@differentiable(
    "GeluBackward0",
    x=lambda grad, x, approximate: _gelu_backward(grad, x, approximate),
)
def _gelu(x: Array, approximate: str) -> Array:
    check_kinds("GeluKernelImpl", "f", x)
    return in_blocks(_exact_gelu if approximate == "none" else _gelu_by_tanh, x)


def _exact_gelu(x: Array) -> Array:
    result = erf(x * _ROOT_HALF)
    result += 1
    result *= 0.5
    result *= x
    return result


def _exact_gelu_gradient(grad: Array, x: Array) -> Array:
    density = np.exp(x * x * -0.5)
    density *= _NORMAL
    density *= x
    below = erf(x * _ROOT_HALF)
    below += 1
    below *= 0.5
    below += density
    below *= grad
    return below


def _gelu_by_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + _GELU_CUBIC * (x * x * x))))


def _silu_slope(x: Gradient) -> Gradient:
    """The derivative of `silu`."""
    logistic = sigmoid(x)
    return logistic * (1 + x * (1 - logistic))


def _silu_gradient(grad: Gradient, x: Gradient) -> Gradient:
    if not isinstance(grad, Variable):
        return grad * conj(_silu_slope(x))
    logistic = sigmoid(x)
    change = conj(plus(x * taken_from(logistic, 1), 1))
    return grad * conj(logistic) * change


@differentiable("SiluBackward0", x=_silu_gradient)
def _silu(x: Array) -> Array:
    check_kinds("silu_cpu", "fc", x)
    return x * _logistic(x)


def _mish_slope(x: Gradient) -> Gradient:
    """The derivative of `mish`."""
    if not isinstance(x, Variable):
        bounded = tanh(softplus(x))
        return bounded + x * sigmoid(x) * (1 - bounded * bounded)
    logistic = sigmoid(x)
    bounded = tanh(log1p(exp(x)))
    rest = 1 - bounded * bounded
    return bounded + x * logistic * rest


@differentiable("MishBackward0", x=lambda grad, x: grad * _mish_slope(x))
def _mish(x: Array) -> Array:
    check_kinds("mish_cpu", "f", x)
    return x * np.tanh(np.log1p(np.exp(x)))


def _softplus_bend(grad: Gradient, y: Gradient, beta: float, limit: float) -> Gradient:
    scaled = y * beta
    bend = _sigmoid_backward(grad, sigmoid(scaled))
    return bend * (raw(scaled) < limit) * beta


@differentiable(
    "SoftplusBackwardBackward0",
    x=lambda grad, y, beta, limit: _softplus_backward(grad, y, beta, limit),
    y=lambda grad, x, y, beta, limit: _softplus_bend(grad * x, y, beta, limit),
)
def _softplus_backward(x: Array, y: Array, beta: float, limit: float) -> Array:
    return choose(y * beta > limit, x, x * _logistic(y * beta))


@differentiable(
    "SoftplusBackward0",
    x=lambda grad, x, beta, limit: _softplus_backward(grad, x, beta, limit),
)
def _softplus(x: Array, beta: float, limit: float) -> Array:
    check_kinds("softplus_cpu", "f", x)
    return choose(x * beta > limit, x, np.log1p(np.exp(x * beta)) / beta)


def elu(input: Value, alpha: float = 1.0) -> Value:
    """The elements, those below 0 bent towards ``-alpha``."""
    return _elu(input, alpha, 1.0, 1.0)


def selu(input: Value) -> Value:
    """Return `elu`, scaled so that mean and variance keep their values."""
    return _elu(input, _SELU_ALPHA, _SELU_SCALE, 1.0)


def celu(input: Value, alpha: float = 1.0) -> Value:
    """`elu` with a slope of 1 at 0 for every `alpha`.

    Raises:
        RuntimeError: `alpha` is 0.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _celu(input, alpha, 1.0, 1 / alpha)


def gelu(input: Value, *, approximate: str = "none") -> Value:
    """The elements times the part of a normal distribution below them.

    Args:
        input: Floats.
        approximate: "none", or "tanh" for an approximation by that.

    Raises:
        RuntimeError: `approximate` is neither.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _gelu(input, approximate)


def silu(input: Value) -> Value:
    """The elements times `sigmoid` of them."""
    return _silu(input)


def mish(input: Value) -> Value:
    """The elements times ``tanh(softplus(input))``."""
    return _mish(input)


def softplus(input: Value, beta: Scalar = 1.0, threshold: Scalar = 20.0) -> Value:
    """A smooth `relu`; above `threshold` the elements themselves."""
    return _softplus(input, beta, threshold)


def softsign(input: Value) -> Value:
    """``x / (1 + |x|)``."""
    return input / (abs(input) + 1)


def tanhshrink(input: Value) -> Value:
    """``x - tanh(x)``."""
    return input - tanh(input)


# --- what stands in for the above in place ----------------------------------------
# Their gradients follow from the result, so that the input need not be kept.


def leaky_relu_in_place(input: Value, negative_slope: float = 0.01) -> Value:
    """`leaky_relu` that saves its result.

    Raises:
        RuntimeError: `negative_slope` is negative: the result does not tell the input.
    """
    if negative_slope < 0 and input.requires_grad:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative "
            "slope which is not supported. This is caused by calling in-place forward "
            "function with a negative slope, please call out-of-place version instead."
        )
    return _leaky_relu_in_place(input, negative_slope)


def elu_in_place(input: Value, alpha: float = 1.0) -> Value:
    """`elu` that saves its result."""
    return _elu_in_place(input, alpha, 1.0, 1.0)


def selu_in_place(input: Value) -> Value:
    """`selu` that saves its result."""
    return _elu_in_place(input, _SELU_ALPHA, _SELU_SCALE, 1.0)


def celu_in_place(input: Value, alpha: float = 1.0) -> Value:
    """`celu` that saves its result."""
    return _celu_in_place(input, alpha, 1.0, 1 / alpha)


PUBLIC = [
    *names("gv.f", celu, selu),
    *names("gv.f gv.f_ x.f x.f_ F.f_", relu),
    *names("gv.f x.f F.f", hardshrink, prelu),
    *names("gv.f(out=) gv.f_ x.f x.f_ F.f", sigmoid=sigmoid),
    *names("gv.f_ F.f_", celu=celu_in_place, selu=selu_in_place),
    *names("F.f", gelu, logsigmoid, softplus, softshrink, softsign, tanhshrink),
    *names("F.f_", hardtanh, elu=elu_in_place, leaky_relu=leaky_relu_in_place),
    *names("special.f(out=)", expit=sigmoid),
]
