"""Sums, means, extremes: fewer elements out than in."""

from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.arithmetic import maximum, minimum
from gradviz.ops.differentiable import differentiable
from gradviz.ops.shape import broadcast_to, reshape
from gradviz.ops.variable import Value, Variable, raw, variable

#: One dimension, several, or None for all; negative ones count from the end.
Dims: TypeAlias = int | tuple[int, ...] | None


class Extremes(NamedTuple):
    """What ``max`` and ``min`` along a dimension return.

    Attributes:
        values: The largest or smallest elements.
        indices: Where along the dimension they were; the first of equals.
    """

    values: Value
    indices: Value


def _sum(x: Array, dim: Dims, keepdim: bool) -> Array:
    # The method: numpy.sum calls it after a microsecond of checks.
    dtype = np.int64 if x.dtype.kind in "biu" else None
    return x.sum(axis=dim, keepdims=keepdim, dtype=dtype)


def _mean(x: Array, dim: Dims, keepdim: bool) -> Array:
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a "
            f"floating point or complex dtype. Got: {x.dtype}"
        )
    # Not numpy.mean, which warns of what PyTorch answers with NaN: nothing to average.
    count = _count(x.shape, dim)
    total = x.sum(axis=dim, keepdims=keepdim)
    return total / count if count else total * np.nan


@differentiable("SumBackward0", x=lambda grad, x_shape: broadcast_to(grad, x_shape))
def _sum_all(x: Array) -> Array:
    return _sum(x, None, keepdim=False)


@differentiable(
    "SumBackward1",
    x=lambda grad, x_shape, dim: broadcast_to(_kept(grad, x_shape, dim), x_shape),
)
def _sum_dim(x: Array, dim: Dims, keepdim: bool) -> Array:
    return _sum(x, dim, keepdim)


@differentiable(
    "MeanBackward0",
    x=lambda grad, x_shape: broadcast_to(grad, x_shape) / _count(x_shape, None),
)
def _mean_all(x: Array) -> Array:
    return _mean(x, None, keepdim=False)


@differentiable(
    "MeanBackward1",
    x=lambda grad, x_shape, dim: (
        broadcast_to(_kept(grad, x_shape, dim), x_shape) / _count(x_shape, dim)
    ),
)
def _mean_dim(x: Array, dim: Dims, keepdim: bool) -> Array:
    return _mean(x, dim, keepdim)


def _evenly(grad: Gradient, x: Gradient, result: Gradient, dim: Dims) -> Gradient:
    """The gradient of an extreme, in equal parts to all elements that equal it."""
    mask = raw(x) == raw(_kept(result, x.shape, dim))
    count = np.sum(mask, axis=dim, keepdims=True)
    return mask * (_kept(grad, x.shape, dim) / count)


@differentiable(
    "MaxBackward1", x=lambda grad, x, result: _evenly(grad, x, result, None)
)
def _max_all(x: Array) -> Array:
    return np.max(x)


@differentiable(
    "MinBackward1", x=lambda grad, x, result: _evenly(grad, x, result, None)
)
def _min_all(x: Array) -> Array:
    return np.min(x)


@differentiable("AmaxBackward0", x=_evenly)
def _amax(x: Array, dim: Dims, keepdim: bool) -> Array:
    return np.max(x, axis=dim, keepdims=keepdim)


@differentiable("AminBackward0", x=_evenly)
def _amin(x: Array, dim: Dims, keepdim: bool) -> Array:
    return np.min(x, axis=dim, keepdims=keepdim)


def _take(x: Array, indices: Array, dim: int, keepdim: bool) -> Array:
    """The elements at `indices` along `dim`, which have a length of 1 there."""
    if x.ndim == 0:
        return x
    taken = np.take_along_axis(x, indices, axis=dim)
    return taken if keepdim else np.squeeze(taken, axis=dim)


_max_dim = differentiable(
    "MaxBackward0",
    arrays=("indices",),
    x=lambda grad, x_shape, indices, dim: _put(grad, x_shape, indices, dim),
)(_take)
_min_dim = differentiable(
    "MinBackward0",
    arrays=("indices",),
    x=lambda grad, x_shape, indices, dim: _put(grad, x_shape, indices, dim),
)(_take)


