"""Elements of the same shape in other places: flipped, rolled, turned."""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import INTEGERS, Dims, Shape, several, wrap_dim
from gradviz.ops.conventions.memory_layout import in_c_order, laid_out_like
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw


@differentiable("FlipBackward0", x=lambda grad, dims: _flip(grad, dims))
def _flip(x: Array, dims: Shape) -> Array:
    return laid_out_like(np.flip(x, dims).copy(), x)


@differentiable(
    "RollBackward0",
    x=lambda grad, shifts, dims: _roll(grad, tuple(-shift for shift in shifts), dims),
)
def _roll(x: Array, shifts: Shape, dims: Shape | None) -> Array:
    return in_c_order(np.roll(x, shifts if dims else sum(shifts), dims))


@differentiable("Rot90Backward0", x=lambda grad, k, dims: _rot90(grad, -k, dims))
def _rot90(x: Array, k: int, dims: tuple[int, int]) -> Array:
    return np.rot90(x, k, dims).copy()


def flip(input: Value, dims: Dims) -> Value:
    """The elements in reverse order along dimensions, as a copy.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: One is named twice.
    """
    ndim = raw(input).ndim
    wrapped = tuple(wrap_dim(dim, ndim) for dim in several(dims))
    for i, dim in enumerate(wrapped):
        if dim in wrapped[:i]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return _flip(input, wrapped if ndim else ())


def fliplr(input: Value) -> Value:
    """The elements of the second dimension in reverse order.

    Raises:
        RuntimeError: There is no second dimension.
    """
    if raw(input).ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(input, (1,))


def flipud(input: Value) -> Value:
    """The elements of the first dimension in reverse order.

    Raises:
        RuntimeError: There is no dimension.
    """
    if raw(input).ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(input, (0,))


def roll(input: Value, shifts: int | Sequence[int], dims: Dims = None) -> Value:
    """Move the elements along dimensions; those at the end come in again.

    Args:
        input: Tensor to roll.
        shifts: Distance for each of `dims`.
        dims: Dimensions to roll along; None rolls the flattened elements.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There are not as many shifts as dimensions.
    """
    steps = (shifts,) if isinstance(shifts, INTEGERS) else tuple(shifts)
    if not steps:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        if len(steps) > 1:
            raise RuntimeError(
                f"shifts and dimensions must align. shifts: {len(steps)}, dims:0"
            )
        return _roll(input, steps, None)
    named = several(dims)
    if len(named) != len(steps):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(named)}"
        )
    ndim = raw(input).ndim
    if not ndim:
        raise IndexError(
            f"Dimension specified as {named[0]} but tensor has no dimensions"
        )
    wrapped = tuple(wrap_dim(dim, ndim) for dim in named)
    return _roll(input, steps, wrapped)


def rot90(input: Value, k: int = 1, dims: Sequence[int] = (0, 1)) -> Value:
    """The elements turned by 90 degrees `k` times, from the first of two dimensions.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: These are not two different dimensions.
    """
    ndim = raw(input).ndim
    if len(dims) != 2:
        raise RuntimeError(
            f"expected total rotation dims == 2, but got dims = {len(dims)}"
        )
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and "
            f"dim1 = {dims[1]}"
        )
    for i, dim in enumerate(dims):
        if not -ndim <= dim < ndim:
            raise RuntimeError(f"Rotation dim{i} out of range, dim{i} = {dim}")
    return _rot90(input, k, (dims[0] % ndim, dims[1] % ndim))


PUBLIC = [
    *names("gv.f", flip),
    *names("gv.f x.f", fliplr, flipud, roll, rot90),
]
