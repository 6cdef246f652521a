"""Matrices: checks of linear algebra, and shared parts of its ops."""

from typing import Final

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.permutation import transpose
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, raw


class LinAlgError(RuntimeError):
    """A matrix is singular, or not positive-definite."""


#: Kernels of NumPy's LAPACK know these dtypes, and no others.
_LAPACK: Final = frozenset("fdFD")


def adjoint(x: Value) -> Value:
    """The conjugate transposes of matrices, the last two dimensions."""
    return conj(transpose(x, -2, -1))


def check_matrix(name: str, x: Array, called: str | None = "A") -> None:
    """Refuse anything but matrices.

    Raises:
        RuntimeError: It has less than two dimensions.
    """
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {f'{called} ' if called else ''}must have at "
            f"least 2 dimensions."
        )


def check_square(name: str, x: Array) -> None:
    """Refuse anything but square matrices.

    Raises:
        RuntimeError: They are not.
    """
    check_matrix(name, x)
    if x.shape[-2] != x.shape[-1]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are "
            f"{x.shape[-2]} by {x.shape[-1]} matrices"
        )


def check_floating(name: str, x: Array, kernel: str | None = None) -> None:
    """Refuse integers, and half precision.

    Args:
        name: Of the op.
        x: A matrix.
        kernel: PyTorch's name of what there is no half precision of; None where the
            op says so itself.

    Raises:
        RuntimeError: The dtype is neither a float nor complex, or is too narrow.
        NotImplementedError: It is too narrow, and PyTorch says so in this way.
    """
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_type_name(x.dtype)}"
        )
    if x.dtype.char not in _LAPACK:
        if kernel is None:
            raise RuntimeError(
                f"{name}: Low precision dtypes not supported. Got "
                f"{scalar_type_name(x.dtype)}"
            )
        raise not_implemented(kernel, x)


def not_implemented(kernel: str, x: Array) -> NotImplementedError:
    """PyTorch's words for a dtype that a kernel does not know."""
    return NotImplementedError(
        f"\"{kernel}\" not implemented for '{scalar_type_name(x.dtype)}'"
    )


def batch_element(shape: Shape, number: int) -> str:
    """Return an error's name for one matrix of several."""
    return f"(Batch element {number}): " if len(shape) > 2 else ""


def gaps(values: Value) -> Value:
    """``values[j] - values[i]`` at ``[i, j]``, a divisor: 1 on the diagonal."""
    array = raw(values)
    eye = beside(array, np.eye(array.shape[-1], dtype=array.dtype))
    return unsqueeze(values, -2) - unsqueeze(values, -1) + eye