@differentiable(
    "ScatterBackward0",
    arrays=("indices",),
    x=lambda grad, x_shape, indices, dim: reshape(
        _max_dim(grad, indices, dim, True), x_shape
    ),
)
def _put(x: Array, shape: tuple[int, ...], indices: Array, dim: int) -> Array:
    """Zeros with the elements of `x` where `_take` takes them from."""
    result = np.zeros_like(x, shape=shape)
    if not shape:
        return result + x
    np.put_along_axis(result, indices, np.reshape(x, indices.shape), axis=dim)
    return result


def sum(
    x: Value,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    axis: Dims = None,
    keepdims: bool = False,
) -> Value:
    """The sum along `dim`, or of all elements.

    Args:
        x: What to sum; sums of integers and booleans are int64.
        dim: Along which dimensions.
        keepdim: Keep them, with length 1.
        axis: NumPy's name of `dim`.
        keepdims: NumPy's name of `keepdim`.
    """
    dim = axis if dim is None else dim
    keepdim = keepdim or keepdims
    if dim is None and not keepdim:
        return _sum_all(x)
    return _sum_dim(x, dim, keepdim)


def mean(x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """The mean along `dim`, or of all elements.

    Raises:
        RuntimeError: `x` does not have floats.
    """
    if dim is None and not keepdim:
        return _mean_all(x)
    return _mean_dim(x, dim, keepdim)


def max(x: Value, dim: Value = None, keepdim: bool = False) -> Value:
    """The largest element; with a dimension `Extremes`; of two tensors `maximum`."""
    if isinstance(dim, Variable):
        return maximum(x, dim)
    if dim is None:
        return _max_all(x)
    indices = _indices(np.argmax, x, dim)
    return Extremes(_max_dim(x, indices, dim, keepdim), _shown(indices, dim, keepdim))


def min(x: Value, dim: Value = None, keepdim: bool = False) -> Value:
    """The smallest element; with a dimension `Extremes`; of two tensors `minimum`."""
    if isinstance(dim, Variable):
        return minimum(x, dim)
    if dim is None:
        return _min_all(x)
    indices = _indices(np.argmin, x, dim)
    return Extremes(_min_dim(x, indices, dim, keepdim), _shown(indices, dim, keepdim))


def amax(x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """The largest elements; equal ones share the gradient."""
    return _amax(x, dim, keepdim)


def amin(x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """The smallest elements; equal ones share the gradient."""
    return _amin(x, dim, keepdim)


# --- not differentiable -----------------------------------------------------------


def argmax(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Where the largest element is: along `dim`, or in the flattened array."""
    return _like(x, np.argmax(raw(x), axis=dim, keepdims=keepdim))


def argmin(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Where the smallest element is: along `dim`, or in the flattened array."""
    return _like(x, np.argmin(raw(x), axis=dim, keepdims=keepdim))


def all(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Whether all elements are true."""
    return _like(x, np.all(raw(x), axis=dim, keepdims=keepdim))


def any(x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """Whether an element is true."""
    return _like(x, np.any(raw(x), axis=dim, keepdims=keepdim))


def _like(x: Value, result: Array) -> Value:
    return variable(result) if isinstance(x, Variable) else result


def _indices(find: Value, x: Value, dim: int) -> Array:
    array = raw(x)
    return find(array, axis=dim if array.ndim else None, keepdims=array.ndim > 0)


def _shown(indices: Array, dim: int, keepdim: bool) -> Value:
    squeezed = indices if keepdim or not indices.ndim else np.squeeze(indices, axis=dim)
    return variable(squeezed)


def _axes(ndim: int, dim: Dims) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else dim
    return tuple(one % ndim for one in dims) if ndim else ()


def _count(shape: tuple[int, ...], dim: Dims) -> int:
    return prod(shape[axis] for axis in _axes(len(shape), dim))


def _kept(reduced: Gradient, shape: tuple[int, ...], dim: Dims) -> Gradient:
    """A result of a reduction with the dimensions back that it may have lost."""
    axes = _axes(len(shape), dim)
    return reshape(
        reduced, tuple(1 if i in axes else size for i, size in enumerate(shape))
    )
