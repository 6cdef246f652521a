"""Selection among elements: by a condition, by size, or by replacement."""

from typing import Any, overload

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name
from gradviz.ops.conventions.promotion import (
    Operand,
    Scalar,
    check_fits,
    promote_all,
    python_number,
)
from gradviz.ops.conventions.refusal import check_shapes, check_tensors
from gradviz.ops.dispatch.differentiable import Op, binary, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.choosing import choose
from gradviz.ops.variables.variable import Value, raw, variable, zeros_like

# --- by a condition ---------------------------------------------------------------


@differentiable(
    "WhereBackward0",
    arrays=("condition",),
    y=lambda grad, condition: _where(condition, 0.0, grad),
    x=lambda grad, condition: _where(condition, grad, 0.0),
)
def _where(condition: Array, x: Operand, y: Operand) -> Array:
    x, y = promote_all(x, y)
    check_shapes(condition, x, y)
    return choose(condition, x, y)


@differentiable(
    "MaskedFillBackward0",
    arrays=("mask",),
    x=lambda grad, mask: _masked_fill_number(grad, mask, 0),
)
def _masked_fill_number(x: Array, mask: Array, value: Scalar) -> Array:
    check_shapes(mask, x)
    return choose(mask, np.asarray(value, x.dtype), x)


@differentiable(
    "MaskedFillBackward1",
    arrays=("mask",),
    x=lambda grad, mask: _masked_fill_number(grad, mask, 0),
    value=lambda grad, mask: _where(mask, grad, 0.0),
)
def _masked_fill_tensor(x: Array, mask: Array, value: Array) -> Array:
    check_shapes(mask, x)
    return choose(mask, value.astype(x.dtype, copy=False), x)


@overload
def where(condition: Value) -> tuple[Value, ...]: ...
@overload
def where(condition: Value, input: Operand, other: Operand) -> Value: ...
def where(condition: Value, input: Operand = None, other: Operand = None) -> Value:
    """Elements of `input` where `condition` holds, of `other` elsewhere.

    Args:
        condition: Booleans.
        input: A tensor or a number.
        other: A tensor or a number.

    Returns:
        The elements; given the condition only, the indices where it holds, a tensor
        for each dimension.

    Raises:
        RuntimeError: The condition has no booleans.
        TypeError: Only one of `input` and `other` was given.
    """
    dtype = getattr(raw(condition), "dtype", None)
    if (
        dtype is not None and input is other is None
    ):  # any numbers: where they are not 0
        return tuple(map(variable, np.nonzero(raw(condition))))
    if dtype is None or dtype not in (np.bool_, np.uint8):
        name = type(condition).__name__ if dtype is None else scalar_type_name(dtype)
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {name}"
        )
    if input is None or other is None:
        raise TypeError(
            "where() received an invalid combination of arguments: expected a "
            "condition alone, or with both input and other"
        )
    return _where(condition, input, other)


def masked_fill(input: Value, mask: Value, value: Operand) -> Value:
    """`input` with `value` where `mask` holds.

    Args:
        input: A tensor, whose dtype the result has.
        mask: Booleans that broadcast with it.
        value: A number or a 0-d tensor.

    Raises:
        RuntimeError: The mask has no booleans, or the value has dimensions or cannot
            be an element of `input`.
    """
    value = python_number(value)
    dtype = raw(mask).dtype
    if dtype.kind != "b":
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{cpp_name(dtype)}"
        )
    if not hasattr(value, "dtype"):
        check_fits(value, raw(input).dtype)
        return _masked_fill_number(input, mask, value)
    if raw(value).ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {raw(value).ndim} dimension(s)."
        )
    return _masked_fill_tensor(input, mask, value)


# --- by size ----------------------------------------------------------------------


def _larger(grad: Gradient, x: Gradient, y: Gradient) -> Gradient:
    """The part of a gradient that goes to `x` as the larger one, half if equal."""
    x, y = raw(x), raw(y)
    share = where(x == y, grad / 2, grad)
    return _masked_fill_number(share, x < y, 0)


