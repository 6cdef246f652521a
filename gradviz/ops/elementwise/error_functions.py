"""The error function, its relatives and its inverse.

Each is a Chebyshev series where it is smooth enough for one. In single precision the
first terms of it do, and for `erf`, which models call most, a quotient of polynomials.
"""

from math import pi
from math import sqrt as root
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.dispatch.differentiable import Op, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.real_kernels import of_reals
from gradviz.ops.elementwise.scalar_arithmetic import plus, times
from gradviz.ops.elementwise.transcendental import exp
from gradviz.ops.variables.variable import Value

_SLOPE: Final = 2 / root(pi)
_ROOT_HALF: Final = root(0.5)
_ROOT_TAU: Final = root(2 * pi)

#: Of erf(x) / x for x from 0 to 1, in 2 x**2 - 1.
_NEAR: Final = (
    0.975476939382654096,
    -0.142261205103713642,
    0.0100355821875997956,
    -0.000576876469976748477,
    0.000027419931252196061,
    -1.10431755073445076e-6,
    3.84887554203450369e-8,
    -1.1808582533875467e-9,
    3.23342158260509096e-11,
    -7.99101594700454876e-13,
    1.79907251139614556e-14,
    -3.71863548781869264e-16,
    7.10359900371425297e-18,
)

#: Of erf(x) / x up to where erf is 1 in single precision, in x**2: a quotient, whose
#: denominator begins with x**10.
_SATURATED: Final = 3.95
_NUMERATOR: Final = (
    5.31638698e-02,
    7.60067025,
    1.03530704e02,
    1.40615975e03,
    5.12805588e03,
    2.98205828e04,
)
_DENOMINATOR: Final = (
    3.16667721e01,
    4.03580409e02,
    3.05485729e03,
    1.33538415e04,
    2.64278071e04,
)

#: Of (1 + 2 x) exp(x**2) erfc(x) for x >= 0, in (x - 3.75) / (x + 3.75).
_FAR: Final = (
    1.17757893456740175,
    -0.00459005458064647733,
    -0.0842491333665179156,
    0.0592099399981918905,
    -0.0266586684353057523,
    0.00907499767070526509,
    -0.00241316354041760819,
    0.000490775836525808632,
    -0.0000691697330250120637,
    4.13902798607301017e-6,
    7.74038306619849067e-7,
    -2.18864010492343957e-7,
    1.07649994656709104e-8,
    4.5219598112182869e-9,
    -7.75440020883135111e-10,
    -6.31808834088668449e-11,
    2.8687950109306699e-11,
    1.94558685457773472e-13,
    -9.65469674843343891e-13,
    3.25254814814873984e-14,
    3.34781194828680539e-14,
    -1.8645628804193131e-15,
    -1.25079505306886471e-15,
    7.41823525662404346e-17,
    5.06814890479611132e-17,
)
_FAR_SINGLE: Final = 14

#: exp(-x**2) is 0 from here on.
_VANISHED: Final = 40
_MIDDLE: Final = 3.75


# --- values -----------------------------------------------------------------------


def _erf(x: Array) -> Array:
    """The error function."""
    if x.dtype == np.float32:
        return _erf_in_single(x)
    size = np.abs(x)
    near = size < 1
    within = np.where(near, x, 0)
    far = np.copysign(1 - _gaussian(size) * _erfcx_of_positive(size), x)
    return np.where(near, within * _chebyshev(_NEAR, 2 * within * within - 1), far)


def _erf_in_single(x: Array) -> Array:
    """The error function to seven digits: half of the passes over the elements."""
    square = np.clip(x * x, 0, _SATURATED * _SATURATED)
    result = square * _NUMERATOR[0]
    result += _NUMERATOR[1]
    for coefficient in _NUMERATOR[2:]:
        result *= square
        result += coefficient
    below = square + _DENOMINATOR[0]
    for coefficient in _DENOMINATOR[1:]:
        below *= square
        below += coefficient
    result /= below
    result *= x  # beyond 1 where `square` is less than the square of `x`
    return np.clip(result, -1, 1)


def _erfc(x: Array) -> Array:
    """1 less the error function, exact where that is tiny."""
    size = np.abs(x)
    tail = _gaussian(size) * _erfcx_of_positive(size)
    return np.where(x < 0, 2 - tail, tail)


def _erfcx(x: Array) -> Array:
    """``exp(x**2) * erfc(x)``."""
    positive = _erfcx_of_positive(np.abs(x))
    return np.where(x < 0, 2 * np.exp(x * x) - positive, positive)


def _erfinv(y: Array) -> Array:
    """The inverse of the error function: not a number beyond -1 and 1."""
    size = np.abs(y)
    x = _first_guess(size * size)
    near = size < 0.5
    for _ in range(3):  # by Halley's method, each with three times the digits
        below = (_erf(x) - size) * np.exp(x * x)
        above = (1 - size) * np.exp(x * x) - _erfcx_of_positive(x)
        step = np.where(near, below, above) / _SLOPE
        x = x - step / (1 + x * step)
    x = np.where(size == 1, np.inf, np.where(size > 1, np.nan, x))
    return np.copysign(x, y)


