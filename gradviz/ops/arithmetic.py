"""Arithmetic on elements: sums, products, powers, comparisons, choices."""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.differentiable import Op, binary, differentiable, unary
from gradviz.ops.promotion import as_floating, get_default_dtype, operand, promote
from gradviz.ops.transcendental import log
from gradviz.ops.variable import Value, Variable, raw, variable

# --- from trivial to tricky -----------------------------------------------------

neg = unary("NegBackward0", np.negative, lambda grad: -grad)
abs = unary("AbsBackward0", np.abs, lambda grad, x: grad * sign(x))
sign: Op = unary("SignBackward0", np.sign, lambda grad: grad * 0)
reciprocal = unary(
    "ReciprocalBackward0", np.reciprocal, lambda grad, result: -grad * result * result
)

add = binary("AddBackward0", np.add, x=lambda grad: grad, y=lambda grad: grad)
sub = binary("SubBackward0", np.subtract, x=lambda grad: grad, y=lambda grad: -grad)
mul = binary(
    "MulBackward0", np.multiply, x=lambda grad, y: grad * y, y=lambda grad, x: grad * x
)


def _true_divide(x: Array, y: Array) -> Array:
    """Quotients, of integers in the default dtype."""
    return np.true_divide(as_floating(x), as_floating(y))


_divide = binary(
    "DivBackward0",
    _true_divide,
    x=lambda grad, y: grad / y,
    y=lambda grad, x, y: -grad * (x / y) / y,
)

maximum = binary(
    "MaximumBackward0",
    np.maximum,
    x=lambda grad, x, y: grad * _share(x > y, x == y),
    y=lambda grad, x, y: grad * _share(y > x, x == y),
)
minimum = binary(
    "MinimumBackward0",
    np.minimum,
    x=lambda grad, x, y: grad * _share(x < y, x == y),
    y=lambda grad, x, y: grad * _share(y < x, x == y),
)


def _share(wins: Gradient, ties: Gradient) -> Gradient:
    """1 where an element was chosen, one half where both might have been."""
    return where(wins, 1.0, where(ties, 0.5, 0.0))


@differentiable("RemainderBackward0", x=lambda grad: grad)
def _remainder_of_number(x: Array, divisor: float) -> Array:
    return np.remainder(as_floating(x) if isinstance(divisor, float) else x, divisor)


_remainder = binary(
    "RemainderBackward1",
    np.remainder,
    x=lambda grad: grad,
    y=lambda grad, x, y: -grad * np.floor(raw(x) / raw(y)),
)


@differentiable("RsubBackward1", x=lambda grad: -grad)
def _subtract_from(x: Array, number: complex) -> Array:
    return np.subtract(number, as_floating(x) if isinstance(number, float) else x)


@differentiable(
    "PowBackward0",
    x=lambda grad, x, exponent: (
        grad * (exponent * pow(x, exponent - 1)) if exponent else grad * 0
    ),
)
def _power_of_number(x: Array, exponent: float) -> Array:
    # `**`, not numpy.power: it knows faster ways for 2, 0.5 and -1.
    return (as_floating(x) if isinstance(exponent, float) else x) ** exponent


_power = binary(
    "PowBackward1",
    np.power,
    # Where y is 0 the gradient is 0, for x = 0 too.
    x=lambda grad, x, y: grad * (y * pow(x, where(y == 0, 1.0, y) - 1)),
    # The limit of x**y log(x) at 0 is 0 for y > 0, and so PyTorch defines it for y = 0.
    y=lambda grad, x, y, result: (
        grad
        * where(
            (x == 0) * (y >= 0), 0.0, result * log(where((x == 0) * (y >= 0), 1.0, x))
        )
    ),
)


@differentiable("PowBackward2", y=lambda grad, base, result: grad * result * log(base))
def _exponential(y: Array, base: float) -> Array:
    return np.power(base, as_floating(y) if isinstance(base, float) else y)


@differentiable(
    "ClampBackward1",
    x=lambda grad, x, minimum, maximum: where(_inside(x, minimum, maximum), grad, 0.0),
)
def _clamp(x: Array, minimum: float | None, maximum: float | None) -> Array:
    return np.clip(x, minimum, maximum)


def _inside(x: Gradient, minimum: float | None, maximum: float | None) -> Gradient:
    above = True if minimum is None else x >= minimum
    return above if maximum is None else above * (x <= maximum)


@differentiable(
    "WhereBackward0",
    arrays=("condition",),
    x=lambda grad, condition: _where(condition, grad, 0.0),
    y=lambda grad, condition: _where(condition, 0.0, grad),
)
def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, *_promoted(x, y))


def _promoted(x: Value, y: Value) -> tuple[Value, Value]:
    if hasattr(x, "dtype") or hasattr(y, "dtype"):
        return promote(x, y)
    if isinstance(x, float) or isinstance(y, float):
        return np.asarray(x, get_default_dtype()), y
    return x, y


# --- what users call --------------------------------------------------------------


def div(x: Value, y: Value) -> Value:
    """Quotients; a number divided by a tensor is its reciprocal, scaled."""
    if isinstance(y, Variable) and isinstance(x, (int, float)):
        return mul(reciprocal(y), x)
    return _divide(x, y)


def rsub(x: Value, other: Value) -> Value:
    """``other - x``."""
    number = operand(other) if not isinstance(other, Variable) else other
    if isinstance(number, (int, float)):
        return _subtract_from(x, number)
    return sub(number, x)


def pow(x: Value, exponent: Value) -> Value:
    """`x` to a power; either may be a number."""
    if isinstance(exponent, (int, float)):
        return _power_of_number(x, exponent)
    if isinstance(x, (int, float)):
        return _exponential(exponent, x)
    return _power(x, exponent)


def remainder(x: Value, divisor: Value) -> Value:
    """What division leaves, with the sign of the divisor: Python's ``%``."""
    if isinstance(divisor, (int, float)):
        return _remainder_of_number(x, divisor)
    return _remainder(x, divisor)


def square(x: Value) -> Value:
    """``x ** 2``."""
    return pow(x, 2)


def clamp(x: Value, min: float | None = None, max: float | None = None) -> Value:
    """Elements limited to ``[min, max]``.

    Raises:
        ValueError: Neither limit was given.
    """
    if min is None and max is None:
        raise ValueError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return _clamp(x, min, max)


def where(condition: Value, x: Value, y: Value) -> Value:
    """Elements of `x` where `condition` holds, of `y` elsewhere."""
    return _where(condition, x, y)


# --- not differentiable -----------------------------------------------------------


def _comparison(function: np.ufunc) -> Value:
    def compare(x: Value, y: Value) -> Value:
        if not isinstance(y, Variable):
            try:
                y = operand(y)
            except TypeError:
                return NotImplemented
        if not isinstance(x, Variable) and not isinstance(y, Variable):
            return function(x, y)
        return variable(function(*_promoted(raw(x), raw(y))))

    compare.__name__ = compare.__qualname__ = function.__name__
    compare.__doc__ = f"``numpy.{function.__name__}``, as a tensor of booleans."
    return compare


eq = _comparison(np.equal)
ne = _comparison(np.not_equal)
lt = _comparison(np.less)
le = _comparison(np.less_equal)
gt = _comparison(np.greater)
ge = _comparison(np.greater_equal)