def _refusing_complex(name: str, function: np.ufunc) -> Any:  # noqa: ANN401 - a function
    def forward(x: Array, y: Array) -> Array:
        check_tensors(name, input=x, other=y)
        if x.dtype.kind == "c" or y.dtype.kind == "c":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        return function(x, y)

    forward.__name__ = name
    forward.__doc__ = f"``numpy.{name}``."
    return forward


maximum: Op = binary(
    "MaximumBackward0",
    _refusing_complex("maximum", np.maximum),
    x=_larger,
    y=lambda grad, x, y: _larger(grad, y, x),
)
minimum: Op = binary(
    "MinimumBackward0",
    _refusing_complex("minimum", np.minimum),
    x=lambda grad, x, y: _larger(grad, y, x),
    y=_larger,
)


def _first_of_max(x: Gradient, y: Gradient) -> Array:
    x, y = raw(x), raw(y)
    return np.logical_or(x >= y, np.isnan(y))


def _first_of_min(x: Gradient, y: Gradient) -> Array:
    x, y = raw(x), raw(y)
    return np.logical_or(x <= y, np.isnan(y))


fmax: Op = binary(
    "FmaxBackward0",
    _refusing_complex("fmax", np.fmax),
    x=lambda grad, x, y: _masked_fill_number(grad, ~_first_of_max(x, y), 0),
    y=lambda grad, x, y: _masked_fill_number(grad, _first_of_max(x, y), 0),
)
fmin: Op = binary(
    "FminBackward0",
    _refusing_complex("fmin", np.fmin),
    x=lambda grad, x, y: _masked_fill_number(grad, ~_first_of_min(x, y), 0),
    y=lambda grad, x, y: _masked_fill_number(grad, _first_of_min(x, y), 0),
)

# --- within limits ----------------------------------------------------------------


def _within(x: Gradient, minimum: Operand | None, maximum: Operand | None) -> Array:
    x, minimum, maximum = raw(x), raw(minimum), raw(maximum)
    if minimum is None:
        return x <= maximum
    return x >= minimum if maximum is None else (x >= minimum) & (x <= maximum)


def _below(x: Gradient, minimum: Operand, maximum: Operand | None) -> Array:
    """Return where `clamp` returns its minimum."""
    x, minimum, maximum = raw(x), raw(minimum), raw(maximum)
    below = x < minimum
    return below if maximum is None else below & (minimum < maximum)


def _above(x: Gradient, minimum: Operand | None, maximum: Operand) -> Array:
    """Return where `clamp` returns its maximum."""
    x, minimum, maximum = raw(x), raw(minimum), raw(maximum)
    above = x > maximum
    return above if minimum is None else above | (maximum < minimum)


def _clip(x: Array, minimum: Operand | None, maximum: Operand | None) -> Array:
    x, minimum, maximum = promote_all(x, minimum, maximum)
    if x.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    # Not numpy.clip: where the limits cross, the maximum counts, NaN or not.
    if minimum is not None:
        x = np.maximum(x, minimum)
    return x if maximum is None else np.minimum(x, maximum)


_clamp_numbers = differentiable(
    "ClampBackward1",
    x=lambda grad, x, minimum, maximum: where(_within(x, minimum, maximum), grad, 0.0),
)(_clip)

_clamp_tensors = differentiable(
    "ClampBackward0",
    x=lambda grad, x, minimum, maximum: where(_within(x, minimum, maximum), grad, 0.0),
    minimum=lambda grad, x, minimum, maximum: where(
        _below(x, minimum, maximum), grad, 0.0
    ),
    maximum=lambda grad, x, minimum, maximum: where(
        _above(x, minimum, maximum), grad, 0.0
    ),
)(_clip)


@differentiable(
    "ClampMinBackward0", x=lambda grad, x, low: where(_within(x, low, None), grad, 0.0)
)
def _clamp_min_number(x: Array, low: Scalar) -> Array:
    return _clip(x, low, None)


@differentiable(
    "ClampMinBackward1",
    x=lambda grad, x, low: where(_within(x, low, None), grad, 0.0),
    low=lambda grad, x, low: where(_below(x, low, None), grad, 0.0),
)
def _clamp_min_tensor(x: Array, low: Array) -> Array:
    return _clip(x, low, None)


