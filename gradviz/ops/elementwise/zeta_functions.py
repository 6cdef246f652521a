"""Hurwitz's zeta function."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.wrapped_array import in_one_kernel
from gradviz.backends.base import Array
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import (
    Operand,
    Scalar,
    as_floating,
    promote_all,
    python_number,
)
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import binary, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value

#: From here on the asymptotic series is exact; smaller numbers are brought here.
LARGE: Final = 10

#: Below here `hurwitz` is not computed.
_SMALL: Final = -1000

#: Bernoulli's numbers B2, B4, ... over (2 k)!: the Euler-Maclaurin formula's terms.
EULER_MACLAURIN: Final = (
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


def hurwitz(s: Array | float, x: Array) -> Array:
    """Hurwitz's zeta function, the sum of ``(x + k) ** -s`` over k, for s > 1."""
    return in_one_kernel("zeta", _hurwitz, s, x)


def _hurwitz(s: Array | float, x: Array) -> Array:
    pole = (x <= 0) & (x == np.floor(x)) & np.isfinite(x)
    # Far below 0 too many terms count; PyTorch gives up there as well.
    x = np.where(pole, 1, np.where(x < _SMALL, np.nan, x))
    total = np.zeros_like(x)
    while np.any(small := x < LARGE):
        sign = np.where(x < 0, np.power(-1.0, s), 1)
        total = total + np.where(small, np.power(np.abs(x), -s) * sign, 0)
        x = np.where(small, x + 1, x)
    power = np.power(x, -s)
    total = total + np.power(x, 1 - s) / (s - 1) + power / 2
    factor = s
    for k, term in enumerate(EULER_MACLAURIN, 1):
        power = power / (x if k == 1 else x * x)
        total = total + term * factor * power
        factor = factor * ((s + 2 * k - 1) * (s + 2 * k))
    return np.where(pole, np.inf, total).astype(x.dtype)


def _zeta_values(s: Array, x: Array) -> Array:
    for one in (s, x):
        check_kinds("zeta_cpu", "biuf", one)
        if getattr(one, "dtype", None) == np.float16:
            name = scalar_type_name(one.dtype)
            raise NotImplementedError(f"\"zeta_cpu\" not implemented for '{name}'")
    s, x = as_floating(s), as_floating(x)
    dtype = np.result_type(s, x)
    s, x = s.astype(np.float64), x.astype(np.float64)
    inside = hurwitz(np.where(s > 1, s, 2), x)
    values = np.where(s == 1, np.inf, np.where(s > 1, inside, np.nan))
    return values.astype(dtype)


def without_named_derivative(name: str) -> Callable[[Any], Any]:
    """A formula for an input that there is no derivative by: backward raises.

    Args:
        name: PyTorch's name of the op, or of its input.
    """

    def formula(grad: Any) -> Any:  # noqa: ANN401 - it returns nothing
        del grad
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


_zeta = binary(
    "SpecialZetaBackward0",
    _zeta_values,
    x=without_named_derivative("zeta"),
    y=lambda grad, x, y: grad * -x * zeta(x + 1, y),
)


@differentiable(
    "SpecialZetaBackward1",
    y=lambda grad, y, number: grad * -number * zeta(number + 1, y),
)
def _zeta_of_number(y: Array, number: Scalar) -> Array:
    return _zeta_values(*promote_all(number, as_floating(y)))


@differentiable("SpecialZetaBackward2", x=without_named_derivative("zeta"))
def _zeta_by_number(x: Array, number: Scalar) -> Array:
    return _zeta_values(*promote_all(as_floating(x), number))


def zeta(input: Operand, other: Operand) -> Value:
    """The sum of ``(other + k) ** -input`` over all k >= 0; one may be a number."""
    input = python_number(input)
    other = python_number(other)
    if not hasattr(input, "dtype"):
        return _zeta_of_number(other, input)
    return (_zeta if hasattr(other, "dtype") else _zeta_by_number)(input, other)


PUBLIC = [*names("special.f(out=)", zeta)]
