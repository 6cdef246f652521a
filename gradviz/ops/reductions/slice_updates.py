"""Copies of a tensor with slices of another written into it, or added."""

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import Operand, Scalar, python_number
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.scatter_reduce import Reduce, reduce_slices
from gradviz.ops.shapes.gathering import (
    check_bounds,
    check_index_vector,
    select_slices,
    slices_at,
)
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "IndexAddBackward0",
    arrays=("index",),
    x=lambda grad: grad,
    source=lambda grad, dim, index, source_shape, alpha: (
        _slices(grad, dim, index, source_shape) * alpha
    ),
)
def _index_add(x: Array, dim: int, index: Array, source: Array, alpha: Scalar) -> Array:
    result = np.copy(x)
    scaled = source if alpha == 1 else (source * alpha).astype(x.dtype)
    np.add.at(
        result,
        slices_at(x.ndim, dim, index),
        scaled.reshape(_fitting(x, dim, index)),
    )
    return result


@differentiable(
    "IndexCopyBackward0",
    arrays=("index",),
    x=lambda grad, dim, index: _index_fill(grad, dim, index, 0),
    source=lambda grad, dim, index, source_shape: _slices(
        grad, dim, index, source_shape
    ),
)
def _index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    result = np.copy(x)
    assign(
        result, slices_at(x.ndim, dim, index), source.reshape(_fitting(x, dim, index))
    )
    return result


@differentiable(
    "IndexFillBackward0",
    arrays=("index",),
    x=lambda grad, dim, index: _index_fill(grad, dim, index, 0),
)
def _index_fill(x: Array, dim: int, index: Array, value: Scalar) -> Array:
    result = np.copy(x)
    assign(result, slices_at(x.ndim, dim, index), value)
    return result


@differentiable(
    "IndexFillBackward1",
    arrays=("index",),
    x=lambda grad, dim, index: _index_fill(grad, dim, index, 0),
    value=lambda grad, dim, index: select_slices(
        grad, dim, np.unique(raw(index))
    ).sum(),
)
def _index_fill_tensor(x: Array, dim: int, index: Array, value: Array) -> Array:
    return _index_fill(x, dim, index, value)


def _fitting(x: Array, dim: int, index: Array) -> Shape:
    """The shape of the slices that `index` names."""
    if not x.ndim:
        return ()
    return (*x.shape[:dim], index.size, *x.shape[dim + 1 :])


def _slices(grad: Gradient, dim: int, index: Array, shape: Shape) -> Gradient:
    return reshape(select_slices(grad, dim, index), shape)


def index_add(
    input: Value, dim: int, index: Value, source: Value, *, alpha: Scalar = 1
) -> Value:
    """`input`, with slices of `source` added where `index` says along `dim`.

    Args:
        input: Tensor that is copied first.
        dim: Dimension along which `index` names slices.
        index: A vector of integers, as long as `source` along `dim`.
        source: Tensor that is added.
        alpha: Factor of it.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    x, indices, slices = raw(input), raw(index), raw(source)
    dim = wrap_dim(dim, x.ndim)
    _check_slices("index_add", x, dim, indices, slices)
    check_bounds("index_add", indices, dim, x.shape)
    return _index_add(input, dim, indices.reshape(-1), source, alpha)


def index_copy(input: Value, dim: int, index: Value, source: Value) -> Value:
    """`input`, with slices of `source` where `index` says along `dim`.

    Raises:
        IndexError: There is no such dimension, or an index is out of range.
        RuntimeError: Shapes or dtypes do not fit.
    """
    x, indices, slices = raw(input), raw(index), raw(source)
    dim = wrap_dim(dim, x.ndim)
    _check_slices("index_copy", x, dim, indices, slices)
    check_bounds(
        "index_copy", indices, dim, x.shape, IndexError, words="index_copy_(): "
    )
    return _index_copy(input, dim, indices.reshape(-1), source)


def index_fill(input: Value, dim: int, index: Value, value: Operand) -> Value:
    """`input`, with one number in the slices that `index` names along `dim`.

    Args:
        input: Tensor that is copied first.
        dim: Dimension along which `index` names slices.
        index: A vector of integers.
        value: A number, or a tensor without dimensions.

    Raises:
        IndexError: There is no such dimension, or an index is out of range.
        RuntimeError: `value` has dimensions.
    """
    value = python_number(value)
    x, indices = raw(input), raw(index)
    dim = wrap_dim(dim, x.ndim)
    if indices.dtype != np.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    size = x.shape[dim] if x.ndim else 1
    check_bounds("index_fill", indices, dim, x.shape, IndexError, lowest=-size)
    if not hasattr(value, "dtype"):
        return _index_fill(input, dim, indices.reshape(-1), value)
    if raw(value).ndim:
        raise RuntimeError(
            f"Only supports 0-dimension value tensor for index_fill, but got tensor "
            f"with {raw(value).ndim} dimension(s)."
        )
    return _index_fill_tensor(input, dim, indices.reshape(-1), value)


def _check_slices(name: str, x: Array, dim: int, index: Array, source: Array) -> None:
    check_index_vector(name, index)
    if x.dtype != source.dtype:
        raise RuntimeError(
            f"{name}_(): self and source expected to have the same dtype, but got "
            f"(self) {scalar_type_name(x.dtype)} and (source) "
            f"{scalar_type_name(source.dtype)}"
        )
    length = source.shape[dim] if source.ndim else 1
    if index.size != length:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.size}) should be equal to "
            f"source.size(dim) ({length})"
        )
    rest = [size for axis, size in enumerate(x.shape) if axis != dim]
    others = [size for axis, size in enumerate(source.shape) if axis != dim]
    if rest != others and source.ndim and x.ndim:
        raise RuntimeError(
            f"source tensor shape must match self tensor shape, excluding the "
            f"specified dimension. Got self.shape = {list(x.shape)} source.shape = "
            f"{list(source.shape)}"
        )


def index_reduce(
    input: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: Reduce,
    *,
    include_self: bool = True,
) -> Value:
    """`input`, with slices of `source` combined with it where `index` says.

    Args:
        input: Tensor that is copied first.
        dim: Dimension along which `index` names slices.
        index: A vector of integers, as long as `source` along `dim`.
        source: Tensor that is combined with it.
        reduce: Reduction: ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: Combine with what was there; else it is replaced.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    x, indices, slices = raw(input), raw(index), raw(source)
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
            f"but got {reduce}."
        )
    dim = wrap_dim(dim, x.ndim)
    _check_slices("index_reduce", x, dim, indices, slices)
    check_bounds("index_reduce", indices, dim, x.shape)
    places = indices.reshape(-1, *(1,) * max(slices.ndim - dim - 1, 0))
    if not slices.ndim:
        places = places.reshape(())
    wide = np.broadcast_to(places, slices.shape)
    return reduce_slices(input, dim, wide, source, reduce, include_self)


PUBLIC = [
    *names("gv.f x.f x.f_", index_fill),
    *names("gv.f(out=) x.f x.f_", index_add, index_copy, index_reduce),
]
