"""Copies of a tensor in which a view of it is replaced."""

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, at, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.diagonals import diagonal
from gradviz.ops.shapes.slicing import select_entry, slice_part
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "SelectScatterBackward0",
    x=lambda grad, dim, index: _replace_entry(grad, 0, dim, index),
    source=lambda grad, dim, index: select_entry(grad, dim, index),
)
def _replace_entry(x: Array, source: Array, dim: int, index: int) -> Array:
    result = np.copy(x)
    assign(result, at(dim, index), source)
    return result


@differentiable(
    "SliceScatterBackward0",
    x=lambda grad, dim, part: _replace_slice(grad, 0, dim, part),
    source=lambda grad, dim, part: slice_part(grad, dim, part),
)
def _replace_slice(x: Array, source: Array, dim: int, part: slice) -> Array:
    result = np.copy(x)
    assign(result, at(dim, part), source)
    return result


@differentiable(
    "DiagonalScatterBackward0",
    x=lambda grad, offset, dim1, dim2: _replace_diagonal(grad, 0, offset, dim1, dim2),
    source=lambda grad, offset, dim1, dim2: diagonal(grad, offset, dim1, dim2),
)
def _replace_diagonal(
    x: Array, source: Array, offset: int, dim1: int, dim2: int
) -> Array:
    result = np.copy(x)
    matrices = np.moveaxis(result, (dim1, dim2), (-2, -1))
    first_row, first_column = max(-offset, 0), max(offset, 0)
    rows, columns = matrices.shape[-2:]
    steps = np.arange(max(min(rows - first_row, columns - first_column), 0))
    assign(matrices, (..., steps + first_row, steps + first_column), source)
    return result


def select_scatter(input: Value, src: Value, dim: int, index: int) -> Value:
    """A copy of `input` with `src` as one entry of a dimension.

    Raises:
        IndexError: There is no such dimension, or no such entry.
        RuntimeError: `src` does not have the shape of the entry.
    """
    shape = raw(input).shape
    dim = wrap_dim(dim, len(shape))
    if not shape or not -shape[dim] <= index < shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at "
            f"dimension {dim}"
        )
    _check_size(src, (*shape[:dim], *shape[dim + 1 :]))
    return _replace_entry(input, src, dim, index % shape[dim])


def slice_scatter(
    input: Value,
    src: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    """A copy of `input` with `src` as some entries of a dimension.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: `src` does not have the shape of these entries.
    """
    shape = raw(input).shape
    dim = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    part = slice(*slice(start, end, step).indices(shape[dim]))
    length = len(range(part.start, part.stop, part.step))
    _check_size(src, (*shape[:dim], length, *shape[dim + 1 :]))
    return _replace_slice(input, src, dim, part)


def diagonal_scatter(
    input: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    """A copy of `input` with `src` on a diagonal.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: `src` does not have the shape of the diagonal.
    """
    ndim = raw(input).ndim
    _check_size(src, diagonal(raw(input), offset, dim1, dim2).shape)
    return _replace_diagonal(
        input, src, offset, wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    )


def _check_size(src: Value, wanted: Shape) -> None:
    if raw(src).shape != wanted:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(raw(src).shape)}, slice size = {list(wanted)}"
        )


PUBLIC = [
    *names("gv.f x.f", diagonal_scatter, select_scatter),
    *names("gv.f(out=) x.f", slice_scatter),
]
