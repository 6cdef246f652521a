"""Comparisons and tests of elements, with boolean results."""

from collections.abc import Callable
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Operand, operand, result_dtype
from gradviz.ops.conventions.refusal import (
    check_kinds,
    check_shapes,
    check_tensors,
    without_derivative,
)
from gradviz.ops.conventions.silence import SILENT, put, setting
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, Variable, raw, variable

# --- of two tensors ---------------------------------------------------------------


def _comparison(name: str, function: np.ufunc, *, ordered: bool = False) -> Value:
    def compare(input: Operand, other: Operand) -> Value:
        x = input.array if isinstance(input, Variable) else operand(input)
        y = other.array if isinstance(other, Variable) else operand(other)
        if not (hasattr(x, "dtype") and x.dtype is getattr(y, "dtype", None)):
            x, y = _comparable(x, y)
        if ordered:
            check_kinds(f"{name}_cpu", "biuf", x, y)
        check_shapes(x, y)
        result = function(x, y)
        if isinstance(input, Variable) or isinstance(other, Variable):
            return variable(result)
        return result

    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = f"``numpy.{function.__name__}``, as a tensor of booleans."
    return compare


def _comparable(x: Operand, y: Operand) -> tuple[Operand, Operand]:
    """Both in one dtype, but for an integer that is too large for it."""
    dtype = result_dtype(x, y)
    return tuple(
        one.astype(dtype, copy=False) if hasattr(one, "dtype") else one
        for one in (x, y)
    )


eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal)
lt = _comparison("lt", np.less, ordered=True)
le = _comparison("le", np.less_equal, ordered=True)
gt = _comparison("gt", np.greater, ordered=True)
ge = _comparison("ge", np.greater_equal, ordered=True)


def isclose(
    input: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Return where ``|input - other| <= atol + rtol * |other|``.

    Raises:
        RuntimeError: The dtypes differ, or a tolerance is negative.
    """
    check_tensors("isclose", input=input, other=other)
    x, y = raw(input), raw(other)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"{scalar_type_name(x.dtype)} did not match {scalar_type_name(y.dtype)}"
        )
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    heard = setting()
    try:
        put(SILENT)  # of infinities that are equal
        return variable(_are_close(x, y, rtol, atol, equal_nan=equal_nan))
    finally:
        put(heard)


def _are_close(
    x: Array, y: Array, rtol: float, atol: float, *, equal_nan: bool
) -> Array:
    close = x == y
    if x.dtype.kind != "b" and (rtol or atol):
        allowed = atol + np.abs(rtol * y)
        error = np.abs(x - y)
        close |= np.isfinite(error) & (error <= allowed)
    if equal_nan and x.dtype.kind in "fc":
        close |= np.isnan(x) & np.isnan(y)
    return close


def allclose(
    input: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return whether `isclose` holds everywhere."""
    return bool(np.all(raw(isclose(input, other, rtol, atol, equal_nan))))


def equal(input: Value, other: Value) -> bool:
    """Return whether two tensors have the same shape and elements."""
    x, y = raw(input), raw(other)
    return x.shape == y.shape and bool(np.all(raw(eq(input, other))))


# --- of one tensor ----------------------------------------------------------------


def _question(name: str, ask: Callable[[Array], Array]) -> Value:
    def answer(input: Value) -> Value:
        result = ask(raw(input))
        return variable(result) if isinstance(input, Variable) else result

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = f"``numpy.{name}``, as a tensor of booleans."
    return answer


def _real_only(name: str, ask: Callable[[Array], Array]) -> Value:
    def checked(x: Array) -> Array:
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return ask(x)

    return _question(name, checked)


isnan = _question("isnan", np.isnan)
isinf = _question("isinf", np.isinf)
isfinite = _question("isfinite", np.isfinite)
isreal = _question("isreal", np.isreal)
isposinf = _real_only("isposinf", lambda x: np.isinf(x) & (x > 0))
isneginf = _real_only("isneginf", lambda x: np.isinf(x) & (x < 0))


def _signbit(x: Array) -> Array:
    if x.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(x) if x.dtype.kind == "f" else x < 0


signbit = _question("signbit", _signbit)

# --- logic ------------------------------------------------------------------------


def _logic(function: np.ufunc) -> Value:
    def combine(input: Value, other: Value) -> Value:
        check_shapes(raw(input), raw(other))
        return variable(function(raw(input), raw(other)))

    combine.__name__ = combine.__qualname__ = function.__name__
    combine.__doc__ = f"``numpy.{function.__name__}``; what is not 0 counts as true."
    return combine


logical_and: Final = _logic(np.logical_and)
logical_or: Final = _logic(np.logical_or)
logical_xor: Final = _logic(np.logical_xor)
logical_not: Final = _question("logical_not", np.logical_not)


# --- what returns numbers -----------------------------------------------------------


@differentiable(
    "NotImplemented",
    x=without_derivative("heaviside"),
    values=without_derivative("heaviside"),
)
def _heaviside(x: Array, values: Array) -> Array:
    if x.dtype.kind == "c" or values.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if x.dtype != values.dtype:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes."
        )
    check_shapes(x, values)
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


def heaviside(input: Value, values: Value) -> Value:
    """0 for negative elements, 1 for positive ones, `values` for zeros.

    Raises:
        RuntimeError: The dtypes differ, or are complex.
    """
    check_tensors("heaviside", input=input, values=values)
    return _heaviside(input, values)


PUBLIC = [
    *names("gv.f x.f", allclose, equal, isclose, isreal),
    *names("gv.f x.f np.f", isfinite, isinf, isnan),
    *names("gv.f(out=) x.f", isneginf, isposinf),
    *names("gv.f(out=) x.f x.f_", eq, ge, gt, le, lt, ne, greater=gt, greater_equal=ge),
    *names("gv.f(out=) x.f x.f_", less=lt, less_equal=le, not_equal=ne),
    *names("gv.f(out=) x.f x.f_ np.f", heaviside, logical_and, logical_not, logical_or),
    *names("gv.f(out=) x.f x.f_ np.f", logical_xor),
    *names("gv.f(out=) x.f np.f", signbit),
]
