"""Making tensors: of data, and of constants."""

import numbers
from typing import Any, TypeAlias, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import Device, chosen_device
from gradviz.ops.recording.dimensions import SizeArgs
from gradviz.ops.recording.promotion import DTypeLike, Scalar, get_default_dtype
from gradviz.ops.recording.variable import Variable, device_of, raw
from gradviz.tensors.options import (
    FORMATTED,
    OF_DATA,
    Options,
    check_options,
    shape_of,
)
from gradviz.tensors.out_variants import fills_out
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
        RuntimeError: An element is no number.
    """
    check_options("tensor", options, OF_DATA)
    return _copied(data, options)


def _copied(data: Data, options: Options) -> Tensor:
    if isinstance(data, Variable):
        return make_like(data.array.copy(), _placed(options))
    array = _as_array(data)
    if _is_python(data):
        return make_default(array, options)
    return make_like(array, _placed(options))


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
        device: Where they are; see `Options`.
    """
    options: Options = {"dtype": dtype, "device": device}
    check_options("as_tensor", options, OF_DATA)
    if isinstance(data, Tensor):
        place = _placed(options)["device"] or data.device
        return data.to(place, dtype=dtype)
    if isinstance(data, np.ndarray):
        return make_like(data, _placed(options))
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
        device: Where they are; see `Options`.
        copy: Whether it has memory of its own: True for yes, False for never, None for
            where it must.
        requires_grad: Whether gradients are wanted. If not, it is outside the graph.

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
        TypeError: It is no array.
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
        count: How many there are; all if -1.
        offset: How many bytes lie before them.
        requires_grad: Whether gradients are wanted.
    """
    array = np.frombuffer(buffer, np.dtype(dtype), count, offset)
    return make(array, requires_grad=requires_grad)


@fills_out
def zeros(
    *lengths: SizeArgs, size: SizeArgs | None = None, **options: Unpack[Options]
) -> Tensor:
    """Zeros of a shape, given as its lengths or as `size`."""
    check_options("zeros", options)
    return make_default(np.zeros(shape_of("zeros", lengths, size)), options)


@fills_out
def ones(
    *lengths: SizeArgs, size: SizeArgs | None = None, **options: Unpack[Options]
) -> Tensor:
    """Ones of a shape, given as its lengths or as `size`."""
    check_options("ones", options)
    return make_default(np.ones(shape_of("ones", lengths, size)), options)


@fills_out
def empty(
    *lengths: SizeArgs, size: SizeArgs | None = None, **options: Unpack[Options]
) -> Tensor:
    """A tensor whose elements do not matter, of a shape, given as `zeros` takes it.

    Differs: they are zeros, so that programs do the same each time.
    """
    check_options("empty", options, FORMATTED)
    return make_default(np.zeros(shape_of("empty", lengths, size)), options)


@fills_out
def full(size: SizeArgs, fill_value: Scalar, **options: Unpack[Options]) -> Tensor:
    """`fill_value` in the shape `size`; its type decides the dtype if none is given."""
    check_options("full", options)
    shape = shape_of("full", (), size)
    return make_default(np.full(shape, raw(fill_value)), options)


def scalar_tensor(s: Scalar, **options: Unpack[Options]) -> Tensor:
    """A number as a tensor without dimensions, in the default dtype."""
    check_options("scalar_tensor", options)
    options.setdefault("dtype", get_default_dtype())
    return make_default(np.asarray(s), options)


def zeros_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """Zeros with the shape, dtype and device of `input`."""
    check_options("zeros_like", options, FORMATTED)
    return make_like(np.zeros_like(input.array), options)


def ones_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """Ones with the shape, dtype and device of `input`."""
    check_options("ones_like", options, FORMATTED)
    return make_like(np.ones_like(input.array), options)


def empty_like(input: Tensor, **options: Unpack[Options]) -> Tensor:  # noqa: A002 - PyTorch's name
    """As `empty`, with the shape, dtype and device of `input`."""
    check_options("empty_like", options, FORMATTED)
    return make_like(np.zeros_like(input.array), options)


def full_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    fill_value: Scalar,
    **options: Unpack[Options],
) -> Tensor:
    """`fill_value` with the shape, dtype and device of `input`."""
    check_options("full_like", options, FORMATTED)
    dtype = options.get("dtype")
    array = np.full_like(
        input.array, raw(fill_value), None if dtype is None else np.dtype(dtype)
    )
    return make_like(array, options)


@fills_out
def arange(
    *bounds: float,
    start: float | None = None,
    end: float | None = None,
    step: float | None = None,
    **options: Unpack[Options],
) -> Tensor:
    """Numbers from a start (0) up to an end, in steps (1): as ``range`` takes them.

    Args:
        *bounds: The end; or the start, the end, and perhaps the step.
        start: By name.
        end: By name.
        step: By name.
        **options: See `Options`.

    Raises:
        TypeError: There is no end, or one of them is given twice.
        RuntimeError: The step is 0, or leads away from the end.
    """
    check_options("arange", options)
    names = ["end"] if len(bounds) == 1 and end is None else ["start", "end", "step"]
    named = {"start": start, "end": end, "step": step}
    given = {name: value for name, value in named.items() if value is not None}
    by_place = dict(zip(names, bounds, strict=False))
    everything = by_place | given
    if len(bounds) > len(names) or by_place.keys() & given or "end" not in everything:
        said = [type(one).__name__ for one in bounds]
        said += [f"{name}={type(one).__name__}" for name, one in given.items()]
        raise TypeError(
            f"arange() received an invalid combination of arguments - got "
            f"({', '.join(said)}), but expected (end), (start, end) or "
            f"(start, end, step)"
        )
    first, last = raw(everything.get("start", 0)), raw(everything["end"])
    step = raw(everything.get("step", 1))
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (last - first) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return make_default(np.asarray(np.arange(first, last, step)), options)


@fills_out
def linspace(
    start: float, end: float, steps: int, **options: Unpack[Options]
) -> Tensor:
    """`steps` numbers at equal distances from `start` to `end`, both included.

    Raises:
        RuntimeError: `steps` is negative.
    """
    check_options("linspace", options)
    _check_steps(steps)
    return make_default(np.linspace(raw(start), raw(end), steps), options)


@fills_out
def logspace(
    start: float, end: float, steps: int, base: float = 10.0, **options: Unpack[Options]
) -> Tensor:
    """`steps` powers of `base`, whose exponents are those of `linspace`.

    Raises:
        RuntimeError: `steps` is negative.
    """
    check_options("logspace", options)
    _check_steps(steps)
    return make_default(np.logspace(start, end, steps, base=base), options)


@fills_out
def eye(n: int, m: int | None = None, **options: Unpack[Options]) -> Tensor:
    """Ones on the diagonal, zeros elsewhere.

    Raises:
        RuntimeError: A length is negative.
    """
    check_options("eye", options)
    for name, length in (("n", n), ("m", n if m is None else m)):
        if length < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {length}")
    return make_default(np.eye(n, m), options)


def tril_indices(
    row: int, col: int, offset: int = 0, **options: Unpack[Options]
) -> Tensor:
    """Where the lower triangle of a matrix is: row numbers, column numbers.

    Returns:
        Integers, shape ``(2, number of elements)``.
    """
    check_options("tril_indices", options)
    return make_default(np.stack(np.tril_indices(row, offset, col)), options)


def triu_indices(
    row: int, col: int, offset: int = 0, **options: Unpack[Options]
) -> Tensor:
    """Where the upper triangle of a matrix is; see `tril_indices`."""
    check_options("triu_indices", options)
    return make_default(np.stack(np.triu_indices(row, offset, col)), options)


# --- what `gradviz.tensors.random` shares -----------------------------------------


def make_like(array: Array, options: Options) -> Tensor:
    """A tensor with the dtype and on the device of `array`, unless others are given."""
    device = options.get("device")
    made = make(
        array,
        options.get("dtype"),
        device_of(array) if device is None else device,
        requires_grad=options.get("requires_grad", False),
    )
    if options.get("pin_memory"):
        made.array = made.pin_memory().array
    return made


def make_default(array: np.ndarray, options: Options) -> Tensor:
    """A tensor of the default dtype of its kind, on the default device.

    Another dtype or device may be given.
    """
    if options.get("dtype") is None:
        options["dtype"] = _default_for(array.dtype)
    return make_like(array, _placed(options))


def _placed(options: Options) -> Options:
    """`options` with the default device, if a program has chosen one and gives none."""
    if options.get("device") is None:
        options["device"] = chosen_device()
    return options


def _check_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


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
