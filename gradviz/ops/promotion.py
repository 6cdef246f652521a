"""Which dtype an op computes in, by PyTorch's rules where NumPy's differ.

NumPy lets an array of integers and one of float32 meet in float64, and treats a 0-d
array as any other. PyTorch stays in the dtype of the array with dimensions unless the
other is of a higher kind (bool < integer < float < complex), and turns integers into
the default dtype where floats are needed.
Source: torch.result_type; aten/src/ATen/native/TypeProperties.cpp.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.backends.base import Array

#: What is accepted as a dtype: NumPy's, its scalar types, Python's number types.
DTypeLike: TypeAlias = Any

#: An array or a Python number.
Operand: TypeAlias = Any

_KINDS: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_PYTHON_SCALARS: Final = frozenset({bool, int, float, complex})

_default_dtype: np.dtype[Any] = np.dtype(np.float32)


def get_default_dtype() -> np.dtype[Any]:
    """The dtype of Python floats: float32 unless it was set."""
    return _default_dtype


def set_default_dtype(dtype: DTypeLike) -> None:
    """Make tensors of Python floats have this dtype.

    Raises:
        TypeError: It is no floating-point dtype.
    """
    global _default_dtype
    if np.dtype(dtype).kind != "f":
        raise TypeError(f"only floating-point types are supported, got {dtype}")
    _default_dtype = np.dtype(dtype)


def as_floating(array: Array) -> Array:
    """`array` itself if it has floats, else a copy in the default dtype."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.kind in "fc":
        return array
    return array.astype(_default_dtype)


def operand(value: Operand) -> Operand:
    """What stands beside a tensor in an op: an array or a Python number.

    A NumPy scalar becomes a Python number, which does not widen the other side.

    Raises:
        TypeError: It is neither.
    """
    if type(value) in _PYTHON_SCALARS or isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "__array_function__"):
        return value
    raise TypeError(
        f"expected a tensor, an array or a number beside a tensor, but got "
        f"{type(value).__name__}; convert it with gradviz.tensor(...)"
    )


def promote(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Two operands in the dtype in which PyTorch would combine them."""
    if type(a) in _PYTHON_SCALARS:
        return a, _beside_scalar(b, a)
    if type(b) in _PYTHON_SCALARS:
        return _beside_scalar(a, b), b
    dtype = result_dtype(a, b)
    return (
        a if a.dtype == dtype else a.astype(dtype),
        b if b.dtype == dtype else b.astype(dtype),
    )


def result_dtype(a: Array, b: Array) -> np.dtype[Any]:
    """The dtype in which two arrays meet."""
    if (a.ndim == 0) != (b.ndim == 0):
        dimensioned, scalar = (a, b) if b.ndim == 0 else (b, a)
        if _KINDS[scalar.dtype.kind] <= _KINDS[dimensioned.dtype.kind]:
            return dimensioned.dtype
    lower, higher = sorted((a.dtype, b.dtype), key=lambda dtype: _KINDS[dtype.kind])
    if _KINDS[lower.kind] < _KINDS[higher.kind] == _KINDS["f"]:
        return higher
    return np.promote_types(lower, higher)


def _beside_scalar(array: Array, scalar: complex) -> Array:
    # NumPy 2 does the rest: a Python number never widens an array of its own kind.
    return as_floating(array) if type(scalar) is float else array
