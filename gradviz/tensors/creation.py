"""Making tensors: of data, of constants, of random numbers."""

from typing import Any, Final, TypeAlias, TypedDict, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import Device
from gradviz.ops.promotion import DTypeLike, get_default_dtype
from gradviz.ops.variable import Variable, device_of, raw
from gradviz.tensors.operators import Scalar
from gradviz.tensors.tensor import Tensor, make

#: Numbers, lists of them nested to any depth, arrays, tensors.
Data: TypeAlias = Any

#: A shape: integers one by one, or one sequence of them.
Size: TypeAlias = Any


class Options(TypedDict, total=False):
    """What every function here accepts besides its own arguments.

    Attributes:
        dtype: Type of the elements.
        device: Where they are: a device or its name.
        requires_grad: Whether gradients are wanted.
    """

    dtype: DTypeLike
    device: Device | str | None
    requires_grad: bool


def tensor(data: Data, **options: Unpack[Options]) -> Tensor:
    """A leaf with a copy of `data`.

    Python's floats become the default dtype (float32), its integers int64; an array
    keeps its dtype.

    Args:
        data: Numbers in nested lists, an array, or a tensor.
        **options: See `Options`.

    Raises:
        ValueError: The lists are not rectangular.
        TypeError: An element is no number.
    """
    if isinstance(data, Variable):
        options.setdefault("device", data.device)
        return _make(data.array.copy(), options)
    array = np.array(_plain(data))
    if array.dtype.kind not in "biufc":
        raise TypeError(
            f"cannot make a tensor of {type(data).__name__}: expected numbers, got "
            f"elements of type {array.dtype}"
        )
    return _make_default(array, options) if _is_python(data) else _make(array, options)


def as_tensor(data: Data, **options: Unpack[Options]) -> Tensor:
    """A tensor of `data`, sharing memory with an array of the right dtype."""
    if isinstance(data, Tensor):
        return data.to(options.get("device") or data.device, dtype=options.get("dtype"))
    return (
        _make(data, options)
        if isinstance(data, np.ndarray)
        else tensor(data, **options)
    )


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of `array`."""
    return make(array)


def zeros(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Zeros of the shape `size`."""
    return full(_size(size), 0.0, **options)


def ones(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Ones of the shape `size`."""
    return full(_size(size), 1.0, **options)


def full(size: Size, fill_value: Scalar, **options: Unpack[Options]) -> Tensor:
    """`fill_value` in the shape `size`; its type decides the dtype if none is given."""
    return _make_default(np.full(_size((size,)), fill_value), options)


def zeros_like(other: Tensor, **options: Unpack[Options]) -> Tensor:
    """Zeros with the shape, dtype and device of `other`."""
    return _make(np.zeros_like(other.array), options)


def ones_like(other: Tensor, **options: Unpack[Options]) -> Tensor:
    """Ones with the shape, dtype and device of `other`."""
    return _make(np.ones_like(other.array), options)


def arange(*bounds: float, **options: Unpack[Options]) -> Tensor:
    """Numbers from a start (0) up to a stop, in steps (1): as ``range`` takes them."""
    return _make_default(np.asarray(np.arange(*bounds)), options)


def linspace(
    start: float, end: float, steps: int, **options: Unpack[Options]
) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included."""
    return _make_default(np.linspace(start, end, steps), options)


def eye(n: int, m: int | None = None, **options: Unpack[Options]) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return _make_default(np.eye(n, m), options)


# --- random numbers ---------------------------------------------------------------


class _Generator:
    """The generator behind the functions below; one for the process."""

    def __init__(self) -> None:
        self.random = np.random.default_rng()


_generator: Final = _Generator()


def manual_seed(seed: int) -> None:
    """Start the random numbers anew.

    Differs: the numbers are NumPy's, not those of PyTorch for the same seed.
    """
    _generator.random = np.random.default_rng(seed)


def randn(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Normally distributed numbers of mean 0 and variance 1."""
    array = _generator.random.standard_normal(_size(size))
    return _make_default(np.asarray(array), options)


def rand(*size: Size, **options: Unpack[Options]) -> Tensor:
    """Uniformly distributed numbers in ``[0, 1)``."""
    array = _generator.random.random(_size(size))
    return _make_default(np.asarray(array), options)


def randint(low: int, high: int, size: Size, **options: Unpack[Options]) -> Tensor:
    """Uniformly distributed integers in ``[low, high)``."""
    return _make(_generator.random.integers(low, high, _size((size,))), options)


def randperm(n: int, **options: Unpack[Options]) -> Tensor:
    """The integers from 0 to ``n - 1`` in random order."""
    return _make(_generator.random.permutation(n), options)


def _make(array: Array, options: Options) -> Tensor:
    device = options.get("device")
    return make(
        array,
        options.get("dtype"),
        device_of(array) if device is None else device,
        requires_grad=options.get("requires_grad", False),
    )


def _make_default(array: np.ndarray, options: Options) -> Tensor:
    """A tensor in the default dtype of its kind, unless one is given."""
    if options.get("dtype") is None:
        options["dtype"] = _default_for(array.dtype)
    return _make(array, options)


def _plain(data: Data) -> Data:
    """`data` with the tensors in its lists as lists and numbers."""
    if isinstance(data, Variable):
        return raw(data).tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(one) for one in data]
    return data


def _is_python(data: Data) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return not isinstance(data, (np.ndarray, np.generic))


def _default_for(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that a tensor of Python numbers gets, given NumPy's for them."""
    match dtype.kind:
        case "f":
            return get_default_dtype()
        case "i":
            return np.dtype(np.int64)
        case "c":
            return np.result_type(get_default_dtype(), np.complex64)
        case _:
            return dtype


def _size(size: tuple[Size, ...]) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int):
        return tuple(size[0])
    return size
