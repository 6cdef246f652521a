"""Images made larger or smaller: ``interpolate``, in its modes."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import INTEGERS, Shape
from gradviz.ops.conventions.memory_layout import as_images
from gradviz.ops.conventions.promotion import python_number
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.resampling import (
    ResamplingTable,
    apply_tables,
    resampling,
)
from gradviz.ops.layers.adaptive_pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from gradviz.ops.variables.variable import Value, raw


class Axis(NamedTuple):
    """Resampling along one axis.

    Attributes:
        inputs: Its length.
        outputs: Its new length.
        factor: Scale factor, if the user gave one.
    """

    inputs: int
    outputs: int
    factor: float | None

    def step(self, align_corners: bool = False) -> float:
        """Return the distance between two outputs, in elements of the input."""
        if align_corners:
            return (self.inputs - 1) / (self.outputs - 1) if self.outputs > 1 else 0
        return 1 / self.factor if self.factor else self.inputs / self.outputs


# --- the nearest element ------------------------------------------------------------


def _nearest_op(name: str) -> Op:
    """The op that takes elements, under PyTorch's name of its forward."""

    def take(x: Array, places: tuple[np.ndarray, ...]) -> Array:
        return as_images(x[(..., *np.ix_(*places))], x)

    def spread(x: Array, lengths: Shape, places: tuple[np.ndarray, ...]) -> Array:
        tables = tuple(
            (place == np.arange(length)[:, None]).astype(np.float64)
            for place, length in zip(places, lengths, strict=True)
        )
        return apply_tables(x, tables)

    back = differentiable(
        f"{name}BackwardBackward0", x=lambda grad, places: nearest(grad, places)
    )(spread)
    nearest = differentiable(
        f"{name}Backward0",
        x=lambda grad, x_shape, places: back(grad, x_shape[2:], places),
    )(take)
    return nearest


def _nearest_places(axis: Axis, offset: float) -> np.ndarray:
    """Return the source element of each output; PyTorch uses single precision."""
    step = np.float32(axis.step())
    places = np.floor((np.arange(axis.outputs, dtype=np.float32) + offset) * step)
    return np.minimum(places.astype(np.int64), axis.inputs - 1)


# --- weighted neighbors ------------------------------------------------------------


def _linear_table(axis: Axis, align_corners: bool) -> ResamplingTable:
    outputs = np.arange(axis.outputs)
    step = axis.step(align_corners)
    places = outputs * step if align_corners else (outputs + 0.5) * step - 0.5
    places = np.maximum(places, 0)
    below = np.minimum(np.floor(places).astype(np.int64), axis.inputs - 1)
    above = np.minimum(below + 1, axis.inputs - 1)
    share = np.minimum(places - below, 1)
    table = np.zeros((axis.outputs, axis.inputs))
    np.add.at(table, (outputs, below), 1 - share)
    np.add.at(table, (outputs, above), share)
    return table


def _cubic_table(axis: Axis, align_corners: bool) -> ResamplingTable:
    outputs = np.arange(axis.outputs)
    step = axis.step(align_corners)
    places = outputs * step if align_corners else (outputs + 0.5) * step - 0.5
    below = np.floor(places).astype(np.int64)
    table = np.zeros((axis.outputs, axis.inputs))
    for shift in range(-1, 3):
        distance = np.abs(places - (below + shift))
        neighbors = np.clip(below + shift, 0, axis.inputs - 1)
        np.add.at(table, (outputs, neighbors), _cubic(distance))
    return table


def _cubic(x: np.ndarray) -> np.ndarray:
    """The weight of a neighbor at a distance of up to 2."""
    a = -0.75
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, far)


_NEAREST: Final = {n: _nearest_op(f"UpsampleNearest{n}D") for n in (1, 2, 3)}
_EXACT: Final = {n: _nearest_op(f"UpsampleNearestExact{n}D") for n in (1, 2, 3)}
_AREA: Final = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_LINEAR: Final = {
    "linear": (1, resampling("UpsampleLinear1D")),
    "bilinear": (2, resampling("UpsampleBilinear2D")),
    "trilinear": (3, resampling("UpsampleTrilinear3D")),
    "bicubic": (2, resampling("UpsampleBicubic2D")),
}


