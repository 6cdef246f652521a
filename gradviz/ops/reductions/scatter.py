"""Copies of a tensor with elements of another written into it, or added.

Each element of an index says where one element goes. What writes whole slices is in
`gradviz.ops.reductions.slice_updates`, what writes at flat places or by a mask in
`gradviz.ops.reductions.putting`, and what stands in brackets in
`gradviz.ops.shapes.indexing`.
"""

from typing import Literal

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.conventions.promotion import Operand, Scalar, python_number
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.reductions.scatter_reduce import Reduce, reduce_at
from gradviz.ops.shapes.gathering import (
    add_where,
    check_bounds,
    check_index_dtype,
    check_same_ndim,
    gather_at,
    mesh,
)
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "ScatterBackward0",
    arrays=("index",),
    x=lambda grad, dim, index: scatter_number(grad, dim, index, 0),
    source=lambda grad, dim, index, source_shape: _gathered(
        grad, dim, index, source_shape
    ),
)
def scatter_at(x: Array, dim: int, index: Array, source: Array) -> Array:
    """`scatter` of a tensor, without its checks."""
    result = np.copy(x, order="C")
    assign(result, mesh(index, dim, x.ndim), _beginning(source, index))
    return result


@differentiable(
    "ScatterBackward1",
    arrays=("index",),
    x=lambda grad, dim, index: scatter_number(grad, dim, index, 0),
)
def scatter_number(x: Array, dim: int, index: Array, value: Scalar) -> Array:
    """`scatter` of a number, without its checks."""
    result = np.copy(x, order="C")
    assign(result, mesh(index, dim, x.ndim), value)
    return result


@differentiable(
    "ScatterAddBackward0",
    arrays=("index",),
    x=lambda grad: grad,
    source=lambda grad, dim, index, source_shape: _gathered(
        grad, dim, index, source_shape
    ),
)
def _scatter_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    result = np.copy(x, order="C")
    add_where(result, dim, index, _beginning(source, index))
    return result


def _beginning(source: Array, index: Array) -> Array:
    """The part of `source` that `index` has a place for."""
    if not source.ndim or not index.ndim:
        return source
    return source[tuple(map(slice, index.shape))]


def _gathered(grad: Gradient, dim: int, index: Array, shape: Shape) -> Gradient:
    """Return the gradient of the scattered elements; the rest was not used."""
    taken = gather_at(grad, dim, index)
    if index.shape == shape:
        return taken
    return padded(taken, shape)


@differentiable("ConstantPadNdBackward0", x=lambda grad, x_shape: _cut(grad, x_shape))
def padded(x: Array, shape: Shape) -> Array:
    """`x` at the beginning of zeros of `shape`."""
    result = np.zeros_like(x, shape=shape)
    assign(result, tuple(map(slice, x.shape)), x)
    return result


@differentiable("SliceBackward0", x=lambda grad, x_shape: padded(grad, x_shape))
def _cut(x: Array, shape: Shape) -> Array:
    return x[tuple(map(slice, shape))]


def scatter(
    input: Value,
    dim: int,
    index: Value,
    src: Operand | None = None,
    *,
    value: Scalar | None = None,
    reduce: Literal["add", "multiply"] | None = None,
) -> Value:
    """`input`, with elements of `src` where `index` says along `dim`.

    Args:
        input: Tensor that is copied first.
        dim: Dimension along which `index` says where; along the others an element stays
            in its place.
        index: Integers. If one place is named twice, one of the elements wins.
        src: A tensor of the dtype of `input`, or a number for all places.
        value: The number, by name.
        reduce: Add or multiply instead.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    src = python_number(src)
    value = python_number(value)
    if reduce is not None:
        return _scatter_with(input, dim, index, src if value is None else value, reduce)
    source = src if value is None else value
    if source is None:
        raise TypeError(
            'scatter() missing 1 required positional arguments: "src", or "value"'
        )
    dim = check_scatter(input, dim, index, source)
    if isinstance(source, (bool, int, float, complex)):
        return scatter_number(input, dim, raw(index), source)
    return scatter_at(input, dim, raw(index), source)


def scatter_add(input: Value, dim: int, index: Value, src: Value) -> Value:
    """`input`, with elements of `src` added where `index` says along `dim`.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    dim = check_scatter(input, dim, index, src)
    return _scatter_add(input, dim, raw(index), src)


def _scatter_with(
    input: Value, dim: int, index: Value, source: Value, reduce: str
) -> Value:
    """The `reduce` of `scatter`, of which PyTorch has no gradient; ours does."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not hasattr(source, "dtype"):
        source = np.full_like(raw(input), source, shape=raw(index).shape)
    dim = check_scatter(input, dim, index, source)
    return reduce_at(
        input, dim, raw(index), source, "sum" if reduce == "add" else "prod", True
    )


def check_scatter(x: Value, dim: int, index: Value, source: Value) -> int:
    """The dimension, wrapped, of arguments that fit.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    target, indices = raw(x), raw(index)
    dim = wrap_dim(dim, target.ndim)
    check_index_dtype("scatter", indices)
    has_array = hasattr(source, "dtype")
    if has_array and raw(source).dtype != target.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not indices.size:
        return dim
    check_same_ndim(target, indices, "self")
    if has_array:
        check_same_ndim(raw(source), indices, "src")
    _check_fit(target.shape, indices.shape, dim, raw(source) if has_array else None)
    check_bounds("scatter", indices, dim, target.shape)
    return dim


def _check_fit(target: Shape, index: Shape, dim: int, source: Array | None) -> None:
    fits = all(
        have >= got
        for axis, (have, got) in enumerate(zip(target, index, strict=False))
        if axis != dim
    )
    if source is None:
        if not fits:
            raise RuntimeError(
                f"Expected index {list(index)} to be no larger than self "
                f"{list(target)} apart from dimension {dim}"
            )
        return
    if not fits or any(
        have < got for have, got in zip(source.shape, index, strict=False)
    ):
        raise RuntimeError(
            f"Expected index {list(index)} to be no larger than self {list(target)} "
            f"apart from dimension {dim} and to be no larger size than src "
            f"{list(source.shape)}"
        )


def scatter_reduce(
    input: Value,
    dim: int,
    index: Value,
    src: Value,
    reduce: Reduce,
    *,
    include_self: bool = True,
) -> Value:
    """`input`, with elements of `src` combined with it where `index` says along `dim`.

    Args:
        input: Tensor that is copied first.
        dim: Dimension along which `index` says where; along the others an element stays
            in its place.
        index: Integers.
        src: A tensor of the dtype of `input`.
        reduce: Way to combine them: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: Combine with what was there; else it is replaced.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: Shapes or dtypes do not fit, or an index is out of range.
    """
    _check_reduce(reduce)
    dim = check_scatter(input, dim, index, src)
    return reduce_at(input, dim, raw(index), src, reduce, include_self)


def _check_reduce(reduce: str) -> None:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce}"
        )


PUBLIC = [*names("gv.f(out=) x.f x.f_", scatter, scatter_add, scatter_reduce)]
