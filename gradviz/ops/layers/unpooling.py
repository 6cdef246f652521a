"""Max-pooling undone: elements put back to where they were, zeros elsewhere."""

from collections.abc import Sequence
from math import prod

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import INTEGERS, Lengths, Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw


def _unpooling(name: str) -> Op:
    """The op that puts elements back, under PyTorch's name of its forward."""

    def put(x: Array, indices: Array, lengths: Shape) -> Array:
        planes, size = prod(x.shape[: -len(lengths)]), prod(lengths)
        result: Array = np.zeros_like(x, shape=(planes * size,))
        starts = beside(x, np.arange(planes)[:, None] * size)
        places = np.reshape(np.reshape(indices, (planes, -1)) + starts, -1)
        assign(result, places, np.reshape(x, -1))
        return np.reshape(result, (*x.shape[: -len(lengths)], *lengths))

    def take(x: Array, indices: Array, lengths: Shape) -> Array:
        planes = prod(x.shape[: -len(lengths)])
        flat = np.reshape(x, (planes, prod(lengths)))
        places = np.reshape(indices, (planes, -1))
        return np.reshape(np.take_along_axis(flat, places, axis=1), indices.shape)

    back = differentiable(
        f"{name}BackwardBackward0",
        arrays=("indices",),
        x=lambda grad, indices, lengths: unpool(grad, indices, lengths),
    )(take)
    unpool = differentiable(
        f"{name}Backward0",
        arrays=("indices",),
        x=lambda grad, indices, lengths: back(grad, indices, lengths),
    )(put)
    return unpool


_max_unpool2d = _unpooling("MaxUnpool2D")
_max_unpool3d = _unpooling("MaxUnpool3D")


def max_unpool1d(
    input: Value,
    indices: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Sequence[int] | None = None,
) -> Value:
    """Return a sequence from the result of `max_pool1d`.

    Args:
        input: The largest elements.
        indices: Positions at which they were.
        kernel_size: Number of elements in a window.
        stride: Steps between windows.
        padding: Distance from the start of the first window to that of the input.
        output_size: The lengths of the result, where several are possible.

    Raises:
        ValueError: The lengths do not fit.
        RuntimeError: The indices do not fit the input, or one is not in the result.
    """
    lengths = _lengths(1, raw(input), kernel_size, stride, padding, output_size)
    x, places, lengths = unsqueeze(input, -1), unsqueeze(indices, -1), (*lengths, 1)
    _check(raw(x), raw(places), lengths)
    return squeeze(_max_unpool2d(x, places, lengths), -1)


def max_unpool2d(
    input: Value,
    indices: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Sequence[int] | None = None,
) -> Value:
    """Return an image from the result of `max_pool2d`; see `max_unpool1d`."""
    lengths = _lengths(2, raw(input), kernel_size, stride, padding, output_size)
    _check(raw(input), raw(indices), lengths)
    return _max_unpool2d(input, indices, lengths)


def max_unpool3d(
    input: Value,
    indices: Value,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Lengths = 0,
    output_size: Sequence[int] | None = None,
) -> Value:
    """Return a volume from the result of `max_pool3d`; see `max_unpool1d`."""
    lengths = _lengths(3, raw(input), kernel_size, stride, padding, output_size)
    _check(raw(input), raw(indices), lengths)
    return _max_unpool3d(input, indices, lengths)


def _lengths(
    spatial: int,
    x: Array,
    size: Lengths,
    stride: Lengths | None,
    padding: Lengths,
    wanted: Sequence[int] | None,
) -> Shape:
    """Source: torch/nn/functional.py, _unpool_output_size."""
    sizes = _each(size, spatial)
    strides = sizes if stride is None else _each(stride, spatial)
    default = tuple(
        (length - 1) * step + window - 2 * pad
        for length, window, step, pad in zip(
            x.shape[-spatial:], sizes, strides, _each(padding, spatial), strict=True
        )
    )
    if wanted is None:
        return default
    lengths = tuple(wanted)[-spatial:]
    if len(wanted) not in (spatial, spatial + 2):
        raise ValueError(
            f"output_size should be a sequence containing {spatial} or {spatial + 2} "
            f"elements, but it has a length of '{len(wanted)}'"
        )
    for dim, (length, usual, step) in enumerate(
        zip(lengths, default, strides, strict=True)
    ):
        if not usual - step < length < usual + step:
            raise ValueError(
                f"invalid output_size '{[*lengths]}' (dim {dim} must be between "
                f"{usual - step} and {usual + step})"
            )
    return lengths


def _check(x: Array, indices: Array, lengths: Shape) -> None:
    spatial = len(lengths)
    if indices.dtype != np.int64:
        got = f" but got: {scalar_type_name(indices.dtype)}" if spatial == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    if x.ndim not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"Input to max_unpooling{spatial}d should be a {spatial + 1}d or "
            f"{spatial + 2}d Tensor, but got a tensor with {x.ndim} dimensions."
        )
    if x.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor "
            f"({list(x.shape)}) but got indices tensor with shape: "
            f"{list(indices.shape)}"
        )
    check_elements("max_unpool: check", _check_indices, indices, lengths)


def _check_indices(indices: np.ndarray, lengths: Shape) -> None:
    wrong = (indices < 0) | (indices >= prod(lengths))
    if bool(np.any(wrong)):
        first = int(np.reshape(indices, -1)[np.argmax(wrong)])
        raise RuntimeError(
            f"Found an invalid max index: {first} (output volumes are of size "
            f"{'x'.join(map(str, lengths))})"
        )


def _each(value: Lengths, spatial: int) -> Shape:
    return (value,) * spatial if isinstance(value, INTEGERS) else tuple(value)


PUBLIC = [*names("F.f", max_unpool1d, max_unpool2d, max_unpool3d)]