def interpolate(
    input: Value,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Value:
    """An image of another size.

    Args:
        input: Shape ``(N, C, ...)``, with one to three spatial dimensions.
        size: The new lengths...
        scale_factor: ...or by which factor they grow.
        mode: "nearest", "nearest-exact", "area" (averages), "linear", "bilinear",
            "trilinear" or "bicubic".
        align_corners: True if the first and last elements stay where they are.
        recompute_scale_factor: Compute the factor again from the new lengths.
        antialias: Not supported.

    Raises:
        ValueError: Settings are missing or contradict each other.
        NotImplementedError: The mode does not go with the number of dimensions.

    Source: torch/nn/functional.py, interpolate.
    """
    scale_factor = python_number(scale_factor)
    if antialias:
        raise NotImplementedError(
            "interpolate: antialias=True is not supported; use antialias=False"
        )
    _check_corners(mode, align_corners)
    lengths = raw(input).shape[2:]
    axes = _axes(lengths, size, scale_factor, mode, recompute_scale_factor)
    if mode in ("nearest", "nearest-exact") and len(lengths) in _NEAREST:
        ops, offset = (_EXACT, 0.5) if mode == "nearest-exact" else (_NEAREST, 0.0)
        places = tuple(_nearest_places(axis, offset) for axis in axes)
        return ops[len(lengths)](input, places)
    if mode == "area" and len(lengths) in _AREA:
        return _AREA[len(lengths)](input, tuple(axis.outputs for axis in axes))
    if mode not in _LINEAR or len(lengths) not in (1, 2, 3):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{raw(input).ndim}D) for the modes: nearest | linear | bilinear | bicubic "
            f"| trilinear | area | nearest-exact (got {mode})"
        )
    spatial, op = _LINEAR[mode]
    if spatial != len(lengths):
        raise NotImplementedError(
            f"Got {raw(input).ndim}D input, but {mode} mode needs {spatial + 2}D input"
        )
    table = _cubic_table if mode == "bicubic" else _linear_table
    return op(input, tuple(table(axis, bool(align_corners)) for axis in axes))


def upsample(
    input: Value,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Value:
    """`interpolate`, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Value,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Value:
    """`interpolate` with the nearest element, under an older name."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Value,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Value:
    """`interpolate` of images between corners that stay, under an older name."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def _axes(
    lengths: Shape,
    size: int | Sequence[int] | None,
    factor: float | Sequence[float] | None,
    mode: str,
    recompute: bool | None,
) -> list[Axis]:
    if size is not None and factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError(
                "recompute_scale_factor is not meaningful with an explicit size."
            )
        sizes = [size] * len(lengths) if isinstance(size, INTEGERS) else list(size)
        if len(sizes) != len(lengths):
            raise ValueError(_unlike(lengths, "output size of", sizes, "output size"))
        return [Axis(*pair, None) for pair in zip(lengths, sizes, strict=True)]
    if factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = (
        [factor] * len(lengths) if isinstance(factor, (int, float)) else list(factor)
    )
    if len(factors) != len(lengths):
        raise ValueError(_unlike(lengths, "scale_factor of", factors, "scale_factor"))
    keeps = not recompute and mode != "area"
    return [
        Axis(length, math.floor(length * one), one if keeps else None)
        for length, one in zip(lengths, factors, strict=True)
    ]


def _unlike(lengths: Shape, what: str, given: Sequence[float], name: str) -> str:
    letters = "s1, s2, ...,sK" if name == "scale_factor" else "o1, o2, ...,oK"
    return (
        f"Input and {name if name == 'scale_factor' else 'output'} must have the same "
        f"number of spatial dimensions, but got input with spatial dimensions of "
        f"{[*lengths]} and {what} {given if name == 'scale_factor' else [*given]}. "
        f"Please provide input tensor in (N, C, d1, d2, ...,dK) format and {name} in "
        f"({letters}) format."
    )


def _check_corners(mode: str, align_corners: bool | None) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear "
            "| bilinear | bicubic | trilinear"
        )


PUBLIC = [*names("F.f", interpolate, upsample, upsample_bilinear, upsample_nearest)]
