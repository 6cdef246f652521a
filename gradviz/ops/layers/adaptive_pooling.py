"""Pooling to a given number of outputs, whatever the length of the input.

Output *i* of *n* is made of the elements from ``floor(i * L / n)`` up to
``ceil((i + 1) * L / n)``: of those of a *bin*. Bins differ in length by one, and
overlap where L is not a multiple of n.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import INTEGERS, Shape
from gradviz.ops.conventions.memory_layout import has_channels_last
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.resampling import ResamplingTable, resampling
from gradviz.ops.layers.pooling import choice, flattened
from gradviz.ops.reductions.reduction import mean
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw

#: Number of outputs: for each dimension, or for all; None for as many as inputs.
Outputs: TypeAlias = int | Sequence[int | None] | None


class Bins(NamedTuple):
    """Bins of the input, one per output.

    Attributes:
        lengths: Lengths of the input's spatial dimensions.
        outputs: Number of outputs in each.
    """

    lengths: Shape
    outputs: Shape

    @property
    def spatial(self) -> int:
        """The number of spatial dimensions."""
        return len(self.lengths)

    @property
    def overlaps(self) -> bool:
        """True if an element may be in several bins."""
        return any(
            length % count
            for length, count in zip(self.lengths, self.outputs, strict=True)
            if count
        )

    def edges(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The first element of each bin along an axis, and the first after it."""
        length, count = self.lengths[axis], self.outputs[axis]
        i = np.arange(count)
        return i * length // max(count, 1), -(-(i + 1) * length // max(count, 1))


def _largest(x: Array, bins: Bins) -> tuple[Array, Array]:
    """The largest element of each bin, and where it is in the flattened image.

    Shorter bins see their last element twice.
    """
    edges = [bins.edges(axis) for axis in range(bins.spatial)]
    widths = [int(np.max(stop - start, initial=1)) for start, stop in edges]
    values: Array = None
    indices: Array = None
    for offset in np.ndindex(*widths):
        rows = [
            np.minimum(start + shift, stop - 1)
            for (start, stop), shift in zip(edges, offset, strict=True)
        ]
        part = x[(..., *np.ix_(*rows))]
        where = beside(x, flattened(rows, bins.lengths))
        if values is None:
            values = part.copy()
            indices = np.zeros_like(x, np.int64, shape=part.shape)
            indices[...] = where
            continue
        better = (part > values) | np.isnan(part)
        np.copyto(values, part, where=better)
        np.copyto(indices, where, where=better)
    return values, indices


def _averages(bins: Bins) -> tuple[ResamplingTable, ...]:
    """Return tables that average the bins of each axis."""
    tables = []
    for axis, length in enumerate(bins.lengths):
        start, stop = bins.edges(axis)
        columns = np.arange(length)
        inside = (columns >= start[:, None]) & (columns < stop[:, None])
        tables.append(inside / np.maximum(stop - start, 1)[:, None])
    return tuple(tables)


_max_pool2d = choice("AdaptiveMaxPool2D", _largest)
_max_pool3d = choice("AdaptiveMaxPool3D", _largest)
_avg_pool2d = resampling("AdaptiveAvgPool2D", saves_input=True)
_avg_pool3d = resampling("AdaptiveAvgPool3D", saves_input=True)


@differentiable("AsStridedBackward1", view=True, x=lambda grad: grad)
def _restrided(x: Array) -> Array:
    """One element for each channel: the strides that PyTorch then sets mean nothing."""
    return x[...]


# --- what users call ----------------------------------------------------------------


def adaptive_avg_pool1d(input: Value, output_size: Outputs) -> Value:
    """A sequence cut into `output_size` bins, and the average of each.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        output_size: Number of outputs.

    Raises:
        RuntimeError: The shape or the number does not fit.
    """
    _check_1d("adaptive_avg_pool1d", raw(input).shape)
    sizes = (1, _single("adaptive_avg_pool1d", output_size))
    return squeeze(adaptive_avg_pool2d(unsqueeze(input, -2), sizes), -2)


def adaptive_avg_pool2d(input: Value, output_size: Outputs) -> Value:
    """An image cut into bins, and the average of each; see `adaptive_avg_pool1d`."""
    return _averaged("adaptive_avg_pool2d", 2, _avg_pool2d, input, output_size)


