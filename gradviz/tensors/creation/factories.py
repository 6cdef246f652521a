"""Making tensors of constants and of sequences of numbers."""

from typing import Any, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import chosen_device
from gradviz.ops.conventions.dimensions import SizeArgs
from gradviz.ops.conventions.promotion import Scalar, get_default_dtype
from gradviz.ops.variables.variable import device_of, raw
from gradviz.tensors.attributes.creation_options import (
    FORMATTED,
    Options,
    check_options,
    shape_of,
)
from gradviz.tensors.creation.out_variants import fills_out
from gradviz.tensors.tensor import Tensor, make


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
    """Return a tensor with arbitrary elements; the shape is given as for `zeros`.

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
    """Like `empty`, with the shape, dtype and device of `input`."""
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
    """Return `steps` powers of `base`, with exponents as in `linspace`.

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
    """Return row and column numbers of the lower triangle of a matrix.

    Returns:
        Integers, shape ``(2, number of elements)``.
    """
    check_options("tril_indices", options)
    return make_default(np.stack(np.tril_indices(row, offset, col)), options)


def triu_indices(
    row: int, col: int, offset: int = 0, **options: Unpack[Options]
) -> Tensor:
    """Return row and column numbers of the upper triangle; see `tril_indices`."""
    check_options("triu_indices", options)
    return make_default(np.stack(np.triu_indices(row, offset, col)), options)


# --- what the other modules of this room share ------------------------------------


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
    return make_like(array, placed(options))


def placed(options: Options) -> Options:
    """`options` with the default device, if a program has chosen one and gives none."""
    if options.get("device") is None:
        options["device"] = chosen_device()
    return options


def _check_steps(steps: int) -> None:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")


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
