"""Sums, products, quotients and remainders."""

from typing import Final, Literal

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dtype_names import cpp_name
from gradviz.ops.conventions.memory_layout import laid_out_like
from gradviz.ops.conventions.promotion import (
    Operand,
    Scalar,
    as_floating,
    number_beside,
    operand,
    promote,
    promote_all,
    python_number,
    result_dtype,
)
from gradviz.ops.conventions.refusal import (
    check_kinds,
    check_shapes,
    without_derivative,
)
from gradviz.ops.dispatch.differentiable import binary, differentiable, unary
from gradviz.ops.dispatch.plan import IN_FORMULA
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise import scalar_arithmetic
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.variables.variable import Value, Variable, raw, variable, zeros_like

#: Rounding of a quotient to an integer.
RoundingMode = Literal["floor", "trunc"] | None

_ONE_BOOL: Final = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
    "trying to invert a mask, use the `~` or `logical_not()` operator instead."
)
_TWO_BOOLS: Final = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
    "`^` or `logical_xor()` operator instead."
)

# --- sums and products ------------------------------------------------------------


# Called by operators: without the arguments of `add` and `div`, and faster.
plus = binary(
    "AddBackward0",
    np.add,
    x=lambda grad: grad,
    y=lambda grad: grad,
    with_number=scalar_arithmetic.plus,
)
_sub = binary(
    "SubBackward0",
    np.subtract,
    x=lambda grad: grad,
    y=lambda grad: -grad,
    with_number=scalar_arithmetic.minus,
)


def _factor_gradient(grad: Gradient, y: Operand) -> Gradient:
    # A number is a tensor to PyTorch here, as in the forward.
    if type(grad) is np.ndarray:
        return grad * number_beside(grad, conj(y))
    return _scaled(grad, conj(y))


mul = binary(
    "MulBackward0",
    np.multiply,
    x=_factor_gradient,
    y=lambda grad, x: grad * conj(x),
    with_number=scalar_arithmetic.times,
)


_scaled = binary(
    "MulBackward0", np.multiply, x=_factor_gradient, y=lambda grad, x: grad * conj(x)
)


@differentiable(
    "AddBackward0",
    x=lambda grad: grad,
    y=lambda grad, alpha: grad * conj(alpha),
)
def _add_multiple(x: Array, y: Operand, alpha: Scalar) -> Array:
    _check_alpha(alpha, result_dtype(x, y))
    x, y = promote(x, y)
    return x + _multiple(alpha, y)


@differentiable(
    "SubBackward0",
    x=lambda grad: grad,
    y=lambda grad, alpha: -grad * conj(alpha),
)
def _sub_multiple(x: Array, y: Operand, alpha: Scalar) -> Array:
    _check_alpha(alpha, result_dtype(x, y))
    x, y = promote(x, y)
    return x - _multiple(alpha, y)


@differentiable(
    "RsubBackward1",
    x=lambda grad, alpha: -grad if alpha == 1 else -grad * conj(alpha),
)
def _subtract_from_number(x: Array, number: Scalar, alpha: Scalar) -> Array:
    _check_alpha(alpha, result_dtype(x, number))
    number, x = promote(number, x)
    return number - _multiple(alpha, x)


@differentiable(
    "RsubBackward0",
    x=lambda grad, alpha: -grad if alpha == 1 else -grad * conj(alpha),
    y=lambda grad: grad,
)
def _subtract_from(x: Array, y: Array, alpha: Scalar) -> Array:
    _check_alpha(alpha, result_dtype(x, y))
    y, x = promote(y, x)
    return y - _multiple(alpha, x)


def _multiple(alpha: Scalar, x: Operand) -> Operand:
    if alpha == 1:
        return x
    if not hasattr(x, "dtype"):
        return alpha * x
    alpha, x = promote(alpha, x)
    return np.logical_and(alpha, x) if isinstance(alpha, bool) else alpha * x


