"""Products of vectors, matrices and batches of matrices."""

from math import prod

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.protocols import Gradient
from gradviz.ops.arithmetic import add
from gradviz.ops.copying import clone
from gradviz.ops.differentiable import differentiable
from gradviz.ops.shape import (
    Shape,
    expand,
    reshape,
    squeeze_in_place,
    t,
    transpose,
    unsafe_view,
    unsqueeze,
)
from gradviz.ops.variable import Value, Variable, raw


@differentiable("DotBackward0", x=lambda grad, y: grad * y, y=lambda grad, x: grad * x)
def dot(x: Array, y: Array) -> Array:
    """The inner product of two vectors."""
    return _product("dot", x, y, 1, 1)


@differentiable(
    "MvBackward0",
    x=lambda grad, y: _outer(grad, y),
    y=lambda grad, x: mv(t(x), grad),
)
def mv(x: Array, y: Array) -> Array:
    """A matrix times a vector."""
    return _product("mv", x, y, 2, 1)


@differentiable(
    "MmBackward0",
    x=lambda grad, y: mm(grad, t(y)),
    y=lambda grad, x: mm(t(x), grad),
)
def mm(x: Array, y: Array) -> Array:
    """A matrix times a matrix."""
    return _product("mm", x, y, 2, 2)


@differentiable(
    "BmmBackward0",
    x=lambda grad, y: bmm(grad, transpose(y, 1, 2)),
    y=lambda grad, x: bmm(transpose(x, 1, 2), grad),
)
def bmm(x: Array, y: Array) -> Array:
    """Matrices times matrices, one pair for each entry of the first dimension."""
    return _product("bmm", x, y, 3, 3)


@differentiable(
    "AddmmBackward0",
    bias=lambda grad: grad,
    x=lambda grad, y: mm(grad, t(y)),
    y=lambda grad, x: mm(t(x), grad),
)
def addmm(bias: Array, x: Array, y: Array) -> Array:
    """A matrix times a matrix, plus something that broadcasts to the product."""
    return _product("addmm", x, y, 2, 2) + bias


def linear(x: Value, weight: Value, bias: Value = None) -> Value:
    """``x @ weight.T + bias``; the last dimension of `x` holds the features."""
    array = raw(x)
    shape = array.shape
    if bias is None:
        return matmul(x, t(weight))
    if len(shape) == 2:
        return addmm(bias, x, t(weight))
    if not array.flags.c_contiguous:
        return add(matmul(x, t(weight)), bias)
    rows = addmm(bias, reshape(x, (prod(shape[:-1]), shape[-1])), t(weight))
    return reshape(rows, (*shape[:-1], raw(weight).shape[0]))


def outer(x: Value, y: Value) -> Value:
    """All products of an element of `x` and one of `y`, both vectors."""
    return _outer(x, y)


def matmul(x: Value, y: Value) -> Value:
    """The product for any numbers of dimensions, made of the ops above as PyTorch does.

    Raises:
        RuntimeError: An operand has no dimensions, or the lengths do not match.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl.
    """
    match raw(x).ndim, raw(y).ndim:
        case 2, 2:  # first: it is by far the most frequent
            return mm(x, y)
        case (0, _) | (_, 0):
            raise RuntimeError(
                "both arguments to matmul need to be at least 1D, but they are "
                f"{raw(x).ndim}D and {raw(y).ndim}D"
            )
        case 1, 1:
            return dot(x, y)
        case 2, 1:
            return mv(x, y)
        case 1, 2:
            product = mm(unsqueeze(x, 0), y)
            return squeeze_in_place(product, (raw(y).shape[1],))
        case _ if _should_fold(x, y):
            return _folded(x, y)
        case _:
            return _batched(x, y)


def _outer(x: Gradient, y: Gradient) -> Gradient:
    return reshape(x, (raw(x).shape[0], 1)) * y


def _should_fold(x: Value, y: Value) -> bool:
    """Whether a batch times one matrix is to be one large product of matrices."""
    if min(raw(x).ndim, raw(y).ndim) > 2:
        return False
    batch, other = (x, y) if raw(x).ndim >= raw(y).ndim else (y, x)
    if isinstance(other, Variable) and other.needs_grad:
        return True
    if raw(x).ndim == 2:
        return False
    array = raw(batch) if batch is x else np.swapaxes(raw(batch), -1, -2)
    merged = (prod(array.shape[:-1]), array.shape[-1])
    return array.size == 0 or bool(
        np.may_share_memory(np.reshape(array, merged), array)
    )


def _folded(x: Value, y: Value) -> Value:
    """A batch times one matrix or vector, or these times a batch: all rows at once."""
    is_batch_first = raw(x).ndim >= raw(y).ndim
    batch, other = (
        (x, y)
        if is_batch_first
        else (transpose(y, -1, -2), x if raw(x).ndim == 1 else t(x))
    )
    shape = raw(batch).shape
    rows = reshape(batch, (prod(shape[:-1]), shape[-1]))
    if raw(other).ndim == 1:
        return unsafe_view(mv(rows, other), shape[:-1])
    columns = raw(other).shape[1]
    product = unsafe_view(mm(rows, other), (*shape[:-1], columns))
    return product if is_batch_first else clone(transpose(product, -1, -2))


def _batched(x: Value, y: Value) -> Value:
    """Batches whose leading dimensions broadcast."""
    a, b = raw(x).shape, raw(y).shape
    rows = a[-2] if len(a) > 1 else 1
    columns = b[-1] if len(b) > 1 else 1
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    count = prod(batch)
    left = _batch_of(x, (*batch, rows, a[-1]), count)
    right = y if len(b) > 1 else unsqueeze(y, 1)
    right = _batch_of(right, (*batch, b[-2] if len(b) > 1 else b[0], columns), count)
    shape = (
        *batch,
        *((rows,) if len(a) > 1 else ()),
        *((columns,) if len(b) > 1 else ()),
    )
    return unsafe_view(bmm(left, right), shape)


def _batch_of(x: Value, shape: Shape, count: int) -> Value:
    return reshape(expand(x, shape), (count, *shape[-2:]))


def _product(name: str, x: Array, y: Array, x_ndim: int, y_ndim: int) -> Array:
    """The product of operands that have as many dimensions as the op expects.

    Raises:
        RuntimeError: They have not, or their lengths or dtypes do not match.
    """
    if x.ndim != x_ndim or y.ndim != y_ndim:
        raise RuntimeError(
            f"{name}: expected tensors of {x_ndim} and {y_ndim} dimensions, "
            f"but got {x.ndim}D and {y.ndim}D"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, "
            f"but got: {x.dtype} != {y.dtype}"
        )
    try:
        return np.matmul(x, y)
    except ValueError as error:
        sizes = " and ".join("x".join(map(str, array.shape)) for array in (x, y))
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({sizes})"
        ) from error
