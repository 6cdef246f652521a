"""The logarithm of the gamma function, and its derivatives."""

import math
import operator
from functools import reduce

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import as_floating, python_number
from gradviz.ops.dispatch.differentiable import Op, differentiable, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.real_kernels import of_reals
from gradviz.ops.elementwise.zeta_functions import EULER_MACLAURIN, LARGE, hurwitz
from gradviz.ops.variables.variable import Value

# --- values -----------------------------------------------------------------------


def _log_gamma_of_number(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at a pole, or beyond the largest float
        return math.inf


# Zero where gamma is 1 and 2, which a series reaches only with care: left to C.
_log_gammas = np.frompyfunc(_log_gamma_of_number, 1, 1)


def log_gamma(x: Array) -> Array:
    """The logarithm of the absolute value of the gamma function."""
    return _log_gammas(np.atleast_1d(x)).astype(x.dtype).reshape(x.shape)


def _digamma(x: Array) -> Array:
    """The derivative of the logarithm of the gamma function."""
    positive = np.where(x > 0, x, 1 - x)
    total = np.zeros_like(positive)
    for _ in range(LARGE):
        small = positive < LARGE
        total -= np.where(small, 1 / positive, 0)
        positive = np.where(small, positive + 1, positive)
    inverse = 1 / (positive * positive)
    series = np.zeros_like(positive)
    for k, term in reversed(list(enumerate(EULER_MACLAURIN, 1))):
        series = (series + term * math.factorial(2 * k - 1)) * inverse
    total += np.log(positive) - 0.5 / positive - series
    # Reflection; the remainder keeps the digits of a large angle.
    reflected = total - np.pi / np.tan(np.pi * np.fmod(x, 1))
    result = np.where(x > 0, total, reflected)
    result = np.where((x < 0) & (x == np.trunc(x)), np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, -x), result)


def _trigamma(x: Array) -> Array:
    """The derivative of that."""
    is_reflected = x < 0.5
    total = hurwitz(2, np.where(is_reflected, 1 - x, x))
    sine = np.sin(np.pi * np.fmod(x, 1))
    return np.where(is_reflected, (np.pi / sine) ** 2 - total, total)


def _polygamma_values(n: int, x: Array) -> Array:
    if n == 0:
        return _digamma(x)
    if n == 1:
        return _trigamma(x)
    return (-1) ** (n + 1) * math.factorial(n) * hurwitz(n + 1, x)


# --- ops --------------------------------------------------------------------------


lgamma: Op = unary(
    "LgammaBackward0",
    of_reals("lgamma_vml_cpu", log_gamma),
    lambda grad, x: grad * digamma(x),
)
digamma: Op = unary(
    "DigammaBackward0",
    of_reals("digamma", _digamma),
    lambda grad, x: grad * _polygamma(x, 1),
)


@differentiable("PolygammaBackward0", x=lambda grad, x, n: grad * _polygamma(x, n + 1))
def _polygamma(x: Array, n: int) -> Array:
    return of_reals(
        "trigamma" if n == 1 else "polygamma", lambda x: _polygamma_values(n, x)
    )(x)


def polygamma(n: int, input: Value) -> Value:
    """The derivative of order `n` of `digamma`.

    Raises:
        RuntimeError: `n` is negative.
    """
    n = python_number(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(input, n)


@differentiable("MvlgammaBackward0", x=lambda grad, x, p: grad * _slopes(x, p))
def _mvlgamma(x: Array, p: int) -> Array:
    x = as_floating(x)
    check_elements("mvlgamma: check", _check_above, x, p)
    constant = p * (p - 1) / 4 * math.log(math.pi)
    return reduce(operator.add, [log_gamma(x - k / 2) for k in range(p)]) + constant


def _check_above(x: Array, p: int) -> None:
    if np.any(x <= (p - 1) / 2):
        raise RuntimeError("All elements must be greater than (p-1)/2")


def _slopes(x: Gradient, p: int) -> Gradient:
    return reduce(operator.add, [digamma(x - k / 2) for k in range(p)])


def mvlgamma(input: Value, p: int) -> Value:
    """The logarithm of the gamma function of `p` dimensions.

    Raises:
        RuntimeError: `p` is less than 1, or an element not above ``(p - 1) / 2``.
    """
    p = python_number(p)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return _mvlgamma(input, p)


PUBLIC = [
    *names("gv.f(out=)", polygamma),
    *names("gv.f(out=) x.f x.f_", digamma, lgamma, mvlgamma),
    *names("special.f(out=)", digamma, polygamma, gammaln=lgamma),
    *names("special.f(out=)", multigammaln=mvlgamma, psi=digamma),
]
