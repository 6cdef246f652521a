"""The largest and the smallest elements, and where they are."""

from collections.abc import Callable
from typing import Final, overload

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import (
    Dims,
    Shape,
    kept_shape,
    wrap_dim,
    wrap_dims,
)
from gradviz.ops.conventions.memory_layout import in_c_order
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import masked_fill, maximum, minimum
from gradviz.ops.reductions.scatter import scatter_number
from gradviz.ops.shapes.broadcasting import restored
from gradviz.ops.shapes.gathering import gather_at, mesh
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables import return_types
from gradviz.ops.variables.return_types import Extremes, ExtremesClass, Range
from gradviz.ops.variables.variable import Value, Variable, raw, variable

#: Parts of numpy.max and numpy.min without their first checks.
_largest: Final[Callable[..., Array]] = np.maximum.reduce
_smallest: Final[Callable[..., Array]] = np.minimum.reduce

# --- of all elements, or of several dimensions --------------------------------------


def evenly(grad: Gradient, x: Gradient, result: Gradient, dims: Shape) -> Gradient:
    """The gradient of an extreme, in equal parts to all elements that equal it."""
    array, extreme = raw(x), restored(raw(result), x.shape, dims)
    chosen = array == extreme
    if array.dtype.kind == "f":
        chosen |= np.isnan(array) & np.isnan(extreme)
    count = chosen.sum(axis=dims, keepdims=True)
    # Not `restored`: PyTorch has one node here, a view.
    grad = reshape(grad, kept_shape(x.shape, dims))
    return grad / count.astype(array.dtype) * chosen


def evenly_of_all(grad: Gradient, x: Gradient, result: Gradient) -> Gradient:
    """`evenly`, of all elements.

    Source: torch/csrc/autograd/FunctionsManual.cpp, evenly_distribute_backward.
    """
    array, extreme = raw(x), raw(result)
    # Where nobody asks, nobody waits for a device: so no `if` here.
    chosen = np.where(np.isnan(extreme), np.isnan(array), array == extreme)
    count = chosen.sum(keepdims=True).reshape(()).astype(array.dtype)
    return masked_fill(np.zeros_like(array), chosen, grad / count)


@differentiable("MaxBackward1", x=evenly_of_all)
def _max_all(x: Array, dims: Shape) -> Array:
    return _largest(x, axis=dims)


@differentiable("MinBackward1", x=evenly_of_all)
def _min_all(x: Array, dims: Shape) -> Array:
    return _smallest(x, axis=dims)


@differentiable("AmaxBackward0", x=evenly)
def _amax(x: Array, dims: Shape, keepdim: bool) -> Array:
    return in_c_order(_largest(x, axis=dims, keepdims=keepdim))


@differentiable("AminBackward0", x=evenly)
def _amin(x: Array, dims: Shape, keepdim: bool) -> Array:
    return in_c_order(_smallest(x, axis=dims, keepdims=keepdim))


@differentiable(
    "AminmaxBackward0",
    results=("smallest", "largest"),
    x=lambda grads, x, smallest, largest, dims: _both(
        grads, x, (smallest, largest), dims
    ),
)
def _aminmax(x: Array, dims: Shape, keepdim: bool) -> Range:
    return Range(
        in_c_order(_smallest(x, axis=dims, keepdims=keepdim)),
        in_c_order(_largest(x, axis=dims, keepdims=keepdim)),
    )


