"""Modified Bessel functions of the first kind, of order 0 and 1."""

from typing import Any, Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import as_floating
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, unary
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.rounding import sign
from gradviz.ops.elementwise.selection import where
from gradviz.ops.variables.variable import raw

#: From here on the asymptotic series is exact.
_LARGE: Final = 30

#: Number of terms that make the series exact: of powers of x, and of 1 / x.
_NUM_TERMS: Final = 64
_NUM_ASYMPTOTIC_TERMS: Final = 24

# --- values -----------------------------------------------------------------------


def _scaled(order: int, x: Array) -> Array:
    """The function of the size of `x`, times ``exp(-abs(x))``."""
    size = np.abs(x)
    small = np.minimum(size, _LARGE)
    # Sum of (x / 2) ** (2 k + order) / (k! (k + order)!), from the last term on.
    square = small * small / 4
    series = np.ones_like(small)
    for k in range(_NUM_TERMS, 0, -1):
        series = 1 + square / (k * (k + order)) * series
    near = series * np.exp(-small)
    if order:
        near = near * (small / 2)
    large = np.maximum(size, _LARGE)
    series = np.ones_like(large)
    for k in range(_NUM_ASYMPTOTIC_TERMS, 0, -1):
        series = 1 - (4 * order * order - (2 * k - 1) ** 2) / (8 * k * large) * series
    far = series / np.sqrt(2 * np.pi) / np.sqrt(large)  # the product may overflow
    return np.where(size > _LARGE, far, near)


def _grown(order: int, x: Array) -> Array:
    return _scaled(order, x) * np.exp(np.abs(x))


def _odd(values: Array, x: Array) -> Array:
    return np.where(x < 0, -values, values)


def _kernel(name: str, values: Any) -> Any:  # noqa: ANN401 - functions of one array
    """A forward function of real numbers, computed in double precision."""

    def forward(x: Array) -> Array:
        x = as_floating(x)
        check_kinds(name, "f", x)
        return values(x.astype(np.float64)).astype(x.dtype)

    forward.__name__ = name.partition("_")[0]
    forward.__doc__ = "A modified Bessel function of the first kind."
    return forward


# --- ops --------------------------------------------------------------------------


def _i1_slope(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """By the recurrence, which has a limit where `x` is 0."""
    is_tiny, safe = _tiny(x)
    return grad * where(is_tiny, 0.5, i0(safe) - result / safe)


def _i1e_slope(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    is_tiny, safe = _tiny(x)
    slope = i0e(safe) - result * (sign(safe) + 1 / safe)
    return grad * where(is_tiny, 0.5, slope)


def _tiny(x: Gradient) -> tuple[Array, Gradient]:
    """Return a mask of divisors that are too small, and `x` with those replaced."""
    array = raw(x)
    is_tiny = ~(np.abs(array) > np.finfo(array.dtype).eps)
    return is_tiny, where(is_tiny, 1.0, x)


i0: Op = unary(
    "I0Backward0",
    _kernel("i0_vml_cpu", lambda x: _grown(0, x)),
    lambda grad, x: grad * i1(x),
)
i0e: Op = unary(
    "SpecialI0EBackward0",
    _kernel("i0e_cpu", lambda x: _scaled(0, x)),
    lambda grad, x, result: grad * (i1e(x) - sign(x) * result),
)
i1: Op = unary(
    "SpecialI1Backward0",
    _kernel("i1_cpu", lambda x: _odd(_grown(1, x), x)),
    _i1_slope,
)
i1e: Op = unary(
    "SpecialI1EBackward0",
    _kernel("i1e_cpu", lambda x: _odd(_scaled(1, x), x)),
    _i1e_slope,
)


PUBLIC = [
    *names("gv.f gv.f_ x.f x.f_", i0),
    *names("special.f(out=)", i0, i0e, i1, i1e),
]
