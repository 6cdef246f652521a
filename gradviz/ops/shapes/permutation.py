"""Dimensions in another order: views, all of them."""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Dims, Shape, several, wrap_dim
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.shape import alias
from gradviz.ops.shapes.view_in_place import becoming
from gradviz.ops.variables.variable import Value, raw


def _swapped(x: Array, dim0: int, dim1: int) -> Array:
    return np.swapaxes(x, dim0, dim1) if x.ndim else x[...]


_transpose = differentiable(
    "TransposeBackward0",
    view=True,
    x=lambda grad, dim0, dim1: transpose(grad, dim0, dim1),
)(_swapped)
_transpose_in_place = differentiable(
    "TransposeBackward1",
    view=True,
    x=lambda grad, dim0, dim1: transpose(grad, dim0, dim1),
)(_swapped)


def _reversed(x: Array) -> Array:
    return x.T


def _turned_back(grad: Gradient) -> Gradient:
    """Return the transpose of a gradient, or the tensor it is a transpose of.

    The gradient of a layer's weight is such a view, for it is computed as the weight
    lies in memory: a leaf can keep the matrix itself, but no view.
    """
    if type(grad) is not np.ndarray:
        return t(grad)
    base = grad.base
    if (
        type(base) is np.ndarray
        and base.strides == grad.strides[::-1]
        and base.shape == grad.shape[::-1]
        and base.dtype == grad.dtype
    ):
        return base
    return grad.T


_t = differentiable("TBackward0", view=True, x=lambda grad: _turned_back(grad))(
    _reversed
)
_t_in_place = differentiable("TBackward1", view=True, x=lambda grad: t(grad))(_reversed)


@differentiable(
    "PermuteBackward0", view=True, x=lambda grad, dims: _permute(grad, _inverse(dims))
)
def _permute(x: Array, dims: Shape) -> Array:
    return np.transpose(x, dims)


def transpose(input: Value, dim0: int, dim1: int) -> Value:
    """Two dimensions exchanged.

    Raises:
        IndexError: There is no such dimension.
    """
    ndim = raw(input).ndim
    return _transpose(input, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))


def swapaxes(input: Value, axis0: int, axis1: int) -> Value:
    """`transpose`, with NumPy's names of the axes."""
    return transpose(input, axis0, axis1)


def transpose_itself(x: Value, dim0: int, dim1: int) -> Value:
    """`transpose` as its form in place records it."""
    ndim = raw(x).ndim
    return _transpose_in_place(x, wrap_dim(dim0, ndim), wrap_dim(dim1, ndim))


def t(input: Value) -> Value:
    """A matrix with its dimensions exchanged; fewer dimensions stay as they are.

    Raises:
        RuntimeError: There are more than two dimensions.
    """
    _check_matrix("t", raw(input))
    return _t(input)


def t_itself(x: Value) -> Value:
    """`t` as its form in place records it."""
    _check_matrix("t_", raw(x))
    return _t_in_place(x)


def _check_matrix(name: str, x: Array) -> None:
    if x.ndim > 2:
        raise RuntimeError(
            f"{name}() expects a tensor with <= 2 dimensions, but self is {x.ndim}D"
        )


def permute(input: Value, dims: Sequence[int]) -> Value:
    """The dimensions in another order.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: A dimension is missing, or named twice.
    """
    ndim = raw(input).ndim
    if len(dims) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not "
            f"match the length of the desired ordering of dimensions i.e. "
            f"input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = tuple([wrap_dim(dim, ndim) for dim in dims])
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return _permute(input, wrapped)


def movedim(input: Value, source: Dims, destination: Dims) -> Value:
    """Dimensions of `source` moved to `destination`; the others keep their order.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There are not as many of the one as of the other, or one is named
            twice.
    """
    ndim = raw(input).ndim
    sources = several(source)
    destinations = several(destination)
    if len(sources) != len(destinations):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source "
            f"({list(sources)} dims) should contain the same number of dims as "
            f"destination ({list(destinations)} dims)"
        )
    starts = tuple(wrap_dim(dim, ndim) for dim in sources)
    ends = tuple(wrap_dim(dim, ndim) for dim in destinations)
    for wrapped, what, given in (
        (starts, "source", sources),
        (ends, "destination", destinations),
    ):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(given)})")
    order = [dim for dim in range(ndim) if dim not in starts]
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return _permute(input, tuple(order)) if ndim else alias(input)


def matrix_transpose(x: Value) -> Value:
    """The last two dimensions exchanged: the attribute ``mT``.

    Raises:
        RuntimeError: There are less than two.
    """
    if raw(x).ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{raw(x).ndim}-D tensor."
        )
    return _transpose(x, raw(x).ndim - 2, raw(x).ndim - 1)


def adjoint(input: Value) -> Value:
    """The last two dimensions exchanged, and complex numbers conjugated.

    Raises:
        RuntimeError: There are less than two.
    """
    if raw(input).ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. "
            f"Got {raw(input).ndim}-D tensor."
        )
    return conj(matrix_transpose(input))


def conjugate_transpose(x: Value) -> Value:
    """A matrix transposed and conjugated: the attribute ``H``.

    Raises:
        RuntimeError: There are other than two dimensions.
    """
    if raw(x).ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got "
            f"{raw(x).ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" * (raw(x).ndim > 2))
        )
    return adjoint(x) if raw(x).ndim else x


def reversed_dims(x: Value) -> Value:
    """The dimensions in reverse order: the attribute ``T``."""
    return _permute(x, tuple(reversed(range(raw(x).ndim))))


def _inverse(dims: Shape) -> Shape:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


PUBLIC = [
    *names("gv.f", permute),
    *names("gv.f x.f", adjoint, movedim, swapaxes, t, transpose, moveaxis=movedim),
    *names("gv.f x.f", swapdims=transpose),
    *names("x.f", swapaxes_=becoming(transpose_itself)),
    *names("x.f", swapdims_=becoming(transpose_itself), t_=becoming(t_itself)),
    *names("x.f", transpose_=becoming(transpose_itself)),
]
