"""Channels made pixels, pixels made channels, channels exchanged."""

from math import prod

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "PixelShuffleBackward0", x=lambda grad, factor: _pixel_unshuffle(grad, factor)
)
def _pixel_shuffle(x: Array, factor: int) -> Array:
    *batch, channels, height, width = x.shape
    parts = np.reshape(
        x, (prod(batch), channels // factor**2, factor, factor, height, width)
    )
    moved = np.transpose(parts, (0, 1, 4, 2, 5, 3))
    shape = (*batch, channels // factor**2, height * factor, width * factor)
    return np.reshape(moved, shape)


@differentiable(
    "PixelUnshuffleBackward0", x=lambda grad, factor: _pixel_shuffle(grad, factor)
)
def _pixel_unshuffle(x: Array, factor: int) -> Array:
    *batch, channels, height, width = x.shape
    parts = np.reshape(
        x, (prod(batch), channels, height // factor, factor, width // factor, factor)
    )
    moved = np.transpose(parts, (0, 1, 3, 5, 2, 4))
    shape = (*batch, channels * factor**2, height // factor, width // factor)
    return np.reshape(moved, shape)


@differentiable(
    "ChannelShuffleBackward0",
    x=lambda grad, x_shape, groups: _channel_shuffle(grad, x_shape[1] // groups),
)
def _channel_shuffle(x: Array, groups: int) -> Array:
    parts = np.reshape(x, (x.shape[0], groups, x.shape[1] // groups, -1))
    return np.reshape(np.swapaxes(parts, 1, 2), x.shape)


def pixel_shuffle(input: Value, upscale_factor: int) -> Value:
    """An image with more pixels, from one with more channels.

    Args:
        input: Shape ``(..., C * factor**2, H, W)``.
        upscale_factor: Factor by which height and width grow.

    Raises:
        RuntimeError: The channels are no multiple of the square of the factor.
    """
    shape = raw(input).shape
    _check_dimensions("pixel_shuffle", len(shape))
    if upscale_factor <= 0:
        raise RuntimeError(
            f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}"
        )
    if shape[-3] % upscale_factor**2:
        raise RuntimeError(
            f"pixel_shuffle expects its input's 'channel' dimension to be divisible by "
            f"the square of upscale_factor, but input.size(-3)={shape[-3]} is not "
            f"divisible by {upscale_factor**2}"
        )
    return _pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Value, downscale_factor: int) -> Value:
    """An image with more channels, from one with more pixels; undoes `pixel_shuffle`.

    Raises:
        RuntimeError: Height or width is not a multiple of the factor.
    """
    shape = raw(input).shape
    _check_dimensions("pixel_unshuffle", len(shape))
    if downscale_factor <= 0:
        raise RuntimeError(
            f"pixel_unshuffle expects a positive downscale_factor, but got "
            f"{downscale_factor}"
        )
    for name, dim in (("height", -2), ("width", -1)):
        if shape[dim] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({dim})={shape[dim]} is not divisible by "
                f"{downscale_factor}"
            )
    return _pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Value, groups: int) -> Value:
    """Channels of several groups, taken from each in turn.

    Raises:
        RuntimeError: The channels are no multiple of `groups`.
    """
    shape = raw(input).shape
    if len(shape) < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{[*shape]}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of "
            f"groups:{groups}"
        )
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels "
            f"and {groups} groups."
        )
    return _channel_shuffle(input, groups)


def _check_dimensions(name: str, ndim: int) -> None:
    if ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with "
            f"{ndim} dimension(s)"
        )


PUBLIC = [*names("gv.f F.f", channel_shuffle, pixel_shuffle, pixel_unshuffle)]
