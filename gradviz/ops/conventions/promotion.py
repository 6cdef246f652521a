"""Type promotion: the dtype an op computes in, by PyTorch's rules where NumPy's differ.

NumPy lets an array of integers and one of float32 meet in float64, and treats a 0-d
array as any other. PyTorch stays in the dtype of the arrays with dimensions unless
another operand is of a higher kind (bool < integer < float < complex): first a 0-d
array may raise it, then a Python number. Integers become the default dtype where
floats are needed.
Source: aten/src/ATen/native/TypeProperties.cpp, result_type.
"""

from functools import reduce
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from numpy import generic, ndarray  # in one step: each op asks

from gradviz.backends.base import Array
from gradviz.ops.conventions.dtype_names import cpp_name
from gradviz.ops.conventions.refusal import check_shapes
from gradviz.ops.conventions.silence import quietly

#: Values accepted as a dtype: NumPy's, its scalar types, Python's number types.
DTypeLike: TypeAlias = npt.DTypeLike | None

#: A Python number.
Scalar: TypeAlias = bool | int | float | complex

#: An array or a Python number.
Operand: TypeAlias = Any

T = TypeVar("T")

_KINDS: Final = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_PYTHON_SCALARS: Final = frozenset({bool, int, float, complex})

#: NumPy makes each only once, in the order of bytes that is this machine's.
_SINGLE: Final = np.dtype(np.float32)
_DOUBLE: Final = np.dtype(np.float64)

#: Numbers as arrays without dimensions. NumPy makes one of each number that it meets,
#: which takes as long as to multiply a small array by it. Any thread, by atomic calls.
_KEPT: Final[dict[np.dtype[Any], dict[float, Any]]] = {_SINGLE: {}, _DOUBLE: {}}

#: Maximum number kept: those of a program, not those that it computes.
_MAX_KEPT: Final = 1000

_default_dtype: np.dtype[Any] = _SINGLE


class UnsupportedOperandError(TypeError):
    """Something stands beside a tensor that is not a tensor, array or number."""


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
        raise TypeError(
            f"only floating-point types are supported as the default type, got {dtype}"
        )
    _default_dtype = np.dtype(dtype)


def default_complex_dtype() -> np.dtype[Any]:
    """The dtype of Python's complex numbers: complex64 by default."""
    return complex_dtype(_default_dtype)


def complex_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype of a precision; of half precision the next better one."""
    return np.result_type(dtype, np.complex64)


def as_floating(array: Array) -> Array:
    """`array` itself if it has floats, else a copy in the default dtype."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype.kind in "fc":
        return array
    return array.astype(_default_dtype)


def operand(value: Operand) -> Operand:
    """Return an operand for a tensor's op: an array or a Python number.

    A NumPy scalar becomes a Python number, which does not widen the other side.

    Raises:
        UnsupportedOperandError: It is neither.
    """
    if type(value) in _PYTHON_SCALARS or isinstance(value, ndarray):
        return value
    if isinstance(value, generic):
        return value.item()
    if hasattr(value, "__array_function__"):
        return value
    if isinstance(value, (int, float, complex)):  # of a class derived from these
        return value
    raise UnsupportedOperandError(
        f"expected a tensor, an array or a number beside a tensor, but got "
        f"{type(value).__name__}; convert it with gradviz.tensor(...)"
    )


def python_number(value: T) -> T:
    """A NumPy scalar as the Python number that it holds; anything else as it is.

    Where PyTorch has a form of an op for numbers and one for tensors, it is a number.
    """
    if isinstance(value, generic):
        number: T = value.item()
        return number
    return value


def promote(a: Operand, b: Operand) -> tuple[Operand, Operand]:
    """Two operands in the dtype in which PyTorch would combine them."""
    if type(b) is float and type(a) is ndarray:
        known = a.dtype
        if known is _SINGLE or known is _DOUBLE:
            return a, b  # first: it is by far the most frequent
    if type(b) in _PYTHON_SCALARS and hasattr(a, "dtype"):
        return _beside_scalar(a, b), _fitting(b, a)
    if type(a) in _PYTHON_SCALARS and hasattr(b, "dtype"):
        return _fitting(a, b), _beside_scalar(b, a)
    dtype = result_dtype(a, b)
    return _cast(a, dtype), _cast(b, dtype)


