"""Complex numbers from parts or from size and angle, and their angles."""

from math import pi

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import as_floating, complex_dtype
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.rounding import abs, sgn
from gradviz.ops.elementwise.selection import where
from gradviz.ops.shapes.complex_parts import conj, imag, is_complex, real
from gradviz.ops.variables.variable import raw, zeros_like


@differentiable(
    "ComplexBackward0",
    real=lambda grad: _real(grad),
    imag=lambda grad: _imag(grad),
)
def complex(real: Array, imag: Array) -> Array:
    """Complex numbers of two parts.

    Raises:
        RuntimeError: The parts are no floats, or of different dtypes.
    """
    check_tensors("complex", real=real, imag=imag)
    _check_parts(real, imag)
    return real + imag * complex_dtype(real.dtype).type(1j)


@differentiable(
    "PolarBackward0",
    abs=lambda grad, result: _real(conj(grad) * sgn(result)),
    angle=lambda grad, result: _real(conj(grad) * (result * 1j)),
)
def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers of these sizes, at these angles in radians.

    Raises:
        RuntimeError: They are no floats, or of different dtypes.
    """
    check_tensors("polar", abs=abs, angle=angle)
    _check_parts(abs, angle)
    unit = complex_dtype(abs.dtype).type(1j)
    return abs * np.cos(angle) + abs * np.sin(angle) * unit


def _real(grad: Gradient) -> Gradient:
    return real(grad) if is_complex(grad) else grad


def _imag(grad: Gradient) -> Gradient:
    return imag(grad) if is_complex(grad) else zeros_like(grad)


def _check_parts(first: Array, second: Array) -> None:
    if first.dtype.kind != "f" or second.dtype.kind != "f":
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got "
            f"{scalar_type_name(first.dtype)} and {scalar_type_name(second.dtype)}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_type_name(first.dtype)} but got "
            f"scalar type {scalar_type_name(second.dtype)} for second argument"
        )


@differentiable("AngleBackward0", x=lambda grad, x: _angle_slope(grad, x))
def angle(x: Array) -> Array:
    """The angles of complex numbers; of real ones 0 or pi."""
    if x.dtype.kind == "c":
        return np.angle(x)
    x = as_floating(x)
    return np.where(np.isnan(x), x, np.where(x < 0, x.dtype.type(pi), x.dtype.type(0)))


def _angle_slope(grad: Gradient, x: Gradient) -> Gradient:
    if not is_complex(x):
        return zeros_like(grad)
    size = abs(x)
    return where(raw(x) == 0, 0.0, grad * ((x * 1j) / (size * size)))


PUBLIC = [
    *names("gv.f(out=)", complex, polar),
    *names("gv.f(out=) x.f", angle),
]
