"""Products that sum over any dimensions of their operands, and chains of products.

`einsum` has a module of its own.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.algebra.products import broadcast_batches, dot, mm, vdot
from gradviz.ops.conventions.dimensions import INTEGERS, Shape, wrap_dim
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import mul
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.complex_parts import conj
from gradviz.ops.shapes.permutation import permute
from gradviz.ops.shapes.shape import reshape, unsafe_view, view
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw

# --- any dimensions -----------------------------------------------------------------


def tensordot(
    a: Value, b: Value, dims: int | Sequence[Sequence[int]] = 2, out: None = None
) -> Value:
    """The products of all pairs of elements, summed over pairs of dimensions.

    Args:
        a: Numbers.
        b: Numbers of the same dtype.
        dims: Number of the last dimensions of `a` that belong to the first of `b`; or
            two lists, of dimensions of `a` and of `b`.
        out: Not supported.

    Raises:
        RuntimeError: Dimensions do not fit.

    Source: torch/functional.py, tensordot; aten/src/ATen/native/Linear.cpp, tensordot.
    """
    del out
    if isinstance(dims, INTEGERS):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(raw(a).ndim, raw(b).ndim):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}"
            )
        return _contracted(a, b, list(range(-dims, 0)), list(range(dims)))
    first, second = (
        [int(one)] if isinstance(one, INTEGERS) else [int(dim) for dim in one]
        for one in dims
    )
    return _contracted(a, b, first, second)


def inner(input: Value, other: Value) -> Value:
    """The products along the last dimensions, summed.

    Raises:
        RuntimeError: The last dimensions differ.
    """
    shapes = raw(input).shape, raw(other).shape
    if not shapes[0] or not shapes[1]:
        return mul(input, other)
    if shapes[0][-1] != shapes[1][-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got "
            f"shapes {[*shapes[0]]} and {[*shapes[1]]}"
        )
    return _contracted(input, other, [-1], [-1])


def _contracted(
    a: Value, b: Value, dims_a: Sequence[int], dims_b: Sequence[int]
) -> Value:
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    for dim_a, dim_b in zip(dims_a, dims_b, strict=True):
        size_a, size_b = raw(a).shape[dim_a], raw(b).shape[dim_b]
        if size_b == 1:
            a = sum_of(a, dim_a, keepdim=True)
        elif size_a == 1:
            b = sum_of(b, dim_b, keepdim=True)
        elif size_a != size_b:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {size_a} in "
                f"dim {dim_a} and second has size {size_b} in dim {dim_b}"
            )
    shape_a, shape_b = raw(a).shape, raw(b).shape
    over_a = [wrap_dim(dim, len(shape_a)) for dim in dims_a]
    over_b = [wrap_dim(dim, len(shape_b)) for dim in dims_b]
    free_a = [dim for dim in range(len(shape_a)) if dim not in over_a]
    free_b = [dim for dim in range(len(shape_b)) if dim not in over_b]
    rows = [shape_a[dim] for dim in free_a]
    columns = [shape_b[dim] for dim in free_b]
    if not rows and not columns:
        return _summed(permute(a, over_a), permute(b, over_b))
    size = prod(shape_a[dim] for dim in over_a)
    left = reshape(permute(a, free_a + over_a), (prod(rows), size))
    right = reshape(permute(b, over_b + free_b), (size, prod(columns)))
    return reshape(mm(left, right), (*rows, *columns))


def _summed(left: Value, right: Value) -> Value:
    """The sum of the products of elements, one by one."""
    if raw(left).flags.c_contiguous and raw(right).flags.c_contiguous:
        return reshape(dot(_flat(left), _flat(right)), ())
    return reshape(sum_of(mul(squeeze(left), squeeze(right))), ())


def _flat(x: Value) -> Value:
    return x if raw(x).ndim == 1 else reshape(x, (-1,))


def vecdot(x: Value, y: Value, *, dim: int = -1) -> Value:
    """The inner products of vectors along `dim`; `x` is conjugated.

    Raises:
        RuntimeError: The shapes do not broadcast.
    """
    broadcast_batches(raw(x).shape, raw(y).shape)
    if raw(x).ndim == 1 and raw(y).shape == raw(x).shape:
        return vdot(x, y)
    return sum_of(mul(conj(x), y), dim)


def kron(input: Value, other: Value) -> Value:
    """The Kronecker product: `other`, scaled by each element of `input`.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, kron.
    """
    check_tensors("kron", input=input, other=other)
    ndim = max(raw(input).ndim, raw(other).ndim)
    shapes = [(1,) * (ndim - raw(x).ndim) + raw(x).shape for x in (input, other)]
    outer = tuple(length for size in shapes[0] for length in (size, 1))
    inner_ = tuple(length for size in shapes[1] for length in (1, size))
    product = mul(unsafe_view(input, outer), unsafe_view(other, inner_))
    result = tuple(a * b for a, b in zip(*shapes, strict=True))
    return unsafe_view(product, result)


# --- three dimensions ---------------------------------------------------------------


@differentiable(
    "LinalgCrossBackward0",
    x=lambda grad, y, dim: _cross(conj(y), grad, dim),
    y=lambda grad, x, dim: _cross(grad, conj(x), dim),
)
def _cross(x: Array, y: Array, dim: int) -> Array:
    shape = np.broadcast_shapes(x.shape, y.shape)
    x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
    a = [np.take(x, i, axis=dim) for i in range(3)]
    b = [np.take(y, i, axis=dim) for i in range(3)]
    parts = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    return np.stack(parts, axis=dim)


def linalg_cross(input: Value, other: Value, *, dim: int = -1) -> Value:
    """The cross products of vectors of length 3 along `dim`.

    Raises:
        RuntimeError: A length is not 3, or the shapes do not broadcast.
    """
    shapes = raw(input).shape, raw(other).shape
    if len(shapes[0]) != len(shapes[1]):
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions."
        )
    axis = wrap_dim(dim, len(shapes[0]))
    lengths = shapes[0][axis], shapes[1][axis]
    if lengths != (3, 3):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got "
            f"{lengths[0]} and {lengths[1]}"
        )
    broadcast_batches(*shapes)
    return _cross(input, other, axis)


def cross(input: Value, other: Value, dim: int | None = None) -> Value:
    """The cross products of vectors along `dim`: the first of length 3 by default.

    Raises:
        RuntimeError: There is none, or the shapes do not broadcast.
    """
    if dim is None:
        shape = raw(input).shape
        if 3 not in shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = shape.index(3)
    return linalg_cross(input, other, dim=dim)


# --- chains -------------------------------------------------------------------------


def multi_dot(tensors: Sequence[Value]) -> Value:
    """The product of several matrices, in the order that takes the least work.

    Args:
        tensors: Matrices; the first and the last may be vectors.

    Raises:
        RuntimeError: There are less than two, or they do not fit together.

    Source: aten/src/ATen/native/LinearAlgebra.cpp, multi_dot_impl.
    """
    if len(tensors) < 2:
        raise RuntimeError(
            f"multi_dot(): expected at least 2 tensors but got {len(tensors)}"
        )
    matrices = list(tensors)
    shape: Shape = ()
    if raw(matrices[0]).ndim == 1:
        matrices[0] = unsqueeze(matrices[0], 0)
    else:
        shape = (raw(matrices[0]).shape[0],)
    if raw(matrices[-1]).ndim == 1:
        matrices[-1] = unsqueeze(matrices[-1], -1)
    else:
        shape = (*shape, raw(matrices[-1]).shape[-1])
    _check_chain(matrices)
    sizes = [raw(matrix).shape[0] for matrix in matrices]
    splits = _best_splits([*sizes, raw(matrices[-1]).shape[1]])
    return view(_chained(matrices, splits, 0, len(matrices) - 1), shape)


def chain_matmul(*matrices: Value) -> Value:
    """`multi_dot` of matrices given one by one."""
    return multi_dot(matrices) if len(matrices) > 1 else matrices[0]


def _chained(
    matrices: Sequence[Value], splits: dict[Shape, int], first: int, last: int
) -> Value:
    if first == last:
        return matrices[first]
    middle = splits[first, last]
    left = _chained(matrices, splits, first, middle)
    return mm(left, _chained(matrices, splits, middle + 1, last))


def _best_splits(sizes: Sequence[int]) -> dict[Shape, int]:
    """Return the best split of each part of a chain, by number of products."""
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[Shape, int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            costs[first, last], splits[first, last] = min(
                (
                    costs[first, k]
                    + costs[k + 1, last]
                    + sizes[first] * sizes[k + 1] * sizes[last + 1],
                    k,
                )
                for k in range(first, last)
            )
    return splits


def _check_chain(matrices: Sequence[Value]) -> None:
    shapes = [raw(matrix).shape for matrix in matrices]
    for i, shape in enumerate(shapes):
        if len(shape) != 2:
            raise RuntimeError(
                f"multi_dot(): tensor {i} must be 2D but got {len(shape)}D"
            )
    for i, (left, right) in enumerate(pairwise(shapes)):
        if left[1] != right[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {[*left]} and "
                f"{[*right]} cannot be multiplied"
            )


PUBLIC = [
    *names("gv.f", chain_matmul, tensordot),
    *names("gv.f(out=) x.f", cross, inner, kron),
    *names("linalg.f(out=)", multi_dot, vecdot, cross=linalg_cross),
]