def _check_bools(input: Value, other: Value) -> None:
    kinds = [getattr(getattr(one, "dtype", None), "kind", "") for one in (input, other)]
    if "b" in kinds:
        raise RuntimeError(_TWO_BOOLS if kinds == ["b", "b"] else _ONE_BOOL)


def _check_alpha(alpha: Scalar, dtype: np.dtype[np.generic]) -> None:
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and dtype.kind not in "fc":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point "
            "number."
        )
    if isinstance(alpha, complex) and dtype.kind != "c":
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex "
            "number."
        )


@differentiable("NegBackward0", x=lambda grad: -grad)
def neg(x: Array) -> Array:
    """The elements with the other sign.

    Raises:
        RuntimeError: They are booleans.
    """
    try:
        return np.negative(x)
    except TypeError as error:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        ) from error


reciprocal = unary(
    "ReciprocalBackward0",
    np.reciprocal,
    lambda grad, result: _times_negative(grad, result * result),
)


def add(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Value:
    """``input + alpha * other``."""
    return plus(input, other) if alpha == 1 else _add_multiple(input, other, alpha)


def sub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Value:
    """``input - alpha * other``.

    Raises:
        RuntimeError: One has booleans.
    """
    _check_bools(input, other)
    return _sub(input, other) if alpha == 1 else _sub_multiple(input, other, alpha)


def rsub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Value:
    """``other - alpha * input``.

    Raises:
        RuntimeError: One has booleans.
    """
    _check_bools(input, other)
    if not isinstance(other, Variable):
        other = operand(other)
    if hasattr(other, "dtype"):
        return _subtract_from(input, other, alpha)
    if IN_FORMULA.get():
        return taken_from(input, other)
    return _subtract_from_number(input, other, alpha)


def taken_from(x: Value, number: Scalar) -> Value:
    """``number - x`` as PyTorch's composite functions record it."""
    return _sub(variable(np.full_like(raw(x), number, shape=())), x)


def positive(input: Value) -> Value:
    """The tensor itself.

    Raises:
        RuntimeError: It has booleans.
    """
    if raw(input).dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# --- sums of products -------------------------------------------------------------


@differentiable(
    "AddcmulBackward0",
    x=lambda grad: grad,
    y=lambda grad, z, value: grad * conj(z * value),
    z=lambda grad, y, value: grad * conj(y * value),
)
def _addcmul(x: Array, y: Array, z: Array, value: Scalar) -> Array:
    x, y, z = promote_all(x, y, z)
    return laid_out_like(x + value * y * z, x, y, z)


@differentiable(
    "AddcdivBackward0",
    x=lambda grad: grad,
    y=lambda grad, z, value: grad * conj(value / z),
    z=lambda grad, y, z, value: _times_negative(grad, _over_square(y, z, value)),
)
def _addcdiv(x: Array, y: Array, z: Array, value: Scalar) -> Array:
    if y.dtype.kind not in "fc" and z.dtype.kind not in "fc":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  "
            "release addcdiv will perform a true division of tensor1 and tensor2. The "
            "historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
            "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv "
            "behavior is just the latter implementation: (input + value * tensor1 / "
            "tensor2), for all dtypes."
        )
    x, y, z = promote_all(x, y, z)
    return laid_out_like(x + value * y / z, x, y, z)


def _over_square(x: Gradient, y: Gradient, value: Scalar) -> Gradient:
    square = y * y  # first, as in PyTorch
    return value * x / square


def addcmul(
    input: Value, tensor1: Value, tensor2: Value, *, value: Scalar = 1
) -> Value:
    """``input + value * tensor1 * tensor2``."""
    return _addcmul(input, tensor1, tensor2, value)


def addcdiv(
    input: Value, tensor1: Value, tensor2: Value, *, value: Scalar = 1
) -> Value:
    """``input + value * tensor1 / tensor2``.

    Raises:
        RuntimeError: Both tensors have integers.
    """
    return _addcdiv(input, tensor1, tensor2, value)


