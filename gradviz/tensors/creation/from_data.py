"""Making tensors of data: numbers, lists, arrays, buffers."""

import numbers
from typing import Any, TypeAlias, Unpack

import numpy as np

from gradviz.backends.device import Device
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.variables.variable import Variable, raw
from gradviz.tensors.attributes.creation_options import OF_DATA, Options, check_options
from gradviz.tensors.creation.factories import make_default, make_like, placed
from gradviz.tensors.tensor import Tensor, make

#: Numbers, lists of them nested to any depth, arrays, tensors.
Data: TypeAlias = Any


def tensor(data: Data, **options: Unpack[Options]) -> Tensor:
    """A leaf with a copy of `data`.

    Python's floats become the default dtype (float32), its integers int64; an array
    keeps its dtype.

    Args:
        data: Numbers in nested lists, an array, or a tensor.
        **options: See `Options`.

    Raises:
        ValueError: The lists are not rectangular.
        TypeError: An element is text.
        RuntimeError: An element is not a number.
    """
    check_options("tensor", options, OF_DATA)
    return _copied(data, options)


def _copied(data: Data, options: Options) -> Tensor:
    if isinstance(data, Variable):
        return make_like(data.array.copy(), placed(options))
    array = _as_array(data)
    if _is_python(data):
        return make_default(array, options)
    return make_like(array, placed(options))


def as_tensor(
    data: Data,
    *,
    dtype: DTypeLike = None,
    device: Device | str | None = None,
) -> Tensor:
    """A tensor of `data`, sharing memory with an array of the right dtype.

    Args:
        data: As for `tensor`.
        dtype: Type of the elements.
        device: Device of the elements; see `Options`.
    """
    options: Options = {"dtype": dtype, "device": device}
    check_options("as_tensor", options, OF_DATA)
    if isinstance(data, Tensor):
        place = placed(options)["device"] or data.device
        return data.to(place, dtype=dtype)
    if isinstance(data, np.ndarray):
        return make_like(data, placed(options))
    return _copied(data, options)


def asarray(
    obj: Data,
    *,
    dtype: DTypeLike = None,
    device: Device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of `obj`, sharing memory with it where that is possible.

    Args:
        obj: As for `tensor`.
        dtype: Type of the elements.
        device: Device of the elements; see `Options`.
        copy: True if it always has memory of its own, False if it never has, None if
            only where it must.
        requires_grad: True if gradients are wanted. If not, it is outside the graph.

    Raises:
        ValueError: It cannot share memory, and may not have any of its own.
    """
    made = as_tensor(obj, dtype=dtype, device=device)
    shares = made is obj or (
        isinstance(obj, np.ndarray | Variable) and made.array is raw(obj)
    )
    if copy is False and not shares:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy and shares:
        made = made.clone()
    if requires_grad or made.requires_grad:
        made = made.detach()
    return made.requires_grad_(requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of `array`.

    Raises:
        TypeError: It is not an array.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    return make(array)


def from_dlpack(ext_tensor: Any) -> Tensor:  # noqa: ANN401 - of any library
    """A tensor that shares the memory of an array of another library, on the CPU."""
    return make(np.from_dlpack(ext_tensor))


def frombuffer(
    buffer: Any,  # noqa: ANN401 - any buffer
    *,
    dtype: DTypeLike,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor that shares the memory of a buffer.

    Args:
        buffer: The buffer.
        dtype: Of the elements in it.
        count: Number of elements; all if -1.
        offset: Number of bytes that lie before them.
        requires_grad: True if gradients are wanted.
    """
    array = np.frombuffer(buffer, np.dtype(dtype), count, offset)
    return make(array, requires_grad=requires_grad)


def _plain(data: Data) -> Data:
    """`data` with the tensors in its lists as lists and numbers."""
    if isinstance(data, Variable):
        return raw(data).tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(one) for one in data]
    return data


def _as_array(data: Data) -> np.ndarray:
    try:
        array = np.copy(_plain(data))
    except ValueError as error:
        raise _ragged(data, 0) or error from error
    if array.dtype.kind in "biufc":
        return array
    wrong = _not_a_number(data)
    if wrong is None or not isinstance(wrong, str):
        raise RuntimeError(f"Could not infer dtype of {type(wrong).__name__}")
    raise TypeError(f"new(): invalid data type '{type(wrong).__name__}'")


def _ragged(data: Data, dim: int) -> ValueError | None:
    """PyTorch's words for nested sequences of different lengths."""
    if not isinstance(data, list | tuple) or not data:
        return None
    first = data[0]
    for one in data[1:]:
        if isinstance(first, list | tuple) and len(one) != len(first):
            return ValueError(
                f"expected sequence of length {len(first)} at dim {dim + 1} "
                f"(got {len(one)})"
            )
    return next(filter(None, (_ragged(one, dim + 1) for one in data)), None)


def _not_a_number(data: Data) -> Data:
    """The first element that is none."""
    if isinstance(data, list | tuple):
        found = (_not_a_number(one) for one in data)
        return next((one for one in found if not isinstance(one, numbers.Number)), 0)
    return data


def _is_python(data: Data) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return not isinstance(data, (np.ndarray, np.generic))
