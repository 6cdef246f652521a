"""Dimensions of length 1, added and taken away."""

from collections.abc import Callable
from typing import Final, overload

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import (
    INTEGERS,
    Dims,
    Shape,
    at,
    wrap_dim,
    wrap_dims,
)
from gradviz.ops.conventions.refusal import check_list
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.shapes.view_in_place import becoming
from gradviz.ops.variables.variable import Value, Variable, raw


def _squeezed(x: Array, shape: Shape) -> Array:
    return x.reshape(shape)


def _squeezing(number: int) -> Op:
    """One of PyTorch's nodes of this name: they differ in how they are called."""
    return differentiable(
        f"SqueezeBackward{number}",
        view=True,
        x=lambda grad, x_shape: with_unit_dimensions(grad, x_shape),
    )(_squeezed)


#: All dimensions, one, or several.
_SQUEEZE: Final = (_squeezing(0), _squeezing(1), _squeezing(2))
_SQUEEZE_IN_PLACE: Final = (_squeezing(3), _squeezing(4), _squeezing(5))

#: Last step of `matmul` of a vector and a matrix: PyTorch squeezes in place there.
squeeze_in_place = _SQUEEZE_IN_PLACE[1]


def _expanded(x: Array, dim: int) -> Array:
    return x[at(dim, None)]


_unsqueeze = differentiable(
    "UnsqueezeBackward0", view=True, x=lambda grad, dim: squeeze(grad, dim)
)(_expanded)
_unsqueeze_in_place = differentiable(
    "UnsqueezeBackward1", view=True, x=lambda grad, dim: squeeze(grad, dim)
)(_expanded)


def with_unit_dimensions(x: Value, shape: Shape) -> Value:
    """Return `x` with the extra dimensions of length 1 in `shape`; a node for each.

    A plain array gets its shape at once.
    """
    if not isinstance(x, Variable):
        return reshape(x, shape)
    for dim, size in enumerate(shape):
        known = raw(x).shape
        if size == 1 and (dim >= len(known) or known[dim] != 1):
            x = _unsqueeze(x, dim)
    return x


def unsqueeze(input: Value, dim: int) -> Value:
    """A new dimension of length 1 at `dim`.

    Raises:
        IndexError: There can be no such dimension.
    """
    return _unsqueeze(input, wrap_dim(dim, raw(input).ndim + 1))


def unsqueeze_itself(x: Value, dim: int) -> Value:
    """`unsqueeze` as its form in place records it."""
    return _unsqueeze_in_place(x, wrap_dim(dim, raw(x).ndim + 1))


def squeeze(input: Value, dim: Dims = None) -> Value:
    """Without dimensions of length 1: all of them, or those among `dim`.

    Raises:
        IndexError: There is no such dimension.
    """
    return _without(_SQUEEZE, input, dim)


def squeeze_itself(x: Value, dim: Dims = None) -> Value:
    """`squeeze` as its form in place records it."""
    return _without(_SQUEEZE_IN_PLACE, x, dim)


def _without(ops: tuple[Op, Op, Op], x: Value, dim: Dims) -> Value:
    squeeze_all, squeeze_one, squeeze_several = ops
    shape = raw(x).shape
    if dim is None:
        return squeeze_all(x, tuple(size for size in shape if size != 1))
    none = isinstance(dim, tuple) and not dim
    dims = () if none else wrap_dims(dim, len(shape))
    kept = tuple(size for i, size in enumerate(shape) if i not in dims or size != 1)
    return (squeeze_one if isinstance(dim, INTEGERS) else squeeze_several)(x, kept)


@overload
def atleast_1d(input: Value, /) -> Value: ...
@overload
def atleast_1d(*tensors: Value) -> tuple[Value, ...]: ...
def atleast_1d(*tensors: Value) -> Value:
    """Tensors with one dimension at least; a tuple if there are several tensors."""
    return _each(tensors, lambda x: reshape(x, (1,)) if raw(x).ndim == 0 else x)


@overload
def atleast_2d(input: Value, /) -> Value: ...
@overload
def atleast_2d(*tensors: Value) -> tuple[Value, ...]: ...
def atleast_2d(*tensors: Value) -> Value:
    """Tensors with two dimensions at least: a vector becomes a row."""

    def grown(x: Value) -> Value:
        if raw(x).ndim == 0:
            return reshape(x, (1, 1))
        return unsqueeze(x, 0) if raw(x).ndim == 1 else x

    return _each(tensors, grown)


@overload
def atleast_3d(input: Value, /) -> Value: ...
@overload
def atleast_3d(*tensors: Value) -> tuple[Value, ...]: ...
def atleast_3d(*tensors: Value) -> Value:
    """Tensors with three dimensions at least: new ones stand around a vector."""

    def grown(x: Value) -> Value:
        if raw(x).ndim == 0:
            return reshape(x, (1, 1, 1))
        if raw(x).ndim == 1:
            x = unsqueeze(x, 0)
        return unsqueeze(x, -1) if raw(x).ndim == 2 else x

    return _each(tensors, grown)


def _each(tensors: tuple[Value, ...], function: Callable[[Value], Value]) -> Value:
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return function(tensors[0])
    if len(tensors) == 1:
        tensors = tuple(tensors[0])
    check_list(tensors)
    return tuple(function(one) for one in tensors)


PUBLIC = [
    *names("gv.f", atleast_1d, atleast_2d, atleast_3d),
    *names("gv.f x.f", squeeze, unsqueeze),
    *names("x.f", squeeze_=becoming(squeeze_itself)),
    *names("x.f", unsqueeze_=becoming(unsqueeze_itself)),
    *names("np.f(axis=)", squeeze, expand_dims=unsqueeze),
]