def _between(x: Array, y: Array, weight: Operand) -> Array:
    # From the nearer end, so that both ends are met exactly.
    check_shapes(x, y, weight)
    near = np.abs(weight) < 0.5
    result = np.where(near, x + weight * (y - x), y - (y - x) * (1 - weight))
    return laid_out_like(result, x, y, weight)


@differentiable(
    "LerpBackward0",
    y=lambda grad, weight: grad * conj(weight),
    x=lambda grad, weight: grad * conj(1 - weight),
)
def _lerp_number(x: Array, y: Array, weight: Scalar) -> Array:
    _check_same_dtypes(x, y)
    return _between(x, y, weight)


@differentiable(
    "LerpBackward1",
    y=lambda grad, weight: grad * conj(weight),
    x=lambda grad, weight: grad * conj(1 - weight),
    weight=lambda grad, x, y: grad * conj(y - x),
)
def _lerp_tensor(x: Array, y: Array, weight: Array) -> Array:
    _check_same_dtypes(x, y, weight)
    return _between(x, y, weight)


def _check_same_dtypes(x: Array, *others: Array) -> None:
    for name, one in zip(("end", "weight"), others, strict=False):
        if one.dtype != x.dtype:
            raise RuntimeError(
                f"expected dtype {cpp_name(x.dtype)} for `{name}` but got dtype "
                f"{cpp_name(one.dtype)}"
            )


def lerp(input: Value, end: Value, weight: Operand) -> Value:
    """``input + weight * (end - input)``, for a weight that is a number or a tensor."""
    weight = python_number(weight)
    if hasattr(weight, "dtype"):
        return _lerp_tensor(input, end, weight)
    return _lerp_number(input, end, weight)


# --- quotients --------------------------------------------------------------------


def _true_divide(x: Array, y: Array) -> Array:
    """Quotients, of integers in the default dtype."""
    return np.true_divide(as_floating(x), as_floating(y))


def _dividend_gradient(grad: Gradient, y: Operand) -> Gradient:
    return grad / conj(y) if type(grad) is np.ndarray else _divided(grad, conj(y))


quotient = binary(
    "DivBackward0",
    _true_divide,
    x=_dividend_gradient,
    y=lambda grad, x, y: _times_negative(grad, (x / y) / y),
    with_number=scalar_arithmetic.over,
)


_divided = binary(
    "DivBackward0",
    _true_divide,
    x=_dividend_gradient,
    y=lambda grad, x, y: _times_negative(grad, (x / y) / y),
)


def _times_negative(grad: Gradient, slope: Gradient) -> Gradient:
    """``-grad * conj(slope)``; in PyTorch's C++ the slope is computed first."""
    return -grad * conj(slope)


@differentiable(
    "DivBackward2",
    x=lambda grad: zeros_like(grad),
    y=lambda grad: zeros_like(grad),
)
def _divide_rounded(x: Array, y: Operand, mode: RoundingMode) -> Array:
    x, y = _for_rounding(f"div_{mode}_cpu", x, y)
    if mode == "floor":
        return np.floor_divide(x, y)
    if x.dtype.kind in "iu":
        floors = np.floor_divide(x, y)
        return floors + ((floors < 0) & (floors * y != x))
    return np.trunc(np.true_divide(x, y))


def _for_rounding(kernel: str, x: Array, y: Operand) -> list[Array]:
    x, y = promote_all(x, y)
    check_kinds(kernel, "iuf", x)
    if x.dtype.kind in "iu":
        check_elements(f"{kernel}: check", _check_divisor, y)
    return [x, y]


def _check_divisor(y: Operand) -> None:
    if np.any(y == 0):
        raise RuntimeError("ZeroDivisionError")


