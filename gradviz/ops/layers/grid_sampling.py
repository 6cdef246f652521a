"""Images looked up at given places: ``grid_sample``.

Note [Piecewise affine places]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A place in the grid says, for each axis, where between -1 and 1 to look. Which element
that is, as a fraction, is affine in it; clipping and reflection at the borders only
choose another affine map for some places. So ``slope`` and ``offset`` are arrays
without gradients, found from the values, and the weight of a neighbor is a polynomial
in ``slope * place + offset``: written in ops, it has derivatives of any order.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.gathering import add_where, gather_at, sum_at
from gradviz.ops.shapes.joining import stack
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.slicing import select
from gradviz.ops.variables.variable import Value, Variable, raw

#: The steepness of the cubic polynomials, PyTorch's.
_A: Final = -0.75

#: The weight of a neighbor, or its slope, at a fraction of the way past the middle.
Polynomial = Callable[[Gradient], Gradient]


class _Tap(NamedTuple):
    """A neighbor along one axis, whatever the place.

    Attributes:
        shift: Its distance from the element before the place.
        weight: Its weight, a function of how far the place is beyond that element.
        slope: The derivative of that.
    """

    shift: int
    weight: Polynomial
    slope: Polynomial


_TAPS: Final[dict[str, tuple[_Tap, ...]]] = {
    "bilinear": (
        _Tap(0, lambda t: 1 - t, lambda t: t * 0 - 1),
        _Tap(1, lambda t: t, lambda t: t * 0 + 1),
    ),
    "nearest": (_Tap(0, lambda t: t * 0 + 1, lambda t: t * 0),),
    "bicubic": (
        _Tap(-1, lambda t: _far(t + 1), lambda t: _far_slope(t + 1)),
        _Tap(0, lambda t: _near(t), lambda t: _near_slope(t)),
        _Tap(1, lambda t: _near(1 - t), lambda t: -_near_slope(1 - t)),
        _Tap(2, lambda t: _far(2 - t), lambda t: -_far_slope(2 - t)),
    ),
}

_PADDINGS: Final = ("zeros", "border", "reflection")


def _near(x: Gradient) -> Gradient:
    return ((_A + 2) * x - (_A + 3)) * x * x + 1


def _near_slope(x: Gradient) -> Gradient:
    return (3 * (_A + 2) * x - 2 * (_A + 3)) * x


def _far(x: Gradient) -> Gradient:
    return ((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A


def _far_slope(x: Gradient) -> Gradient:
    return (3 * _A * x - 10 * _A) * x + 8 * _A


# --- places -------------------------------------------------------------------------


class _Look(NamedTuple):
    """Arguments of `grid_sample`."""

    mode: str
    padding: str
    align_corners: bool


class _Axis(NamedTuple):
    """Positions along one axis; see Note [Piecewise affine places].

    Attributes:
        base: The element before the position, as a float.
        slope: Change of the fraction beyond it with the position.
        offset: The fraction at position 0.
        length: Length of the axis.
    """

    base: Array
    slope: Array
    offset: Array
    length: int

    def fraction(self, places: Gradient) -> Gradient:
        """Return the distance of positions from the element before them."""
        return places * self.slope + self.offset


def _axis(places: Array, length: int, look: _Look) -> _Axis:
    if look.align_corners:
        slope, offset = (length - 1) / 2, (length - 1) / 2
    else:
        slope, offset = length / 2, (length - 1) / 2
    slopes = np.full_like(places, slope)
    offsets = np.full_like(places, offset)
    if look.padding != "zeros" and look.mode != "bicubic":
        slopes, offsets = _kept_inside(places, slopes, offsets, length, look)
    at = places * slopes + offsets
    base = np.round(at) if look.mode == "nearest" else np.floor(at)
    return _Axis(base, slopes, offsets - base, length)


def _kept_inside(
    places: Array, slopes: Array, offsets: Array, length: int, look: _Look
) -> tuple[Array, Array]:
    """The maps of places that are reflected, or held, at the borders."""
    if look.padding == "reflection":
        at = places * slopes + offsets
        sign, shift = _reflection(at, length, look.align_corners)
        slopes, offsets = sign * slopes, sign * offsets + shift
    at = places * slopes + offsets
    outside = ~((at > 0) & (at < length - 1))
    held = np.where(at > 0, np.minimum(at, length - 1), 0)  # NaN becomes 0
    zero = np.zeros_like(slopes)
    return np.where(outside, zero, slopes), np.where(outside, held, offsets)


def _reflection(at: Array, length: int, align_corners: bool) -> tuple[Array, Array]:
    """The sign and the shift that reflect places into the axis."""
    low, span = (0.0, length - 1.0) if align_corners else (-0.5, float(length))
    if span == 0:
        return np.zeros_like(at), np.zeros_like(at)
    sign = np.where(at < low, -1.0, 1.0).astype(at.dtype)
    distance = sign * (at - low)
    flips = np.floor(distance / span)
    is_odd = flips % 2 == 1
    shift = np.where(is_odd, span + flips * span + low, low - flips * span)
    turned = np.where(is_odd, -1.0, 1.0).astype(at.dtype)
    return sign * turned, (shift - turned * sign * low).astype(at.dtype)


def _index(axis: _Axis, shift: int, look: _Look) -> tuple[Array, Array]:
    """The element at a distance from the base, and whether there is one."""
    at = axis.base + shift
    if look.mode == "bicubic" and look.padding != "zeros":
        if look.padding == "reflection":
            sign, moved = _reflection(at, axis.length, look.align_corners)
            at = sign * at + moved
        at = np.clip(at, 0, axis.length - 1)
    exists = (at >= 0) & (at <= axis.length - 1)
    nearest = np.fmin(np.fmax(at, 0), axis.length - 1)  # also of what is not a number
    return nearest.astype(np.int64), exists


# --- neighbors ---------------------------------------------------------------------


def _axes(grid: Array, lengths: Shape, look: _Look) -> list[_Axis]:
    """One for each spatial dimension: the grid has them from the last on."""
    return [_axis(grid[..., -1 - i], length, look) for i, length in enumerate(lengths)]


def _neighbors(
    axes: Sequence[_Axis], look: _Look
) -> Iterator[tuple[tuple[int, ...], Array, Array]]:
    """Each neighbor: which tap, its number in the flattened image, where it exists."""
    taps = _TAPS[look.mode]
    found = [[_index(axis, tap.shift, look) for tap in taps] for axis in axes]
    for which in product(range(len(taps)), repeat=len(axes)):
        number, exists = found[0][which[0]]
        for i, axis in enumerate(axes[1:], 1):
            index, inside = found[i][which[i]]
            number, exists = number * axis.length + index, exists & inside
        yield which, number, exists


def _across(number: Array, num_channels: int) -> Array:
    """Numbers of shape ``(N, ...)`` for all channels, flattened: ``(N, C, P)``."""
    rows = number.reshape(len(number), 1, prod(number.shape[1:]))
    return np.broadcast_to(rows, (len(rows), num_channels, rows.shape[2]))


def _looked_up(flat: Gradient, number: Array) -> Gradient:
    """The elements of all channels with these numbers: ``(N, C, P)``."""
    if type(flat) is not np.ndarray:
        return gather_at(flat, 2, _across(number, raw(flat).shape[1]))
    rows = number.reshape(len(number), prod(number.shape[1:]))
    result = np.empty((*flat.shape[:2], rows.shape[1]), flat.dtype)
    for image, row, chosen in zip(flat, rows, result, strict=True):
        # All numbers are within the image; asked to clip, NumPy needs no buffer.
        np.take(image, row, axis=1, out=chosen, mode="clip")
    return result


#: For each axis the factors of weights, one for each tap.
_Factors = Sequence[Sequence[Gradient]]


def _fractions(axes: Sequence[_Axis], grid: Gradient) -> list[Gradient]:
    """Return the distances of positions from the elements before, by axis."""
    return [axis.fraction(select(grid, -1, -1 - i)) for i, axis in enumerate(axes)]


def _weights(fractions: Sequence[Gradient], look: _Look) -> _Factors:
    taps = _TAPS[look.mode]
    return [[tap.weight(fraction) for tap in taps] for fraction in fractions]


def _weight(which: Sequence[int], factors: _Factors, exists: Array) -> Gradient:
    """The weight of a neighbor: ``(N, 1, P)``."""
    weight: Gradient = exists
    for tap, of_axis in zip(which, factors, strict=True):
        weight = weight * of_axis[tap]
    return reshape(weight, (len(exists), 1, prod(exists.shape[1:])))


def _flat(x: Gradient) -> Gradient:
    shape = raw(x).shape
    return reshape(x, (*shape[:2], prod(shape[2:])))


def _sampled(x: Array, grid: Array, look: _Look) -> Array:
    """The forward: a weighted sum of neighbors."""
    axes = _axes(grid, x.shape[2:], look)
    weights = _weights(_fractions(axes, grid), look)
    flat, places = _flat(x), grid.shape[1:-1]
    result = np.zeros_like(x, shape=(*x.shape[:2], prod(places)))
    for which, number, exists in _neighbors(axes, look):
        chosen = _looked_up(flat, number)
        chosen *= _weight(which, weights, exists)
        result += chosen
    return result.reshape(*x.shape[:2], *places)


def _spread(grad: Gradient, grid: Gradient, shape: Shape, look: _Look) -> Gradient:
    """The gradient of the image: each neighbor gets its part."""
    axes = _axes(raw(grid), shape[2:], look)
    weights = _weights(_fractions(axes, grid), look)
    flat_shape = (*shape[:2], prod(shape[2:]))
    flat_grad = _flat(grad)
    total: Gradient = None
    for which, number, exists in _neighbors(axes, look):
        part = flat_grad * _weight(which, weights, exists)
        index = _across(number, shape[1])
        if total is None or isinstance(part, Variable):
            more = sum_at(part, flat_shape, 2, index)
            total = more if total is None else total + more
        else:
            add_where(total, 2, index, part)
    return reshape(total, shape)


def _slopes(grad: Gradient, x: Gradient, grid: Gradient, look: _Look) -> Gradient:
    """The gradient of the grid."""
    axes = _axes(raw(grid), raw(x).shape[2:], look)
    fractions, taps = _fractions(axes, grid), _TAPS[look.mode]
    weights = _weights(fractions, look)
    steepness = [[tap.slope(fraction) for tap in taps] for fraction in fractions]
    flat, flat_grad = _flat(x), _flat(grad)
    sums: list[Gradient] = [0.0] * len(axes)
    for which, number, exists in _neighbors(axes, look):
        chosen = _looked_up(flat, number)
        felt = sum_of(flat_grad * chosen, 1, keepdim=True)
        for i in range(len(axes)):
            factors = [*weights[:i], steepness[i], *weights[i + 1 :]]
            sums[i] = sums[i] + felt * _weight(which, factors, exists)
    places = raw(grid).shape[:-1]
    slopes = [
        reshape(one, places) * axis.slope for one, axis in zip(sums, axes, strict=True)
    ]
    return stack(slopes[::-1], -1)


def _sampler(name: str) -> Op:
    return differentiable(
        name,
        x=lambda grad, grid, x_shape, look: _spread(grad, grid, x_shape, look),
        grid=_slopes,
    )(_sampled)


_SAMPLERS: Final = {
    4: _sampler("GridSampler2DBackward0"),
    5: _sampler("GridSampler3DBackward0"),
}


def grid_sample(
    input: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Value:
    """An image's values at given places.

    Args:
        input: Shape ``(N, C, H, W)`` or ``(N, C, D, H, W)``.
        grid: Places, shape ``(N, ..., 2)`` or ``(N, ..., 3)``: x, y (and z), from -1
            at one end to 1 at the other.
        mode: "bilinear" (of volumes, trilinear), "nearest", or of images "bicubic".
        padding_mode: Values outside: "zeros", the element at the "border", or the
            "reflection".
        align_corners: True if -1 and 1 are the middle of the outermost elements, False
            if they are their outer edges; edges if not given.

    Returns:
        Shape ``(N, C, ...)``.

    Raises:
        ValueError: There is no such mode.
        RuntimeError: The shapes or dtypes do not fit.

    Source: torch/nn/functional.py and aten/src/ATen/native/GridSampler.cpp.
    """
    if mode not in _TAPS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
            f"or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
            f"'border', or 'reflection', but got: '{padding_mode}'"
        )
    _check(raw(input), raw(grid), mode)
    sampler = _SAMPLERS[raw(input).ndim]
    return sampler(input, grid, _Look(mode, padding_mode, bool(align_corners)))


def _check(x: Array, grid: Array, mode: str) -> None:
    def sizes(array: Array) -> list[int]:
        return list(array.shape)

    if not x.ndim or not grid.ndim or len(x) != len(grid):
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got "
            f"input with sizes {sizes(x)} and grid with sizes {sizes(grid)}"
        )
    if grid.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last "
            f"dimension, but got grid with sizes {sizes(grid)}"
        )
    for dimension, length in enumerate(x.shape[2:], 2):
        if not length:
            raise RuntimeError(
                f"grid_sampler(): expected input to have non-empty spatial dimensions, "
                f"but input has sizes {sizes(x)} with dimension {dimension} being empty"
            )
    if x.ndim not in _SAMPLERS or grid.ndim != x.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of "
            f"dimensions, but got input with sizes {sizes(x)} and grid with sizes "
            f"{sizes(grid)}"
        )
    if x.ndim == 5 and mode == "bicubic":
        raise RuntimeError(
            "grid_sampler(): bicubic interpolation only supports 4D input"
        )
    check_kinds(f"grid_sampler_{x.ndim - 2}d_cpu_kernel_impl", "f", x)
    if x.dtype != grid.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_type_name(x.dtype)} but found "
            f"{scalar_type_name(grid.dtype)}"
        )


PUBLIC = [*names("F.f", grid_sample)]
