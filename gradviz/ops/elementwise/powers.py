"""Powers."""

import numpy as np

from gradviz.backends.arrays.wrapped_array import WrappedArray, in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import Operand, Scalar, promote
from gradviz.ops.dispatch.differentiable import binary, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.scalar_arithmetic import times
from gradviz.ops.elementwise.selection import where
from gradviz.ops.elementwise.transcendental import log
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.copying import to_copy
from gradviz.ops.variables.variable import Value, Variable, device_of, raw, zeros_like


def _slope(x: Gradient, exponent: Scalar) -> Gradient:
    """The derivative of a power by its base."""
    power = pow(x, exponent - 1)
    if isinstance(x, Variable):  # then nodes are PyTorch's
        return conj(times(power, exponent))
    return conj(exponent * power)


@differentiable(
    "PowBackward0",
    x=lambda grad, x, exponent: (
        zeros_like(grad) if exponent == 0 else grad * _slope(x, exponent)
    ),
)
def _power_of_number(x: Array, exponent: Scalar) -> Array:
    x, exponent = promote(x, exponent)
    if x.dtype.kind in "iu" and exponent.real < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if x.dtype.kind == "b":
        x = x.astype(np.int64)
    # `**`, not numpy.power: it knows faster ways for 2, 0.5 and -1.
    return x**exponent


def _by_exponent(
    grad: Gradient, x: Gradient, exponent: Gradient, result: Gradient
) -> Gradient:
    """The gradient of an exponent.

    The limit of x**y log(x) at 0 is 0 for y > 0, and so PyTorch defines it for y = 0.
    """
    at_zero = (raw(x) == 0) & (np.real(raw(exponent)) >= 0)
    # Not to wait for a device, that there is none is seen on the CPU only.
    is_nowhere = not isinstance(at_zero, WrappedArray) and not np.any(at_zero)
    base = x if is_nowhere else where(at_zero, 1.0, x)
    if raw(result).dtype.kind == "c":  # a negative base has a logarithm then
        base = _as(base, raw(result).dtype)
    return grad * conj(where(at_zero, 0.0, result * log(base)))


def _by_base(grad: Gradient, x: Gradient, exponent: Gradient) -> Gradient:
    """The gradient of a base. Where the exponent is 0 so is this, for x = 0 too."""
    is_flat = raw(exponent) == 0
    is_nowhere = not isinstance(is_flat, WrappedArray) and not np.any(is_flat)
    less = exponent - 1
    power = exponent * pow(x, less if is_nowhere else where(is_flat, 1.0, less))
    return where(is_flat, 0.0, grad * conj(power))


def _power_of_array(x: Array, exponent: Array) -> Array:
    if exponent.dtype.kind != "i":
        return np.power(x, exponent)
    return in_one_kernel("power", _power_of_integers, x, exponent)


def _power_of_integers(x: Array, exponent: Array) -> Array:
    if not np.any(exponent < 0):
        return np.power(x, exponent)
    # Results below 1 are cut to 0; for 1 and -1 the power is that of the inverse.
    kept = np.power(x, np.abs(exponent))
    return np.where((exponent >= 0) | (np.abs(x) == 1), kept, np.zeros_like(kept))


_power = binary(
    "PowBackward1",
    _power_of_array,
    # Where y is 0 the gradient is 0, for x = 0 too.
    x=lambda grad, x, y: _by_base(grad, x, y),
    y=lambda grad, x, y, result: _by_exponent(grad, x, y, result),
)


@differentiable(
    "PowBackward2",
    y=lambda grad, y, base, result: (
        _by_exponent(grad, np.asarray(base), y, result)
        if base == 0
        else grad * conj(result * _log_of_number(base, raw(result).dtype))
    ),
)
def _exponential(y: Array, base: Scalar) -> Array:
    base, y = promote(base, y)
    return _power_of_array(np.asarray(base, y.dtype), y)


def _log_of_number(base: Scalar, dtype: np.dtype[np.generic]) -> Scalar:
    if dtype.kind == "c" or isinstance(base, complex):
        return complex(np.log(complex(base)))
    return float(np.log(base)) if base > 0 else float("nan")


def pow(input: Operand, exponent: Operand) -> Value:
    """`input` to a power; either may be a number.

    Raises:
        RuntimeError: An integer to a negative integer power.
    """
    if isinstance(exponent, np.generic):
        exponent = exponent.item()
    if isinstance(exponent, (int, float, complex)):
        return _power_of_number(input, exponent)
    if isinstance(input, np.generic):
        input = input.item()
    if isinstance(input, (int, float, complex)):
        return _exponential(exponent, input)
    return _power(input, exponent)


def square(input: Value) -> Value:
    """``input ** 2``."""
    return pow(input, 2)


def float_power(input: Operand, exponent: Operand) -> Value:
    """`pow` in double precision."""
    kinds = {_kind(input), _kind(exponent)}
    dtype = np.dtype(np.complex128 if "c" in kinds else np.float64)
    return pow(_as(input, dtype), _as(exponent, dtype))


def _kind(value: Operand) -> str:
    dtype = getattr(raw(value), "dtype", None)
    return (
        dtype.kind if dtype is not None else "c" if isinstance(value, complex) else ""
    )


def _as(value: Value, dtype: np.dtype[np.generic]) -> Value:
    if not isinstance(value, Variable):
        if hasattr(value, "astype"):
            return value.astype(dtype, copy=False)
        return complex(value) if dtype.kind == "c" else float(value)
    if value.array.dtype == dtype:
        return value
    return to_copy(value, dtype, device_of(value.array))


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", square),
    *names("gv.f(out=) x.f x.f_", float_power, pow),
]