@differentiable(
    "ClampMaxBackward0",
    x=lambda grad, x, high: where(_within(x, None, high), grad, 0.0),
)
def _clamp_max_number(x: Array, high: Scalar) -> Array:
    return _clip(x, None, high)


@differentiable(
    "ClampMaxBackward1",
    x=lambda grad, x, high: where(_within(x, None, high), grad, 0.0),
    high=lambda grad, x, high: where(_above(x, None, high), grad, 0.0),
)
def _clamp_max_tensor(x: Array, high: Array) -> Array:
    return _clip(x, None, high)


def clamp(input: Value, min: Operand = None, max: Operand = None) -> Value:
    """Elements limited to ``[min, max]``; both limits numbers, or both tensors.

    Raises:
        RuntimeError: Neither limit was given.
    """
    if min is None and max is None:
        raise RuntimeError(
            "torch.clamp: At least one of 'min' or 'max' must not be None"
        )
    if hasattr(min, "dtype") or hasattr(max, "dtype"):
        min, max = python_number(min), python_number(max)
        if hasattr(min, "dtype") or hasattr(max, "dtype"):
            return _clamp_tensors(input, min, max)
    return _clamp_numbers(input, min, max)


def clamp_min(input: Value, min: Operand) -> Value:
    """Elements of at least `min`, a number or a tensor."""
    if hasattr(min, "dtype") and not isinstance(min, np.generic):
        return _clamp_min_tensor(input, min)
    return _clamp_min_number(input, min)


def clamp_max(input: Value, max: Operand) -> Value:
    """Elements of at most `max`, a number or a tensor."""
    if hasattr(max, "dtype") and not isinstance(max, np.generic):
        return _clamp_max_tensor(input, max)
    return _clamp_max_number(input, max)


# --- replacements -----------------------------------------------------------------


@differentiable("NanToNumBackward0", x=lambda grad, x: grad * np.isfinite(raw(x)))
def _nan_to_num(
    x: Array, nan: float | None, posinf: float | None, neginf: float | None
) -> Array:
    if x.dtype.kind not in "fc":
        return x.copy()
    return np.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


def nan_to_num(
    input: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    """Elements that are no finite numbers replaced: by 0, the largest, the smallest."""
    return _nan_to_num(input, nan, posinf, neginf)


@differentiable(
    "ThresholdBackwardBackward0",
    x=lambda grad, y, limit: threshold_backward(grad, y, limit),
    y=lambda grad: zeros_like(grad),
)
def threshold_backward(x: Array, y: Array, limit: Scalar) -> Array:
    """`x` where `y` is above a limit or no number, 0 elsewhere."""
    # Not a product: an infinite gradient of a closed unit is 0, not NaN.
    return choose(y <= limit, x.dtype.type(0), x)


def _above_limit(x: Array, limit: Scalar, value: Scalar) -> Array:
    return choose(x <= limit, np.asarray(value, x.dtype), x)


_threshold = differentiable(
    "ThresholdBackward0",
    x=lambda grad, x, limit: threshold_backward(grad, x, limit),
)(_above_limit)
threshold_in_place = differentiable(
    "ThresholdBackward1",
    x=lambda grad, x, limit: threshold_backward(grad, x, limit),
)(_above_limit)


def threshold(input: Value, threshold: Scalar, value: Scalar) -> Value:
    """Elements above `threshold`, and `value` in place of the others."""
    return _threshold(input, threshold, value)


PUBLIC = [
    *names("gv.f x.f x.f_", masked_fill),
    *names("gv.f(out=)", threshold, where),
    *names("gv.f(out=) gv.f_ x.f x.f_", clamp, clamp_max, clamp_min, nan_to_num),
    *names("gv.f(out=) gv.f_ x.f x.f_", clip=clamp),
    *names("gv.f(out=) x.f np.f", fmax, fmin, maximum, minimum),
    *names("gv.f_ F.f_", threshold=threshold_in_place),
    *names("np.f(axis=)", where, clip=clamp),
]
