"""Patches of images as columns, and back, for products of convolutions."""

from math import prod

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import INTEGERS, Lengths, Shape
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.layers.patch_columns import Geometry, columns_of, sum_columns
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "Im2ColBackward0",
    x=lambda grad, x_shape, kernel, geometry: _fold(
        grad, x_shape[-2:], kernel, geometry
    ),
)
def _unfold(x: Array, kernel: Shape, geometry: Geometry) -> Array:
    batch = np.reshape(x, (-1, *x.shape[-3:]))
    outputs = geometry.output_lengths(x.shape[-2:], kernel)
    columns = columns_of(batch, kernel, geometry, outputs)
    rows, count = x.shape[-3] * prod(kernel), prod(outputs)
    return np.reshape(columns, (*x.shape[:-3], rows, count))


@differentiable(
    "Col2ImBackward0",
    x=lambda grad, kernel, geometry: _unfold(grad, kernel, geometry),
)
def _fold(x: Array, lengths: Shape, kernel: Shape, geometry: Geometry) -> Array:
    outputs = geometry.output_lengths(lengths, kernel)
    channels = x.shape[-2] // prod(kernel)
    columns = np.reshape(x, (prod(x.shape[:-2]), channels, *kernel, *outputs))
    image = sum_columns(columns, lengths, geometry)
    return np.reshape(image, (*x.shape[:-2], channels, *lengths))


def unfold(
    input: Value,
    kernel_size: Lengths,
    dilation: Lengths = 1,
    padding: Lengths = 0,
    stride: Lengths = 1,
) -> Value:
    """The patches of an image that a kernel meets, as columns.

    Args:
        input: Shape ``(N, C, H, W)`` or ``(C, H, W)``.
        kernel_size: The size of a patch.
        dilation: Steps between neighboring elements of a patch.
        padding: Zeros around the image.
        stride: Steps between patches.

    Raises:
        RuntimeError: The shape or the settings do not fit.
    """
    kernel = _pair(kernel_size)
    geometry = Geometry(_pair(stride), _pair(padding), _pair(dilation))
    _check_settings(kernel, geometry)
    shape = raw(input).shape
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
            f"other non-zero dimensions for input, but got: {[*shape]}"
        )
    counts = geometry.output_lengths(shape[-2:], kernel)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_tuple(shape[-2:])}, "
            f"kernel_size={_tuple(kernel)}, dilation={_tuple(geometry.dilation)}, "
            f"padding={_tuple(geometry.padding)}, calculated shape of the array of "
            f"sliding blocks as {_tuple(counts)}, but its components must be at least "
            f"one."
        )
    return _unfold(input, kernel, geometry)


def fold(
    input: Value,
    output_size: Lengths,
    kernel_size: Lengths,
    dilation: Lengths = 1,
    padding: Lengths = 0,
    stride: Lengths = 1,
) -> Value:
    """An image from its patches: where several overlap, their sum.

    Args:
        input: Result of `unfold`, shape ``(N, C * kernel, patches)`` or without N.
        output_size: The size of the image.
        kernel_size: The size of a patch.
        dilation: Steps between neighboring elements of a patch.
        padding: Zeros around the image, which are cut off.
        stride: Steps between patches.

    Raises:
        RuntimeError: The shape or the settings do not fit.
    """
    lengths, kernel = _pair(output_size), _pair(kernel_size)
    geometry = Geometry(_pair(stride), _pair(padding), _pair(dilation))
    _check_settings(kernel, geometry)
    shape = raw(input).shape
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
            f"size and non-zero dimensions for input, but got: {[*shape]}"
        )
    if shape[-2] % prod(kernel):
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={shape[-2]} and "
            f"kernel_size={_tuple(kernel)}."
        )
    counts = geometry.output_lengths(lengths, kernel)
    settings = (
        f"Given output_size={_tuple(lengths)}, kernel_size={_tuple(kernel)}, "
        f"dilation={_tuple(geometry.dilation)}, padding={_tuple(geometry.padding)}, "
        f"stride={_tuple(geometry.stride)}"
    )
    if min(counts) < 1:
        raise RuntimeError(
            f"{settings}, calculated shape of the array of sliding blocks as "
            f"({counts[0]}, {counts[1]}), which is too small (non-positive)"
        )
    if shape[-1] != prod(counts):
        raise RuntimeError(
            f"{settings}, expected size of input's dimension 2 to match the calculated "
            f"number of sliding blocks {counts[0]} * {counts[1]} = {prod(counts)}, but "
            f"got input.size(2)={shape[-1]}."
        )
    return _fold(input, lengths, kernel, geometry)


def _pair(value: Lengths) -> Shape:
    return (value, value) if isinstance(value, INTEGERS) else tuple(value)


def _tuple(sizes: Shape) -> str:
    return f"({', '.join(map(str, sizes))})"


def _check_settings(kernel: Shape, geometry: Geometry) -> None:
    for what, name, sizes in (
        ("kernel size", "kernel", kernel),
        ("dilation", "dilation", geometry.dilation),
        ("stride", "stride", geometry.stride),
    ):
        if min(sizes) <= 0:
            raise RuntimeError(
                f"{what} should be greater than zero, but got {name}_height: "
                f"{sizes[0]} {name}_width: {sizes[1]}"
            )
    if min(geometry.padding) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: "
            f"{geometry.padding[0]} pad_width: {geometry.padding[1]}"
        )


PUBLIC = [*names("F.f", fold, unfold)]
