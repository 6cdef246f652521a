"""Products with logarithms and powers of two that are exact at their limits."""

from math import log as log_of
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import (
    Operand,
    Scalar,
    as_floating,
    promote_all,
    python_number,
)
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, binary, differentiable, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.elementwise.selection import masked_fill, where
from gradviz.ops.elementwise.transcendental import log
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.variables.variable import Value, raw

_LN2: Final = log_of(2)

# --- products with logarithms -----------------------------------------------------


def _xlogy_values(x: Array, y: Array) -> Array:
    check_kinds("xlogy_cpu", "biuf", x, y)
    x, y = as_floating(x), as_floating(y)
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


def _xlog1py_values(x: Array, y: Array) -> Array:
    check_kinds("xlog1py_cpu", "biuf", x, y)
    x, y = as_floating(x), as_floating(y)
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log1p(y))


def _limited(slope: Gradient, x: Gradient, outside: Array) -> Gradient:
    """A derivative by the factor, 0 where it is that of the limit at 0."""
    return masked_fill(slope, (raw(x) == 0) & outside, 0)


_xlogy = binary(
    "XlogyBackward0",
    _xlogy_values,
    x=lambda grad, x, y: _limited(xlogy(grad, y), x, raw(y) <= 0),
    y=lambda grad, x, y: grad * x / y,
)


@differentiable("XlogyBackward1", y=lambda grad, y, number: grad * number / y)
def _xlogy_of_number(y: Array, number: Scalar) -> Array:
    return _xlogy_values(*promote_all(number, as_floating(y)))


@differentiable(
    "XlogyBackward2",
    x=lambda grad, x, number: _limited(xlogy(grad, number), x, number <= 0),
)
def _xlogy_by_number(x: Array, number: Scalar) -> Array:
    return _xlogy_values(*promote_all(as_floating(x), number))


_xlog1py = binary(
    "SpecialXlog1PyBackward0",
    _xlog1py_values,
    x=lambda grad, x, y: _limited(xlog1py(grad, y), x, raw(y) <= -1),
    y=lambda grad, x, y: grad * x / (y + 1),
)


@differentiable(
    "SpecialXlog1PyBackward1", y=lambda grad, y, number: grad * number / (y + 1)
)
def _xlog1py_of_number(y: Array, number: Scalar) -> Array:
    return _xlog1py_values(*promote_all(number, as_floating(y)))


@differentiable(
    "SpecialXlog1PyBackward2",
    x=lambda grad, x, number: _limited(xlog1py(grad, number), x, number <= -1),
)
def _xlog1py_by_number(x: Array, number: Scalar) -> Array:
    return _xlog1py_values(*promote_all(as_floating(x), number))


def xlogy(input: Operand, other: Operand) -> Value:
    """``input * log(other)``, 0 where `input` is 0; one of the two may be a number."""
    input = python_number(input)
    other = python_number(other)
    if not hasattr(input, "dtype"):
        return _xlogy_of_number(other, input)
    return (_xlogy if hasattr(other, "dtype") else _xlogy_by_number)(input, other)


def xlog1py(input: Operand, other: Operand) -> Value:
    """``input * log(1 + other)``, 0 where `input` is 0."""
    input = python_number(input)
    other = python_number(other)
    if not hasattr(input, "dtype"):
        return _xlog1py_of_number(other, input)
    return (_xlog1py if hasattr(other, "dtype") else _xlog1py_by_number)(input, other)


def _entr(x: Array) -> Array:
    return np.where(
        x > 0, -x * np.log(x), np.where(x == 0, 0, np.where(x < 0, -np.inf, x))
    )


entr: Op = unary("SpecialEntrBackward0", _entr, lambda grad, x: grad * -(1 + log(x)))


@differentiable("LogitBackward0", x=lambda grad, x, eps: _logit_slope(grad, x, eps))
def _logit(x: Array, eps: float | None) -> Array:
    check_kinds("logit_cpu", "biuf", x)
    x = as_floating(x)
    if eps is not None:
        x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


def _logit_slope(grad: Gradient, x: Gradient, eps: float | None) -> Gradient:
    array = raw(x)
    low, high = (0.0, 1.0) if eps is None else (eps, 1.0 - eps)
    outside = (array < low) | (array > high)
    # The size of x, so that the slope at -0 is infinity, and not less than nothing.
    return where(outside, np.nan if eps is None else 0.0, grad / (abs(x) * (1.0 - x)))


def logit(input: Value, eps: float | None = None) -> Value:
    """``log(input / (1 - input))``, of numbers limited to ``[eps, 1 - eps]``."""
    return _logit(input, eps)


# --- powers of two ----------------------------------------------------------------

ldexp: Op = binary(
    "LdexpBackward0",
    lambda x, y: as_floating(x) * np.power(2.0, as_floating(y)),
    x=lambda grad, y: grad * conj(pow(2.0, y)),
    y=lambda grad, result: grad * conj(result) * _LN2,
)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", logit, xlogy, ldexp=ldexp),
    *names("special.f(out=)", logit, xlog1py, xlogy, entr=entr),
]