def div(input: Operand, other: Operand, *, rounding_mode: RoundingMode = None) -> Value:
    """Quotients; of integers they are floats, unless they are rounded.

    Args:
        input: Tensor that is divided.
        other: The divisor, a tensor or a number.
        rounding_mode: "floor" rounds down, "trunc" towards zero.

    Raises:
        RuntimeError: Another rounding mode, or an integer divided by 0.
    """
    if rounding_mode is None:
        return quotient(input, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
            f"found '{rounding_mode}'"
        )
    return _divide_rounded(input, other, rounding_mode)


def reflected_div(input: Operand, other: Operand) -> Value:
    """``other / input``: PyTorch's reflected operator scales a reciprocal."""
    if IN_FORMULA.get() and not hasattr(other, "dtype"):
        return quotient(variable(np.full_like(raw(input), other, shape=())), input)
    return mul(reciprocal(input), other)


@differentiable(
    "NotImplemented",
    x=without_derivative("floor_divide"),
    y=without_derivative("floor_divide"),
)
def _floors(x: Array, y: Array) -> Array:
    return np.floor_divide(*_for_rounding("div_floor_cpu", x, y))


@differentiable("NotImplemented", x=without_derivative("floor_divide"))
def _floors_by_number(x: Array, divisor: Scalar) -> Array:
    return np.floor_divide(*_for_rounding("div_floor_cpu", x, divisor))


def floor_divide(input: Operand, other: Operand) -> Value:
    """Quotients rounded down; they have no gradient, as in PyTorch.

    Raises:
        RuntimeError: An integer is divided by 0.
    """
    if not isinstance(other, Variable):
        other = operand(other)
    if isinstance(other, (int, float)):
        return _floors_by_number(input, other)
    return _floors(input, other)


# --- what division leaves ---------------------------------------------------------


def _remains(x: Array, y: Array) -> Array:
    return np.remainder(*_for_rounding("remainder_cpu", x, y))


def _truncated_remains(x: Array, y: Array) -> Array:
    return np.fmod(*_for_rounding("fmod_cpu", x, y))


@differentiable("RemainderBackward0", x=lambda grad: grad)
def _remainder_of_number(x: Array, divisor: Scalar) -> Array:
    return _remains(x, divisor)


_remainder = binary(
    "RemainderBackward1",
    _remains,
    x=lambda grad: grad,
    y=lambda grad, x, y: -grad * np.floor_divide(raw(x), raw(y)),
)


@differentiable("FmodBackward0", x=lambda grad: grad)
def _fmod_of_number(x: Array, divisor: Scalar) -> Array:
    return _truncated_remains(x, divisor)


_fmod = binary(
    "FmodBackward1",
    _truncated_remains,
    x=lambda grad: grad,
    y=lambda grad, x, y: -grad * np.trunc(raw(x) / raw(y)),
)


def remainder(input: Operand, other: Operand) -> Value:
    """Return the remainder, with the sign of the divisor: Python's ``%``.

    Raises:
        RuntimeError: An integer is divided by 0.
    """
    if not isinstance(other, Variable):
        other = operand(other)
    if isinstance(other, (int, float)):
        return _remainder_of_number(input, other)
    return _remainder(input, other)


def fmod(input: Operand, other: Operand) -> Value:
    """Return the remainder, with the sign of the dividend: C's ``fmod``.

    Raises:
        RuntimeError: An integer is divided by 0.
    """
    if not isinstance(other, Variable):
        other = operand(other)
    if isinstance(other, (int, float)):
        return _fmod_of_number(input, other)
    return _fmod(input, other)


PUBLIC = [
    *names("gv.f", rsub),
    *names("gv.f x.f np.f", positive),
    *names("gv.f(out=) gv.f_ x.f x.f_", neg),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", reciprocal, negative=neg),
    *names("gv.f(out=) x.f x.f_", add, addcdiv, addcmul, div, floor_divide, fmod, lerp),
    *names("gv.f(out=) x.f x.f_", remainder, sub, divide=div, mul=mul, multiply=mul),
    *names("gv.f(out=) x.f x.f_", subtract=sub, true_divide=div),
]
