"""The incomplete gamma functions: the parts of gamma's integral around x."""

import math
from typing import Final

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import as_floating
from gradviz.ops.conventions.refusal import check_kinds, check_tensors
from gradviz.ops.dispatch.differentiable import Op, binary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.error_functions import erfc
from gradviz.ops.elementwise.gamma_functions import lgamma, log_gamma
from gradviz.ops.elementwise.transcendental import exp, log
from gradviz.ops.elementwise.zeta_functions import (
    EULER_MACLAURIN,
    LARGE,
    without_named_derivative,
)
from gradviz.ops.variables.variable import Value

#: Terms are added up until they are smaller than this part of the sum.
_EPSILON: Final = 1e-17

#: But no more of them: enough for `a` below a million.
_MOST_TERMS: Final = 10_000

#: From there on an expansion takes over.
_HUGE: Final = 1e6

#: Of Temme's expansion for a huge `a` the first coefficient, by powers of eta, and the
#: second where eta is 0. Source: DLMF 8.12.
_FIRST: Final = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835)
_SECOND: Final = -1 / 540

#: Least denominator, which keeps a continued fraction from dividing by 0.
_TINY: Final = 1e-300

# --- values -----------------------------------------------------------------------


def _density(a: Array, x: Array) -> Array:
    """``x ** a * exp(-x) / gamma(a)``, without the digits that large `a` would lose."""
    safe = np.maximum(a, LARGE)
    beyond = (x - safe) / safe
    series = np.zeros_like(safe)
    for k, term in reversed(list(enumerate(EULER_MACLAURIN, 1))):
        series = series / (safe * safe) + term * math.factorial(2 * k - 2)
    exponent = safe * (np.log1p(beyond) - beyond) - series / safe
    large = np.exp(exponent) * np.sqrt(safe / (2 * np.pi))
    small = np.exp(a * np.log(x) - x - log_gamma(a))
    return np.where(a < LARGE, small, large)


def _lower(a: Array, x: Array) -> Array:
    """The part below `x`, by a power series: for `x` not above `a`."""
    term = total = 1 / a
    for n in range(1, _MOST_TERMS):
        term = term * (x / (a + n))
        total = total + term
        if not np.any(term > _EPSILON * total):
            break
    return total * _density(a, x)


def _upper(a: Array, x: Array) -> Array:
    """The part above `x`, by a continued fraction (Lentz): for `x` above `a`."""
    b = x + 1 - a
    ratio = 1 / _TINY + x * 0
    inverse = 1 / np.where(b == 0, _TINY, b)
    fraction = inverse
    for n in range(1, _MOST_TERMS):
        numerator = n * (a - n)
        b = b + 2
        inverse = numerator * inverse + b
        inverse = 1 / np.where(np.abs(inverse) < _TINY, _TINY, inverse)
        ratio = b + numerator / ratio
        ratio = np.where(np.abs(ratio) < _TINY, _TINY, ratio)
        change = inverse * ratio
        fraction = fraction * change
        if not np.any(np.abs(change - 1) > _EPSILON * 10):
            break
    return fraction * _density(a, x)


def _huge(a: Array, x: Array, above: bool) -> Array:
    """One of the parts for a huge `a`, where all that is not near `a` counts as far."""
    beyond = (x - a) / a
    eta = np.copysign(np.sqrt(2 * (beyond - np.log1p(beyond))), beyond)
    near = np.clip(eta, -0.1, 0.1)  # farther away, nothing is left to correct
    first = np.zeros_like(near)
    for coefficient in reversed(_FIRST):
        first = first * near + coefficient
    rest = np.exp(-0.5 * a * eta * eta) / np.sqrt(2 * np.pi * a) * (first + _SECOND / a)
    side = 1.0 if above else -1.0
    return 0.5 * erfc(side * eta * np.sqrt(a / 2)) + side * rest


def _part(a: Array, x: Array, above: bool) -> Array:
    """One of the two parts; at the limits as PyTorch has it."""
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    is_huge = inside & (a > _HUGE)
    inside &= ~is_huge
    by_series = (x <= 1) | (x <= a)
    p = _lower(np.where(inside & by_series, a, 1), np.where(inside & by_series, x, 1))
    q = _upper(np.where(inside & ~by_series, a, 1), np.where(inside & ~by_series, x, 2))
    values = np.where(by_series, 1 - p, q) if above else np.where(by_series, p, 1 - q)
    if np.any(is_huge):
        huge = _huge(np.where(is_huge, a, _HUGE), np.where(is_huge, x, _HUGE), above)
        values = np.where(is_huge, huge, values)
    low, high = (1.0, 0.0) if above else (0.0, 1.0)
    values = np.where(np.isnan(a) | np.isnan(x), np.nan, values)
    for condition, value in (
        (np.isinf(x), high),
        (np.isinf(a), np.where(np.isinf(x), np.nan, low)),
        (x == 0, low),
        (a == 0, np.where(x > 0, high, np.nan)),
        ((a < 0) | (x < 0), np.nan),
    ):
        values = np.where(condition, value, values)
    return values


def _kernel(name: str, *, above: bool) -> Op:
    def forward(x: Array, y: Array) -> Array:
        check_kinds(name, "biuf", x, y)
        a, b = as_floating(x), as_floating(y)
        wide = (a.astype(np.float64), b.astype(np.float64))
        values = in_one_kernel(name, _part, *wide, above)
        return values.astype(np.result_type(a, b))

    forward.__name__ = name
    return forward


def _density_at(a: Gradient, x: Gradient) -> Gradient:
    """The derivative of the part below by `x`."""
    return exp((a - 1) * log(x) - x - lgamma(a))


_igamma = binary(
    "IgammaBackward0",
    _kernel("igamma", above=False),
    x=without_named_derivative("igamma: input"),
    y=lambda grad, x, y: grad * _density_at(x, y),
)
_igammac = binary(
    "IgammacBackward0",
    _kernel("igammac", above=True),
    x=without_named_derivative("igammac: input"),
    y=lambda grad, x, y: -grad * _density_at(x, y),
)


def igamma(input: Value, other: Value) -> Value:
    """Return the regularized lower incomplete gamma function.

    The share of the integral of ``t ** (input - 1) * exp(-t)`` below `other`.
    Differentiable by `other` alone, as in PyTorch.

    Raises:
        TypeError: One is not a tensor.
    """
    check_tensors("igamma", input=input, other=other)
    return _igamma(input, other)


def igammac(input: Value, other: Value) -> Value:
    """Return the regularized upper incomplete gamma function; see `igamma`."""
    check_tensors("igammac", input=input, other=other)
    return _igammac(input, other)


PUBLIC = [
    *names("gv.f x.f x.f_", igamma, igammac),
    *names("special.f(out=)", gammainc=igamma, gammaincc=igammac),
]