def _first_guess(square: Array) -> Array:
    """Winitzki's approximation of the inverse, to three digits."""
    logarithm = np.log1p(-np.minimum(square, 1 - 1e-16))
    half = 2 / (pi * 0.147) + logarithm / 2
    return np.sqrt(np.sqrt(half * half - logarithm / 0.147) - half)


def _ndtri(p: Array) -> Array:
    """Below which number a normal distribution has the part `p`."""
    tail = np.minimum(p, 1 - p)
    x = _tail_inverse(2 * np.maximum(tail, np.finfo(p.dtype).tiny))
    x = np.where(tail == 0, np.inf, np.where(tail < 0, np.nan, x))
    outer = np.where(p < 0.5, -x, x)
    return np.where(tail > 0.25, _erfinv(2 * p - 1), outer) / _ROOT_HALF


def _tail_inverse(q: Array) -> Array:
    """Return the inverse of ``erfc`` at `q`, for q from 0 to 1."""
    logarithm = np.log(q * (2 - q))
    half = 2 / (pi * 0.147) + logarithm / 2
    x = np.sqrt(np.maximum(np.sqrt(half * half - logarithm / 0.147) - half, 0))
    for _ in range(3):
        step = (q * np.exp(x * x) - _erfcx_of_positive(x)) / _SLOPE
        x = x - step / (1 + x * step)
    return x


def _log_ndtr(x: Array) -> Array:
    """The logarithm of the part of a normal distribution below `x`."""
    t = x * _ROOT_HALF
    below = np.log(_erfcx_of_positive(np.abs(t)) / 2) - t * t
    return np.where(x < -1, below, np.log1p(-_erfc(t) / 2))


def _chebyshev(terms: tuple[float, ...], t: Array) -> Array:
    """The sum of a Chebyshev series at `t`, by Clenshaw's recurrence."""
    twice = t + t
    after = np.zeros_like(t)
    current = np.full_like(t, terms[-1])
    for term in terms[-2:0:-1]:
        before = twice * current
        before -= after
        before += term
        after, current = current, before
    return t * current - after + terms[0]


def _erfcx_of_positive(x: Array) -> Array:
    terms = _FAR if x.dtype == np.float64 else _FAR[:_FAR_SINGLE]
    # 1 - ... rather than a quotient of two infinities.
    t = 1 - 2 * _MIDDLE / (x + _MIDDLE)
    return _chebyshev(terms, t) / (1 + 2 * x)


def _gaussian(x: Array) -> Array:
    """exp(-x**2) of x >= 0 to the last digit: a rounded x has an exact square."""
    x = np.minimum(x, _VANISHED)  # of larger ones, what rounding leaves out is infinite
    rounded = x.astype(np.float32 if x.dtype == np.float64 else np.float16)
    rounded = rounded.astype(x.dtype)
    return np.exp(-rounded * rounded) * np.exp((rounded - x) * (rounded + x))


# --- ops --------------------------------------------------------------------------


erf: Op = unary(
    "ErfBackward0",
    of_reals("erf_vml_cpu", _erf),
    lambda grad, x: _SLOPE * exp(-(x**2)) * grad,
)
erfc: Op = unary(
    "ErfcBackward0",
    of_reals("erfc_vml_cpu", _erfc),
    lambda grad, x: -_SLOPE * exp(-(x**2)) * grad,
)
erfcx: Op = unary(
    "SpecialErfcxBackward0",
    of_reals("erfcx_cpu", _erfcx),
    lambda grad, x, result: (2 * x * result - _SLOPE) * grad,
)
erfinv: Op = unary(
    "ErfinvBackward0",
    of_reals("erfinv_vml_cpu", _erfinv),
    lambda grad, x: exp(erfinv(x) ** 2) * (1 / _SLOPE) * grad,
)
ndtri: Op = unary(
    "SpecialNdtriBackward0",
    of_reals("ndtri_cpu", _ndtri),
    lambda grad, result: grad * (exp(result**2 / 2) * _ROOT_TAU),
)
log_ndtr: Op = unary(
    "SpecialLogNdtrBackward0",
    of_reals("log_ndtr_cpu", _log_ndtr),
    lambda grad, x, result: grad / _ROOT_TAU * exp(-(result + x**2 / 2)),
)


def ndtr(input: Value) -> Value:
    """The part of a normal distribution below `input`."""
    return times(plus(erf(times(input, _ROOT_HALF)), 1), 0.5)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", erf, erfc),
    *names("gv.f(out=) x.f x.f_", erfinv),
    *names("special.f(out=)", erf, erfc, erfinv, ndtr, erfcx=erfcx, log_ndtr=log_ndtr),
    *names("special.f(out=)", ndtri=ndtri),
]
