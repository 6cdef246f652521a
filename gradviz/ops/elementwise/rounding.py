"""Signs and sizes, and numbers cut to integers."""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.promotion import (
    Operand,
    as_floating,
    promote,
    python_number,
)
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, binary, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import where
from gradviz.ops.shapes.complex_parts import conj, is_complex, real
from gradviz.ops.variables.variable import Value, raw, zeros_like

# --- signs ------------------------------------------------------------------------


@differentiable("AbsBackward0", x=lambda grad, x: grad * sgn(x))
def abs(x: Array) -> Array:
    """Absolute values."""
    check_kinds("abs_cpu", "iufc", x)
    return np.abs(x)


def abs_in_place(x: Value) -> Value:
    """`abs` for elements that can hold the result.

    Raises:
        RuntimeError: They are complex.
    """
    if is_complex(x):
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs(x)


@differentiable("SignBackward0", x=lambda grad: zeros_like(grad))
def sign(x: Array) -> Array:
    """-1, 0 or 1.

    Raises:
        RuntimeError: The elements are complex.
    """
    if x.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. "
            "Please use torch.sgn instead."
        )
    return x.copy() if x.dtype.kind == "b" else _keeping_nan(np.sign(x))


def _keeping_nan(signs: Array) -> Array:
    return np.where(np.isnan(signs), 0, signs) if signs.dtype.kind == "f" else signs


@differentiable("SgnBackward0", x=lambda grad, x, result: _sgn_slope(grad, x, result))
def _sgn(x: Array) -> Array:
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _sgn_slope(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """The part of a gradient across the direction of `x`: along it nothing changes."""
    if not is_complex(x):
        return zeros_like(grad)
    across = (grad - real(grad * conj(result)) * result) / abs(x)
    return where(raw(x) == 0, 0.0, across)


def sgn(input: Value) -> Value:
    """`sign`, for complex elements ``x / abs(x)``, with 0 for 0."""
    return _sgn(input) if is_complex(input) else _real_sgn(input)


@differentiable("SgnBackward0", x=lambda grad: zeros_like(grad))
def _real_sgn(x: Array) -> Array:
    return x.copy() if x.dtype.kind == "b" else _keeping_nan(np.sign(x))


def _copysign(x: Array, y: Array) -> Array:
    check_kinds("copysign_cpu", "biuf", x)
    return np.copysign(as_floating(x), as_floating(y))


def _sign_ratio(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """The sign that `copysign` multiplies by; 0 for 0, which has none to change."""
    x = raw(x)
    ratio = np.where(x == 0, 0, raw(result) / np.where(x == 0, 1, x))
    return grad * ratio


_copysign_of_tensor: Op = binary(
    "CopysignBackward0",
    _copysign,
    x=_sign_ratio,
    y=lambda grad: zeros_like(grad),
)


@differentiable("CopysignBackward1", x=_sign_ratio)
def _copysign_of_number(x: Array, number: float) -> Array:
    return _copysign(*promote(x, float(number)))


def copysign(input: Value, other: Operand) -> Value:
    """The sizes of `input` with the signs of `other`, a tensor or a number."""
    other = python_number(other)
    if isinstance(other, (int, float)):
        return _copysign_of_number(input, other)
    return _copysign_of_tensor(input, other)


# --- rounding ---------------------------------------------------------------------


def _rounding(node: str, name: str, function: np.ufunc) -> Op:
    def forward(x: Array) -> Array:
        if x.dtype.kind == "c" and name != "round":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        check_kinds(f"{name}_vml_cpu", "iuf", x)
        return x.copy() if x.dtype.kind in "iu" else function(x)

    forward.__name__ = name
    forward.__doc__ = f"``numpy.{name}``; its gradient is 0."
    return differentiable(node, x=lambda grad: zeros_like(grad))(forward)


floor = _rounding("FloorBackward0", "floor", np.floor)
ceil = _rounding("CeilBackward0", "ceil", np.ceil)
trunc = _rounding("TruncBackward0", "trunc", np.trunc)
_round_to_integer = _rounding("RoundBackward0", "round", np.rint)


@differentiable("RoundBackward1", x=lambda grad: zeros_like(grad))
def _round_to_decimals(x: Array, decimals: int) -> Array:
    check_kinds("round_cpu", "f", x)
    if decimals < 0:
        factor = 10.0**-decimals
        return np.rint(x / factor) * factor
    factor = 10.0**decimals
    return np.rint(x * factor) / factor


def round(input: Value, *, decimals: int | None = None) -> Value:
    """The nearest integers, even ones of two; or that many digits after the point."""
    if decimals is None:
        return _round_to_integer(input)
    return _round_to_decimals(input, int(decimals))


@differentiable("FracBackward0", x=lambda grad: grad)
def frac(x: Array) -> Array:
    """Return the part that `trunc` removes."""
    check_kinds("frac_cpu", "f", x)
    return x - np.trunc(x)


PUBLIC = [
    *names("gv.f(out=) gv.f_ x.f x.f_", frac, round, fix=trunc),
    *names("gv.f(out=) gv.f_ x.f x.f_ np.f", ceil, floor, trunc),
    *names("gv.f(out=) x.f", abs),
    *names("gv.f(out=) x.f x.f_", sgn),
    *names("gv.f(out=) x.f x.f_ np.f", copysign, sign),
    *names("gv.f(out=) x.f np.f", absolute=abs),
    *names("gv.f_ x.f_", abs=abs_in_place),
    *names("x.f_", absolute=abs_in_place),
    *names("special.f(out=)", round),
    *names("np.f", rint=round),
]