def _both(
    grads: tuple[Gradient, Gradient],
    x: Gradient,
    results: tuple[Gradient, Gradient],
    dims: Shape,
) -> Gradient:
    parts = [
        evenly(grad, x, extreme, dims)
        for grad, extreme in zip(grads, results, strict=True)
        if grad is not None
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


# --- along one dimension ------------------------------------------------------------


def put_back(grad: Gradient, x_shape: Shape, indices: Gradient, dim: int) -> Gradient:
    """The gradient of elements that were chosen along `dim`, where they were."""
    if not x_shape:
        return reshape(grad, ())
    kept = kept_shape(x_shape, (dim,))
    indices = raw(indices)
    if indices.ndim < len(x_shape):
        grad, indices = restored(grad, x_shape, (dim,)), indices.reshape(kept)
    return _put_at(None, grad, x_shape, dim, indices)


@differentiable(
    "ScatterBackward0",
    arrays=("index",),
    onto=lambda grad, dim, index: scatter_number(grad, dim, index, 0),
    x=lambda grad, dim, index: gather_at(grad, dim, index),
)
def _put_at(onto: None, x: Array, shape: Shape, dim: int, index: Array) -> Array:
    """Zeros of `shape`, with the elements of `x` where `gather_at` finds them."""
    del onto
    result = np.zeros_like(x, shape=shape)
    assign(result, mesh(index, dim, len(shape)), x)
    return result


def chosen(
    kind: ExtremesClass, x: Array, indices: Array, dim: int, keepdim: bool
) -> Extremes:
    """The elements at `indices`, which have a length of 1 along `dim`."""
    if not x.ndim:
        return kind(np.copy(x), indices.reshape(()))
    values = np.take_along_axis(x, indices, axis=dim)
    if keepdim:
        return kind(values, indices)
    return kind(np.squeeze(values, axis=dim), np.squeeze(indices, axis=dim))


@differentiable(
    "MaxBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _max(x: Array, dim: int, keepdim: bool) -> Extremes:
    axis = dim if x.ndim else None
    return return_types.max(
        in_c_order(_largest(x, axis=axis, keepdims=keepdim)),
        np.argmax(x, axis=axis, keepdims=keepdim),
    )


@differentiable(
    "MinBackward0",
    results=("values", "indices"),
    plain=("indices",),
    x=put_back,
)
def _min(x: Array, dim: int, keepdim: bool) -> Extremes:
    axis = dim if x.ndim else None
    return return_types.min(
        in_c_order(_smallest(x, axis=axis, keepdims=keepdim)),
        np.argmin(x, axis=axis, keepdims=keepdim),
    )


# --- what users call --------------------------------------------------------------


@overload
def max(input: Value, dim: None = None) -> Value: ...
@overload
def max(input: Value, dim: int, keepdim: bool = False) -> Extremes: ...
@overload
def max(input: Value, other: Value, /) -> Value: ...
@overload
def max(input: Value, *, other: Value) -> Value: ...
@numpy_names
def max(
    input: Value,
    dim: Value = None,
    keepdim: bool | None = None,
    *,
    other: Value = None,
) -> Value:
    """The largest element; along a dimension with its indices; or of two tensors.

    Args:
        input: Tensor to look at.
        dim: Dimension to reduce; None for the largest of all; or the other tensor.
        keepdim: Keep the dimension, with length 1; not if None.
        other: The other tensor, by name.

    Returns:
        A tensor; with a dimension the named tuple ``(values, indices)``, where of equal
        elements the first is taken. Without one, equal elements share the gradient.

    Raises:
        IndexError: There is no such dimension, or it is empty.
        RuntimeError: There is no element.
    """
    if isinstance(dim, Variable) or other is not None:
        return maximum(input, _other("max", dim, keepdim, other))
    if dim is None:
        return _max_all(input, _all_dims("max", input))
    return _max(input, _dim_of_extreme("max", input, dim), bool(keepdim))


@overload
def min(input: Value, dim: None = None) -> Value: ...
@overload
def min(input: Value, dim: int, keepdim: bool = False) -> Extremes: ...
@overload
def min(input: Value, other: Value, /) -> Value: ...
@overload
def min(input: Value, *, other: Value) -> Value: ...
@numpy_names
def min(
    input: Value,
    dim: Value = None,
    keepdim: bool | None = None,
    *,
    other: Value = None,
) -> Value:
    """The smallest element; along a dimension with its indices; or of two tensors.

    See `max`, also for what is raised.
    """
    if isinstance(dim, Variable) or other is not None:
        return minimum(input, _other("min", dim, keepdim, other))
    if dim is None:
        return _min_all(input, _all_dims("min", input))
    return _min(input, _dim_of_extreme("min", input, dim), bool(keepdim))


def _other(function: str, dim: Value, keepdim: bool | None, other: Value) -> Value:
    """Return the only further argument of a call; refuse several."""
    given = [one for one in (dim, keepdim, other) if one is not None]
    if len(given) > 1:
        listed = ", ".join(type(one).__name__ for one in given)
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got (Tensor, "
            f"{listed}), but expected (input), (input, dim, keepdim) or (input, other)"
        )
    return given[0]


@numpy_names
def amax(input: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    """The largest elements along dimensions; equal ones share the gradient.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    return _amax(input, _checked_dims("amax", input, dim), keepdim)


@numpy_names
def amin(input: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    """The smallest elements along dimensions; equal ones share the gradient.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    return _amin(input, _checked_dims("amin", input, dim), keepdim)


@numpy_names
def aminmax(input: Value, *, dim: int | None = None, keepdim: bool = False) -> Range:
    """The smallest and the largest elements, as a named tuple ``(min, max)``.

    Raises:
        IndexError: There is no such dimension, or it is empty.
        RuntimeError: There is no element.
    """
    dims = (
        tuple(range(raw(input).ndim))
        if dim is None
        else _checked_dims("aminmax", input, dim)
    )
    if not raw(input).size and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the "
            "operation has no identity."
        )
    result: Range = _aminmax(input, dims, keepdim)
    return result


@numpy_names
def argmax(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Return the index of the largest element, along `dim` or flattened.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    return _position("argmax", np.argmax, input, dim, keepdim)


@numpy_names
def argmin(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Return the index of the smallest element, along `dim` or flattened.

    Raises:
        IndexError: There is no such dimension, or it is empty.
    """
    return _position("argmin", np.argmin, input, dim, keepdim)


def _position(
    name: str, find: Value, x: Value, dim: int | None, keepdim: bool
) -> Value:
    array = raw(x)
    check_kinds(name, "biuf", array)
    if dim is None:
        if not array.size:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() "
                f"== 0."
            )
        axis = None
    else:
        axis = wrap_dim(dim, array.ndim)
        check_length(name, array, axis)
    return variable(find(array, axis=axis if array.ndim else None, keepdims=keepdim))


# --- what is checked ----------------------------------------------------------------


def check_length(name: str, x: Array, dim: int) -> None:
    """Raise PyTorch's error if there is nothing to choose from along `dim`."""
    if x.ndim and not x.shape[dim]:
        raise IndexError(
            f"{name}(): Expected reduction dim {dim} to have non-zero size."
        )


def _all_dims(name: str, x: Value) -> Shape:
    array = raw(x)
    check_kinds(name, "biuf", array)
    if not array.size:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            f"Specify the reduction dim with the 'dim' argument."
        )
    return tuple(range(array.ndim))


def _dim_of_extreme(name: str, x: Value, dim: int) -> int:
    array = raw(x)
    dim = wrap_dim(dim, array.ndim)
    check_length(name, array, dim)
    check_kinds(name, "biuf", array)
    return dim


def _checked_dims(name: str, x: Value, dims: Dims) -> Shape:
    array = raw(x)
    wrapped = wrap_dims(dims, array.ndim)
    if not array.size and dims in (None, ()):
        return _all_dims(name, x)
    for dim in wrapped:
        check_length(name, array, dim)
    check_kinds(name, "biuf", array)
    return wrapped


PUBLIC = [
    *names("gv.f(out=) x.f", amax, amin, aminmax, argmax, argmin, max, min),
    *names("np.f(axis=)", argmax, argmin, max=amax, min=amin),
]