def number_beside(array: Array, number: Operand) -> Operand:
    """Return a number in the form that NumPy multiplies float arrays by fastest.

    Args:
        array: A raw array.
        number: Number that stands beside it.

    Returns:
        An array without dimensions, of the dtype of `array`, which nobody may change;
        `number` itself if none is kept for it.
    """
    if type(number) is not float or type(array) is not ndarray:
        return number
    known = _KEPT.get(array.dtype)
    if known is None:
        return number
    kept = known.get(number)
    if kept is None:
        # 0.0 is the key of -0.0 as well, and NaN is the key of nothing.
        if number == 0 or number != number or len(known) >= _MAX_KEPT:  # noqa: PLR0124
            return number
        # Numbers that are too large become infinite, of which NumPy would warn.
        kept = known[number] = quietly(np.array, number, array.dtype)
        kept.flags.writeable = False
    return kept


def promote_all(*operands: Operand) -> list[Array]:
    """Any number of operands in the dtype in which PyTorch would combine them.

    Python numbers become 0-d arrays; None stays what it is.

    Raises:
        RuntimeError: Their shapes do not broadcast.
    """
    check_shapes(*operands)
    dtype = result_dtype(*(one for one in operands if one is not None))
    return [None if one is None else _cast(one, dtype) for one in operands]


def result_dtype(*operands: Operand) -> np.dtype[Any]:
    """The dtype in which arrays and Python numbers meet."""
    with_dims: list[np.dtype[Any]] = []
    without_dims: list[np.dtype[Any]] = []
    numbers: list[np.dtype[Any]] = []
    for one in operands:
        dtype = getattr(one, "dtype", None)
        if dtype is None:
            numbers.append(_number_dtype(one))
        else:
            (with_dims if one.ndim else without_dims).append(dtype)
    found = [
        reduce(_met, dtypes) for dtypes in (with_dims, without_dims, numbers) if dtypes
    ]
    return reduce(_raised, found)


def _met(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which two of the same standing meet."""
    lower, higher = sorted((a, b), key=lambda dtype: _KINDS[dtype.kind])
    if _KINDS[lower.kind] < 2 <= _KINDS[higher.kind]:
        return higher
    return np.promote_types(lower, higher)


def _raised(dtype: np.dtype[Any], by: np.dtype[Any]) -> np.dtype[Any]:
    """`dtype`, unless one of lower standing is of a higher kind."""
    if _KINDS[by.kind] <= _KINDS[dtype.kind]:
        return dtype
    if dtype.kind == "f":  # by a complex number, whose precision does not count
        return complex_dtype(dtype)
    return by


def _number_dtype(number: Scalar) -> np.dtype[Any]:
    if isinstance(number, bool):
        return np.dtype(np.bool_)
    if isinstance(number, int):
        return np.dtype(np.int64)
    return _default_dtype if isinstance(number, float) else default_complex_dtype()


def _cast(value: Operand, dtype: np.dtype[Any]) -> Array:
    if hasattr(value, "dtype"):
        return value if value.dtype == dtype else value.astype(dtype)
    check_fits(value, dtype)
    return np.asarray(value, dtype)


def check_fits(number: Scalar, dtype: np.dtype[Any]) -> None:
    """See that a Python number can be an element.

    Raises:
        RuntimeError: It is too large an integer, or complex where reals are.
    """
    too_large = dtype.kind in "iu" and not (
        np.iinfo(dtype).min <= number.real <= np.iinfo(dtype).max
    )
    if too_large or (isinstance(number, complex) and number.imag and dtype.kind != "c"):
        raise RuntimeError(
            f"value cannot be converted to type {cpp_name(dtype)} without overflow"
        )


def _beside_scalar(array: Array, scalar: Scalar) -> Array:
    # NumPy 2 does the rest: a Python number never widens an array of its own kind.
    if type(scalar) is float:
        return as_floating(array)
    if type(scalar) is complex and array.dtype.kind in "biu":
        return array.astype(default_complex_dtype())
    return array


def _fitting(scalar: Scalar, array: Array) -> Scalar:
    """An integer as an element of integers: PyTorch keeps its last bits."""
    if type(scalar) is int and array.dtype.kind in "iu":
        bits = 8 * array.dtype.itemsize
        low = 0 if array.dtype.kind == "u" else -(1 << (bits - 1))
        return (scalar - low) % (1 << bits) + low
    return scalar
