"""Diagonals and triangles of matrices."""

import math

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import broadcast_to
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw

# --- diagonals ----------------------------------------------------------------------


@differentiable(
    "DiagonalBackward0",
    view=True,
    x=lambda grad, x_shape, offset, dim1, dim2: _diagonal_backward(
        grad, x_shape, offset, dim1, dim2
    ),
)
def _diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    # Not numpy.diagonal: nothing can be written through its views.
    matrices = np.moveaxis(x, (dim1, dim2), (-2, -1))
    matrices = matrices[..., max(-offset, 0) :, max(offset, 0) :]
    size = min(matrices.shape[-2:])
    return np.einsum("...ii->...i", matrices[..., :size, :size])


@differentiable(
    "DiagonalBackwardBackward0",
    x=lambda grad, offset, dim1, dim2: _diagonal(grad, offset, dim1, dim2),
)
def _diagonal_backward(
    x: Array, shape: Shape, offset: int, dim1: int, dim2: int
) -> Array:
    """Zeros of `shape`, with `x` on a diagonal."""
    result = np.zeros_like(x, shape=shape)
    matrices = np.moveaxis(result, (dim1, dim2), (-2, -1))
    steps = np.arange(x.shape[-1])
    assign(matrices, (..., steps + max(-offset, 0), steps + max(offset, 0)), x)
    return result


@differentiable(
    "DiagEmbedBackward0",
    x=lambda grad, offset, dim1, dim2: _diagonal(grad, offset, dim1, dim2),
)
def _diag_embed(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    size = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    result = np.zeros_like(x, shape=tuple(shape))
    matrices = np.moveaxis(result, (dim1, dim2), (-2, -1))
    steps = np.arange(x.shape[-1])
    assign(matrices, (..., steps + max(-offset, 0), steps + max(offset, 0)), x)
    return result


@differentiable(
    "DiagonalBackward0_copy",
    x=lambda grad, x_shape, offset: _diagonal_backward(grad, x_shape, offset, 0, 1),
)
def _diagonal_copy(x: Array, offset: int) -> Array:
    return np.diagonal(x, offset).copy()


@differentiable(
    "TraceBackward0",
    x=lambda grad, x_shape: _diagonal_backward(
        broadcast_to(grad, (min(x_shape),)), x_shape, 0, 0, 1
    ),
)
def _trace(x: Array) -> Array:
    return np.trace(x)


def diagonal(input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """A diagonal of two dimensions, as a view; it becomes the last dimension.

    Args:
        input: With two dimensions at least.
        offset: Distance above the main diagonal.
        dim1: The dimension of rows.
        dim2: The dimension of columns.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The dimensions are the same.
    """
    dim1, dim2 = _two_dims("diagonal", dim1, dim2, raw(input).ndim)
    return _diagonal(input, offset, dim1, dim2)


def diag_embed(input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Zeros with the last dimension of `input` on a diagonal of two new dimensions.

    Raises:
        IndexError: There can be no such dimension.
        RuntimeError: The dimensions are the same.
    """
    dim1, dim2 = _two_dims("diagonal", dim1, dim2, raw(input).ndim + 1)
    return _diag_embed(input, offset, dim1, dim2)


def diag(input: Value, diagonal: int = 0) -> Value:
    """A diagonal of a matrix, or a matrix with a vector on a diagonal.

    Raises:
        RuntimeError: `input` is neither.
    """
    ndim = raw(input).ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 2:
        return _diagonal_copy(input, diagonal)
    return _diag_embed(input, diagonal, 0, 1)


def diagflat(input: Value, offset: int = 0) -> Value:
    """A matrix with all elements of `input` on a diagonal."""
    return _diag_embed(reshape(input, (-1,)), offset, 0, 1)


@differentiable(
    "FillDiagonalBackward0",
    x=lambda grad, wrap: fill_diagonal(grad, 0, wrap),
)
def fill_diagonal(x: Array, fill_value: float, wrap: bool = False) -> Array:
    """A copy with one number on the main diagonal of all dimensions.

    Args:
        x: With two dimensions at least; if there are more, of one length.
        fill_value: The number.
        wrap: Begin again after the end of a tall matrix.

    Raises:
        RuntimeError: There is no such diagonal.
    """
    if x.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    result = np.copy(x, order="C")  # so that `reshape` is a view
    step = 1 + sum(math.prod(x.shape[i + 1 :]) for i in range(x.ndim - 1))
    end = None if wrap or x.ndim > 2 else x.shape[1] ** 2
    result.reshape(-1)[:end:step] = fill_value
    return result


def trace(input: Value) -> Value:
    """The sum of the main diagonal of a matrix.

    Raises:
        RuntimeError: `input` is not a matrix.
    """
    if raw(input).ndim != 2:
        raise RuntimeError(
            f"trace: expected a matrix, but got tensor with dim {raw(input).ndim}"
        )
    return _trace(input)


def _two_dims(name: str, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"{name} dimensions cannot be identical {dim1}, {dim2}")
    return first, second


# --- triangles ----------------------------------------------------------------------


@differentiable("TrilBackward0", x=lambda grad, diagonal: _tril(grad, diagonal))
def _tril(x: Array, diagonal: int) -> Array:
    return np.tril(x, diagonal)


@differentiable("TriuBackward0", x=lambda grad, diagonal: _triu(grad, diagonal))
def _triu(x: Array, diagonal: int) -> Array:
    return np.triu(x, diagonal)


def tril(input: Value, diagonal: int = 0) -> Value:
    """Matrices with zeros above a diagonal.

    Raises:
        RuntimeError: There are less than two dimensions.
    """
    _check_matrices("tril", raw(input))
    return _tril(input, diagonal)


def triu(input: Value, diagonal: int = 0) -> Value:
    """Matrices with zeros below a diagonal.

    Raises:
        RuntimeError: There are less than two dimensions.
    """
    _check_matrices("triu", raw(input))
    return _triu(input, diagonal)


def _check_matrices(name: str, x: Array) -> None:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


PUBLIC = [
    *names("gv.f x.f", diag_embed, diagflat, diagonal),
    *names("gv.f(out=) x.f", diag),
    *names("gv.f(out=) x.f x.f_", tril, triu),
    *names("x.f", trace),
    *names("x.f_", fill_diagonal),
]