def adaptive_avg_pool3d(input: Value, output_size: Outputs) -> Value:
    """A volume cut into bins, and the average of each; see `adaptive_avg_pool1d`."""
    return _averaged("adaptive_avg_pool3d", 3, _avg_pool3d, input, output_size)


def adaptive_max_pool1d(
    input: Value, output_size: Outputs, return_indices: bool = False
) -> Value:
    """A sequence cut into `output_size` bins, and the largest element of each.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        output_size: Number of outputs.
        return_indices: Return also where the elements were.

    Raises:
        RuntimeError: The shape or the number does not fit.
    """
    _check_1d("adaptive_max_pool1d", raw(input).shape)
    sizes = (1, _single("adaptive_max_pool1d", output_size))
    values, indices = adaptive_max_pool2d(
        unsqueeze(input, -2), sizes, return_indices=True
    )
    values = squeeze(values, -2)
    return (values, squeeze(indices, -2)) if return_indices else values


def adaptive_max_pool2d(
    input: Value, output_size: Outputs, return_indices: bool = False
) -> Value:
    """An image cut into bins, and the largest of each; see `adaptive_max_pool1d`."""
    bins = _bins("adaptive_max_pool2d", 2, input, output_size)
    values, indices = _max_pool2d(input, bins)
    return (values, indices) if return_indices else values


def adaptive_max_pool3d(
    input: Value, output_size: Outputs, return_indices: bool = False
) -> Value:
    """A volume cut into bins, and the largest of each; see `adaptive_max_pool1d`."""
    bins = _bins("adaptive_max_pool3d", 3, input, output_size)
    values, indices = _max_pool3d(input, bins)
    return (values, indices) if return_indices else values


def _averaged(name: str, spatial: int, op: Op, x: Value, sizes: Outputs) -> Value:
    bins = _bins(name, spatial, x, sizes)
    if set(bins.outputs) == {1}:  # as PyTorch does
        means = mean(x, tuple(range(-spatial, 0)), keepdim=True)
        return _restrided(means) if has_channels_last(raw(x)) else means
    return op(x, _averages(bins))


# --- what is refused ----------------------------------------------------------------


def _bins(name: str, spatial: int, x: Value, sizes: Outputs) -> Bins:
    shape = raw(x).shape
    if isinstance(sizes, Sequence) and len(shape) <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    if len(shape) not in (spatial + 1, spatial + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(
            f"{name}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but "
            f"got{colon} {[*shape]}"
        )
    outputs = _sizes(name, sizes, shape[-spatial:])
    if min(outputs) < 0:
        raise RuntimeError(_negative(name, shape, outputs))
    for dim in range(-spatial, 0):
        if not shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch "
                f"dimensions, but input has sizes {[*shape]} with dimension "
                f"{dim + len(shape)} being empty"
            )
    return Bins(shape[-spatial:], outputs)


def _sizes(name: str, sizes: Outputs, lengths: Shape) -> Shape:
    given = [sizes] if sizes is None or isinstance(sizes, INTEGERS) else list(sizes)
    if len(given) == 1:
        given *= len(lengths)
    if len(given) != len(lengths):
        where = (
            "(): internal error: output_size.size()"
            if "max" in name
            else ": output_size"
        )
        raise RuntimeError(f"{name}{where} must be {len(lengths)}")
    return tuple(
        length if size is None else size
        for size, length in zip(given, lengths, strict=True)
    )


def _single(name: str, sizes: Outputs) -> int | None:
    if sizes is None or isinstance(sizes, INTEGERS):
        return sizes
    if len(sizes) != 1:
        raise RuntimeError(
            f"{name}() argument 'output_size' should contain one int (got {len(sizes)})"
        )
    return sizes[0]


def _negative(name: str, shape: Shape, outputs: Shape) -> str:
    if "max" in name:
        first = next(size for size in outputs if size < 0)
        result = [*shape[: -len(outputs)], *outputs]
        return f"Trying to create tensor with negative dimension {first}: {result}"
    return (
        f"{name}: elements of output_size must be greater than or equal to 0 but "
        f"received {{{', '.join(map(str, outputs))}}}"
    )


def _check_1d(name: str, shape: Shape) -> None:
    if len(shape) not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for {name})"
        )


PUBLIC = [
    *names("gv.f F.f", adaptive_avg_pool1d),
    *names("F.f", adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d),
    *names("F.f", adaptive_max_pool2d, adaptive_max_pool3d),
]
