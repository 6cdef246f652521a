"""Trigonometric and hyperbolic functions, and their inverses."""

from math import pi
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import as_floating, number_beside
from gradviz.ops.conventions.refusal import check_kinds, check_tensors
from gradviz.ops.dispatch.differentiable import Op, binary, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import reciprocal
from gradviz.ops.elementwise.scalar_arithmetic import times
from gradviz.ops.elementwise.selection import where
from gradviz.ops.elementwise.transcendental import rsqrt
from gradviz.ops.shapes.complex_parts import conj, is_complex
from gradviz.ops.variables.variable import raw

_DEGREES: Final = 180 / pi

sin: Op = unary("SinBackward0", np.sin, lambda grad, x: grad * conj(cos(x)))
cos: Op = unary("CosBackward0", np.cos, lambda grad, x: grad * -conj(sin(x)))
tan: Op = unary("TanBackward0", np.tan, lambda grad, result: grad * conj(result**2 + 1))
asin: Op = unary(
    "AsinBackward0", np.arcsin, lambda grad, x: grad * conj(rsqrt(-x * x + 1))
)
acos: Op = unary(
    "AcosBackward0", np.arccos, lambda grad, x: grad * -conj(rsqrt(-x * x + 1))
)
atan: Op = unary("AtanBackward0", np.arctan, lambda grad, x: grad / conj(x * x + 1))

sinh: Op = unary("SinhBackward0", np.sinh, lambda grad, x: grad * conj(cosh(x)))
cosh: Op = unary("CoshBackward0", np.cosh, lambda grad, x: grad * conj(sinh(x)))
asinh: Op = unary(
    "AsinhBackward0", np.arcsinh, lambda grad, x: grad * conj(rsqrt(x**2 + 1))
)
acosh: Op = unary("AcoshBackward0", np.arccosh, lambda grad, x: grad * _acosh_slope(x))
atanh: Op = unary("AtanhBackward0", np.arctanh, lambda grad, x: grad / conj(1 - x * x))


def _acosh_slope(x: Gradient) -> Gradient:
    # One root of a product has the wrong branch where the elements are complex.
    if is_complex(x):
        return conj(rsqrt(x + 1) * rsqrt(x - 1))
    return rsqrt(x * x - 1)


def _tanh_gradient(x: Array, y: Array) -> Array:
    # In place: a backward has two gradients in memory at most, as in PyTorch.
    square = y * y
    if square.ndim:
        square = np.subtract(number_beside(y, 1.0), square, square)
    else:
        square = 1 - square
    slope = square if square.dtype.kind != "c" else square.conj()
    slope *= x
    return slope


_tanh_backward: Op = binary(
    "TanhBackwardBackward0",
    _tanh_gradient,
    x=lambda grad, y: _tanh_backward(grad, conj(y)),
    y=lambda grad, x, y: conj(grad) * (times(conj(y), -2) * x),
    x_first=True,
)
tanh: Op = unary(
    "TanhBackward0", np.tanh, lambda grad, result: _tanh_backward(grad, result)
)


def _atan2(x: Array, y: Array) -> Array:
    check_tensors("atan2", input=x, other=y)
    check_kinds("atan2_cpu", "biuf", x)
    return np.arctan2(as_floating(x), as_floating(y))


def _inverse_square(x: Gradient, y: Gradient) -> Gradient:
    """1 over the square of a distance, 0 where that is 0."""
    square = x * x + y * y
    return where(raw(square) == 0, 0.0, reciprocal(square))


atan2: Op = binary(
    "Atan2Backward0",
    _atan2,
    x=lambda grad, x, y: grad * (y * _inverse_square(x, y)),
    y=lambda grad, x, y: grad * (-x * _inverse_square(x, y)),
)


def _hypot(x: Array, y: Array) -> Array:
    check_tensors("hypot", input=x, other=y)
    check_kinds("hypot_cpu", "f", x)
    return np.hypot(x, y)


hypot: Op = binary(
    "HypotBackward0",
    _hypot,
    x=lambda grad, x, result: grad * x / result,
    y=lambda grad, y, result: grad * y / result,
)


def _sinc_slope(grad: Array, x: Array) -> Array:
    angle = x * pi
    slope = conj((angle * cos(angle) - sin(angle)) / (angle * x))
    return where(raw(x * x) == 0, 0.0, grad * slope)


sinc: Op = unary("SincBackward0", np.sinc, _sinc_slope)


def _deg2rad(x: Array) -> Array:
    if x.dtype.kind == "c":
        raise RuntimeError("deg2rad is not supported for complex tensors.")
    return x * (1 / _DEGREES)


def _rad2deg(x: Array) -> Array:
    if x.dtype.kind == "c":
        raise RuntimeError("rad2deg is not supported for complex tensors.")
    return x * _DEGREES


deg2rad: Op = unary("Deg2RadBackward0", _deg2rad, lambda grad: grad / _DEGREES)
rad2deg: Op = unary("Rad2DegBackward0", _rad2deg, lambda grad: grad * _DEGREES)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", sinc, acos=acos, acosh=acosh, asin=asin),
    *names("gv.f(out=) gv.f_ x.f x.f_", asinh=asinh, atan=atan, atanh=atanh),
    *names("gv.f(out=) gv.f_ x.f x.f_ F.f np.f", tanh),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", cos, cosh, sin, sinh, tan, arccos=acos),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", arccosh=acosh, arcsin=asin, arcsinh=asinh),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", arctan=atan, arctanh=atanh),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", deg2rad=deg2rad, rad2deg=rad2deg),
    *names("gv.f(out=) x.f x.f_", atan2=atan2),
    *names("gv.f(out=) x.f x.f_ np.f", arctan2=atan2, hypot=hypot),
    *names("special.f(out=)", sinc),
]
