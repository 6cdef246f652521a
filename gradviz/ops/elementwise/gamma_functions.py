"""The logarithm of the gamma function, and its derivatives."""

import math
import operator
from functools import reduce
from typing import Any, Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.recording.differentiable import Op, differentiable, unary
from gradviz.ops.recording.promotion import as_floating
from gradviz.ops.recording.refusal import check_kinds
from gradviz.ops.recording.variable import Value

#: From here on the asymptotic series are exact; smaller numbers are brought here.
_LARGE: Final = 10

#: Below here `_zeta` is not computed.
_SMALL: Final = -1000

#: Bernoulli's numbers B2, B4, ... over (2 k)!: the Euler-Maclaurin formula's terms.
_EULER_MACLAURIN: Final = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
)

# --- values -----------------------------------------------------------------------


def _log_gamma_of_number(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # at a pole, or beyond the largest float
        return math.inf


# Zero where gamma is 1 and 2, which a series reaches only with care: left to C.
_log_gamma = np.frompyfunc(_log_gamma_of_number, 1, 1)


def _lgamma(x: Array) -> Array:
    """The logarithm of the absolute value of the gamma function."""
    return _log_gamma(np.atleast_1d(x)).astype(x.dtype).reshape(x.shape)


def _digamma(x: Array) -> Array:
    """The derivative of the logarithm of the gamma function."""
    positive = np.where(x > 0, x, 1 - x)
    total = np.zeros_like(positive)
    for _ in range(_LARGE):
        small = positive < _LARGE
        total -= np.where(small, 1 / positive, 0)
        positive = np.where(small, positive + 1, positive)
    inverse = 1 / (positive * positive)
    series = np.zeros_like(positive)
    for k, term in reversed(list(enumerate(_EULER_MACLAURIN, 1))):
        series = (series + term * math.factorial(2 * k - 1)) * inverse
    total += np.log(positive) - 0.5 / positive - series
    # Reflection; the remainder keeps the digits of a large angle.
    reflected = total - np.pi / np.tan(np.pi * np.fmod(x, 1))
    result = np.where(x > 0, total, reflected)
    result = np.where((x < 0) & (x == np.trunc(x)), np.nan, result)
    return np.where(x == 0, np.copysign(np.inf, -x), result)


def _zeta(s: float, x: Array) -> Array:
    """Hurwitz's zeta function, the sum of ``(x + k) ** -s`` over k, for s > 1."""
    pole = (x <= 0) & (x == np.floor(x)) & np.isfinite(x)
    # Far below 0 too many terms count; PyTorch gives up there as well.
    x = np.where(pole, 1, np.where(x < _SMALL, np.nan, x))
    total = np.zeros_like(x)
    while np.any(small := x < _LARGE):
        total += np.where(small, np.abs(x) ** -s * np.where(x < 0, (-1.0) ** s, 1), 0)
        x = np.where(small, x + 1, x)
    power = x**-s
    total += x ** (1 - s) / (s - 1) + power / 2
    factor = s
    for k, term in enumerate(_EULER_MACLAURIN, 1):
        power = power / (x if k == 1 else x * x)
        total += term * factor * power
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    return np.where(pole, np.inf, total)


def _polygamma_values(n: int, x: Array) -> Array:
    if n == 0:
        return _digamma(x)
    return (-1) ** (n + 1) * math.factorial(n) * _zeta(n + 1, x)


# --- ops --------------------------------------------------------------------------


def _real(kernel: str, values: Any) -> Any:  # noqa: ANN401 - functions of one array
    """A forward function of real numbers; half precision is computed in single."""

    def forward(x: Array) -> Array:
        x = as_floating(x)
        check_kinds(kernel, "f", x)
        if x.dtype == np.float16:
            return values(x.astype(np.float32)).astype(x.dtype)
        return values(x)

    forward.__name__ = kernel.partition("_vml")[0]
    forward.__doc__ = values.__doc__
    return forward


lgamma: Op = unary(
    "LgammaBackward0",
    _real("lgamma_vml_cpu", _lgamma),
    lambda grad, x: grad * digamma(x),
)
digamma: Op = unary(
    "DigammaBackward0",
    _real("digamma", _digamma),
    lambda grad, x: grad * _polygamma(x, 1),
)


@differentiable("PolygammaBackward0", x=lambda grad, x, n: grad * _polygamma(x, n + 1))
def _polygamma(x: Array, n: int) -> Array:
    return _real(
        "trigamma" if n == 1 else "polygamma", lambda x: _polygamma_values(n, x)
    )(x)


def polygamma(n: int, input: Value) -> Value:
    """The derivative of order `n` of `digamma`.

    Raises:
        RuntimeError: `n` is negative.
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return _polygamma(input, n)


@differentiable("MvlgammaBackward0", x=lambda grad, x, p: grad * _slopes(x, p))
def _mvlgamma(x: Array, p: int) -> Array:
    x = as_floating(x)
    if np.any(x <= (p - 1) / 2):
        raise RuntimeError("All elements must be greater than (p-1)/2")
    constant = p * (p - 1) / 4 * math.log(math.pi)
    return reduce(operator.add, [_lgamma(x - k / 2) for k in range(p)]) + constant


def _slopes(x: Gradient, p: int) -> Gradient:
    return reduce(operator.add, [digamma(x - k / 2) for k in range(p)])


def mvlgamma(input: Value, p: int) -> Value:
    """The logarithm of the gamma function of `p` dimensions.

    Raises:
        RuntimeError: `p` is less than 1, or an element not above ``(p - 1) / 2``.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return _mvlgamma(input, p)
