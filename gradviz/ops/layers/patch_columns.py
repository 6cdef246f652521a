"""The patches of an image that a kernel meets, as columns, and columns added up again.

Note [One dimension after the other]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A kernel of 3 x 3 meets nine shifted images: nine times as many rows as the image has,
each a loop of few elements. So patches are taken along the last dimension first, which
takes but three times as many rows; then along the one before it, where all that lies
behind a position is one long row. Columns are added up the other way round. Positions
in the padding are left out: no padded image is ever made.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape


class Meeting(NamedTuple):
    """Overlap of outputs and input at one kernel position, along a dimension.

    Attributes:
        outputs: Slice of the outputs, without a step.
        inputs: Slice of the input.
    """

    outputs: slice
    inputs: slice


class Geometry(NamedTuple):
    """Geometry of a kernel over an input, one number per spatial dimension.

    Attributes:
        stride: Steps between neighboring outputs.
        padding: Zeros before the first and after the last element of the input.
        dilation: Steps between neighboring elements of the kernel.
        groups: Number of groups of channels, which do not mix.
    """

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int = 1

    def output_lengths(self, lengths: Shape, kernel: Shape) -> Shape:
        """The spatial lengths of the output."""
        return tuple(
            (length + 2 * padding - dilation * (size - 1) - 1) // stride + 1
            for length, size, stride, padding, dilation in zip(
                lengths, kernel, self.stride, self.padding, self.dilation, strict=True
            )
        )

    def with_place(self) -> "Geometry":
        """The same, with a dimension of one place before the others."""
        stride, padding, dilation, groups = self
        return Geometry((1, *stride), (0, *padding), (1, *dilation), groups)

    def meetings(
        self, dim: int, size: int, length: int, count: int
    ) -> Sequence[Meeting]:
        """For each position in the kernel, where outputs meet the input.

        Args:
            dim: The spatial dimension.
            size: Of the kernel.
            length: Of the input.
            count: Of the outputs.
        """
        steps = self.stride[dim], self.padding[dim], self.dilation[dim]
        return _meetings(steps, size, length, count)


@lru_cache(maxsize=256)
def _meetings(
    steps: tuple[int, int, int], size: int, length: int, count: int
) -> Sequence[Meeting]:
    """See `Geometry.meetings`; layers ask for the same each time."""
    stride, padding, dilation = steps
    found = []
    for position in range(size):
        offset = position * dilation - padding
        first = max(0, -(offset // stride))
        stop = max(first, min(count, -((offset - length) // stride)))
        begin = first * stride + offset
        end = max(begin, begin + (stop - first - 1) * stride + 1)
        found.append(Meeting(slice(first, stop), slice(begin, end, stride)))
    return found


def columns_of(
    x: Array, kernel: Shape, geometry: Geometry, outputs: Shape, first: int = 0
) -> Array:
    """The patches of images that a kernel meets, with zeros in the padding.

    Args:
        x: Shape ``(N, C, ..., *lengths)``.
        kernel: The lengths of the kernel.
        geometry: Geometry of its movement.
        outputs: Number of patches to take along each dimension.
        first: The first spatial dimension to take patches along; those before it stay.

    Returns:
        Shape ``(N, C, *kernel, ..., *outputs)``, of those dimensions; it may be a view.
    """
    for dim in reversed(range(first, len(kernel))):
        x = _taken(x, dim - len(kernel), kernel[dim], geometry, outputs[dim])
    return x


def sum_columns(
    columns: Array,
    lengths: Shape,
    geometry: Geometry,
    first: int = 0,
    out: Array | None = None,
) -> Array:
    """Add the elements of `columns_of` up at their sources: ``(N, C, *lengths)``.

    It may be a view of `columns`, if `out` is not given.
    """
    for dim in range(first, len(lengths)):
        target = out if dim == len(lengths) - 1 else None
        columns = _added_up(columns, dim - len(lengths), lengths[dim], geometry, target)
    return columns


def at(x: Array, dim: int, places: slice) -> Array:
    """A view of some places along a dimension, counted from the end."""
    return x[(..., places, *(slice(None),) * (-1 - dim))]


def add_at(target: Array, dim: int, places: slice, values: Array) -> None:
    """Add as many values to some places along a dimension, counted from the end."""
    place = at(target, dim, places)
    place += values.reshape(place.shape)


def put_at(target: Array, dim: int, places: slice, values: Array) -> None:
    """Put as many values there, and zeros everywhere else along this dimension."""
    place = at(target, dim, places)
    if places.step not in (None, 1):
        target[...] = 0
    else:  # just where nothing goes
        if places.start:
            at(target, dim, slice(places.start))[...] = 0
        if places.stop < target.shape[dim]:
            at(target, dim, slice(places.stop, None))[...] = 0
    assign(place, ..., values.reshape(place.shape))


def _taken(x: Array, dim: int, size: int, geometry: Geometry, count: int) -> Array:
    """The elements at each position in a kernel along a dimension: a new axis 2."""
    meetings = geometry.meetings(dim, size, x.shape[dim], count)
    if size == 1 and meetings[0].outputs == slice(0, count):
        return at(x, dim, meetings[0].inputs)[:, :, None]
    shape = [*x.shape[:2], size, *x.shape[2:]]
    shape[dim] = count
    result: Array = np.empty_like(x, shape=tuple(shape), order="C")
    for position, (outputs, inputs) in enumerate(meetings):
        put_at(result[:, :, position], dim, outputs, at(x, dim, inputs))
    return result


def _added_up(
    columns: Array, dim: int, length: int, geometry: Geometry, out: Array | None
) -> Array:
    """Add columns over kernel positions at their places along a dimension."""
    size, count = columns.shape[2], columns.shape[dim]
    meetings = geometry.meetings(dim, size, length, count)
    if out is None:
        if size == 1 and meetings[0] == (slice(0, count), slice(0, length, 1)):
            return columns[:, :, 0]
        shape = [*columns.shape[:2], *columns.shape[3:]]
        shape[dim] = length
        out = np.empty_like(columns, shape=tuple(shape), order="C")
    put = put_at
    for position, (outputs, inputs) in enumerate(meetings):
        put(out, dim, inputs, at(columns[:, :, position], dim, outputs))
        put = add_at
    return out
