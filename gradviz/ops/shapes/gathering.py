"""Elements picked by tensors of integers or booleans, and put back where they were.

`gather_at` and `sum_at`, `select_slices` and `sum_slices`, `take_at` and
`_put` are each other's gradients. What writes into a given tensor is in
`gradviz.ops.reductions.scatter`, and what stands in brackets in
`gradviz.ops.shapes.indexing`.
"""

import math
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array, beside
from gradviz.ops.conventions.dimensions import Shape, at, wrap_dim
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import broadcast_to, common_shape
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw

_INDEX_DTYPES = (np.dtype(np.int64), np.dtype(np.int32))

# --- one index for each element -----------------------------------------------------


@differentiable(
    "GatherBackward0",
    arrays=("index",),
    x=lambda grad, x_shape, dim, index: sum_at(grad, x_shape, dim, index),
)
def gather_at(x: Array, dim: int, index: Array) -> Array:
    """`gather` without its checks."""
    if not index.size:
        return np.zeros_like(x, shape=index.shape)
    if not x.ndim:
        return np.broadcast_to(x, index.shape).copy()
    if _is_flattened(x, index):
        return np.take(x.reshape(-1), _places(index, dim, x.shape))
    return x[mesh(index, dim, x.ndim)]


# Adding to zeros makes an edge for them that leads nowhere, as in PyTorch.


@differentiable(
    "ScatterAddBackward0",
    arrays=("index",),
    onto=lambda grad: grad,
    x=lambda grad, dim, index: gather_at(grad, dim, index),
)
def _sum_at(onto: None, x: Array, shape: Shape, dim: int, index: Array) -> Array:
    del onto
    result = np.zeros_like(x, shape=shape)
    if not shape:
        return result + x.sum()
    if index.size:
        add_where(result, dim, index, x)
    return result


def add_where(target: Array, dim: int, index: Array, x: Array) -> None:
    """Add the elements of `x` to those of `target` that `gather_at` finds there."""
    if _is_flattened(target, index) and x.shape == index.shape:
        places = _places(index, dim, target.shape).reshape(-1)
        np.add.at(target.reshape(-1), places, x.reshape(-1))
    else:
        np.add.at(target, mesh(index, dim, target.ndim), x)


#: From so many elements on it is faster to compute with places in a flattened array.
_MANY: Final = 1024


def _is_flattened(x: Array, index: Array) -> bool:
    """Return whether to look up elements by their positions when flattened."""
    return bool(
        index.size >= _MANY and index.ndim == x.ndim > 1 and x.flags.c_contiguous
    )


def _places(index: Array, dim: int, shape: Shape) -> Array:
    """Return the flattened positions of the elements that `index` selects."""
    begins = np.zeros((), np.int64)
    for axis, length in enumerate(shape):
        count = 1 if axis == dim else index.shape[axis]
        begins = begins[..., None] * length + np.arange(count)
    step = math.prod(shape[dim + 1 :])
    return (index if step == 1 else index * np.int64(step)) + beside(index, begins)


def sum_at(x: Value, shape: Shape, dim: int, index: Array) -> Value:
    """Zeros of `shape`, with the elements of `x` added where `gather_at` finds them."""
    return _sum_at(None, x, shape, dim, index)


def mesh(index: Array, dim: int, ndim: int) -> tuple[Array, ...]:
    """Return the NumPy index for `index` along `dim`, positions elsewhere."""
    if not ndim:
        return (Ellipsis,)
    index = index if index.ndim else index.reshape(1)
    return tuple(
        index
        if axis == dim
        else np.arange(size).reshape(size, *(1,) * (index.ndim - axis - 1))
        for axis, size in enumerate(index.shape)
    )


def gather(input: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Value:
    """For each element of `index`, the element of `input` there along `dim`.

    Args:
        input: Source of the elements.
        dim: Dimension along which `index` says where; along the others an element stays
            in its place.
        index: Integers; of the shape of the result.
        sparse_grad: Not supported: gradients are dense.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The shapes do not fit, or an index is out of range.
    """
    del sparse_grad
    x, indices = raw(input), raw(index)
    dim = wrap_dim(dim, x.ndim)
    check_index_dtype("gather", indices)
    if indices.size == 0:
        return gather_at(input, dim, indices)
    check_same_ndim(x, indices, "input")
    for axis, (wanted, got) in enumerate(zip(x.shape, indices.shape, strict=False)):
        if axis != dim and got > wanted:
            raise RuntimeError(
                f"Size does not match at dimension {axis} expected index "
                f"{list(indices.shape)} to be no larger than self {list(x.shape)} "
                f"apart from dimension {dim}"
            )
    check_bounds("gather", indices, dim, x.shape)
    return gather_at(input, dim, indices)


def take_along_dim(input: Value, indices: Value, dim: int | None = None) -> Value:
    """Gather elements like `gather`; both shapes broadcast outside of `dim`.

    Args:
        input: Source of the elements.
        indices: Integers.
        dim: Dimension of the indices; None means the flattened input.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The shapes do not fit, or an index is out of range.
    """
    array, index = raw(input), raw(indices)
    if index.dtype != np.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got "
            f"{scalar_type_name(index.dtype)}"
        )
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    if index.ndim != array.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {array.ndim} dimensions for input, and {index.ndim} "
            f"dimensions for indices"
        )
    dim = wrap_dim(dim, array.ndim)
    x, index = _broadcast_but_one(input, index, dim)
    size = raw(x).shape[dim]
    return gather_at(x, dim, index % size if size else index)


# --- whole slices -------------------------------------------------------------------


@differentiable(
    "IndexSelectBackward0",
    arrays=("index",),
    x=lambda grad, x_shape, dim, index: sum_slices(grad, x_shape, dim, index),
)
def select_slices(x: Array, dim: int, index: Array) -> Array:
    """`index_select` without its checks."""
    return np.take(x, index, axis=dim) if x.ndim else np.copy(x)


@differentiable(
    "IndexAddBackward0",
    arrays=("index",),
    onto=lambda grad: grad,
    x=lambda grad, dim, index: select_slices(grad, dim, index),
)
def _sum_slices(onto: None, x: Array, shape: Shape, dim: int, index: Array) -> Array:
    del onto
    result = np.zeros_like(x, shape=shape, order="C")  # for `add_rows`
    if dim == 0 and len(shape) > 1:
        add_rows(result, index, x)
    else:
        np.add.at(result, slices_at(len(shape), dim, index), x)
    return result


def sum_slices(x: Value, shape: Shape, dim: int, index: Array) -> Value:
    """Zeros of `shape`, with slices of `x` added where `select_slices` finds them."""
    return _sum_slices(None, x, shape, dim, index)


def add_rows(target: Array, index: Array, rows: Array) -> None:
    """Add to the rows of `target` that `index` names, to some of them several times.

    Args:
        target: Changed; in C order.
        index: Integers, of any shape.
        rows: A row for each.
    """
    if type(target) is not np.ndarray:
        np.add.at(target, index, rows)
        return
    # Element by element in one dimension, where NumPy is several times as fast.
    width = math.prod(target.shape[1:])
    places = index.reshape(-1, 1) * width + np.arange(width)
    np.add.at(target.reshape(-1), places.reshape(-1), rows.reshape(-1))


def slices_at(ndim: int, dim: int, index: Array) -> Any:  # noqa: ANN401 - an index
    """The NumPy index of the slices that `index` names."""
    return at(dim, index) if ndim else ...


def index_select(input: Value, dim: int, index: Value) -> Value:
    """The slices of `input` along `dim` that `index` names.

    Raises:
        IndexError: There is no such dimension, or an index is out of range.
        RuntimeError: `index` is not a vector of integers.
    """
    x, indices = raw(input), raw(index)
    dim = wrap_dim(dim, x.ndim)
    check_index_vector("index_select", indices)
    if not x.ndim and indices.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got "
            f"{indices.size} value(s)"
        )
    if indices.size:
        size = x.shape[dim] if x.ndim else 1
        check_elements("index_select: check", _check_rows, indices, size)
    return select_slices(input, dim, indices.reshape(-1))


# --- in the flattened input ---------------------------------------------------------


@differentiable(
    "TakeBackward0",
    arrays=("index",),
    x=lambda grad, x_shape, index: _put(None, grad, x_shape, index),
)
def take_at(x: Array, index: Array) -> Array:
    """`take` without its checks."""
    return np.take(x, index)


@differentiable(
    "PutBackward0",
    arrays=("index",),
    onto=lambda grad: grad,
    x=lambda grad, index: take_at(grad, index),
)
def _put(onto: None, x: Array, shape: Shape, index: Array) -> Array:
    del onto
    result = np.zeros_like(x, shape=shape, order="C")  # so that `reshape` is a view
    np.add.at(result.reshape(-1), index, x)
    return result


def take(input: Value, index: Value) -> Value:
    """The elements of the flattened `input` that `index` names.

    Raises:
        IndexError: An index is out of range.
        RuntimeError: `index` does not have integers.
    """
    indices = raw(index)
    if indices.dtype != np.int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got "
            f"{scalar_type_name(indices.dtype)}"
        )
    check_flat_bounds("take", indices, raw(input).size)
    return take_at(input, indices)


# --- where a mask is true -----------------------------------------------------------


@differentiable(
    "MaskedSelectBackward0",
    arrays=("mask",),
    x=lambda grad, x_shape, mask: spread_by_mask(grad, x_shape, mask),
)
def select_by_mask(x: Array, mask: Array) -> Array:
    """`masked_select` without its checks; `mask` and `x` broadcast."""
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


@differentiable(
    "MaskedScatterBackward0",
    arrays=("mask",),
    onto=lambda grad: grad,
    x=lambda grad, mask: select_by_mask(grad, mask),
)
def _spread_by_mask(onto: None, x: Array, shape: Shape, mask: Array) -> Array:
    del onto
    shape = np.broadcast_shapes(shape, mask.shape)
    result = np.zeros_like(x, shape=shape)
    assign(result, np.broadcast_to(mask, shape), x)
    return result


def spread_by_mask(x: Value, shape: Shape, mask: Array) -> Value:
    """Zeros, with the elements of `x` where `mask` is true."""
    return _spread_by_mask(None, x, shape, mask)


def masked_select(input: Value, mask: Value) -> Value:
    """The elements where `mask` is true, in one dimension.

    Raises:
        RuntimeError: `mask` does not have booleans, or the shapes do not broadcast.
    """
    array = raw(mask)
    if array.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    common_shape(raw(input).shape, array.shape)
    return select_by_mask(input, array)


# --- what is checked ----------------------------------------------------------------


def check_index_dtype(name: str, index: Array) -> None:
    """Raise PyTorch's error if `index` has other than integers."""
    if index.dtype not in _INDEX_DTYPES and index.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


def check_index_vector(name: str, index: Array) -> None:
    """Raise PyTorch's error if `index` is not a vector of integers."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")
    if index.dtype not in _INDEX_DTYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index")


def check_same_ndim(x: Array, index: Array, what: str) -> None:
    """Raise PyTorch's error if `index` has more or less dimensions than `x`."""
    if max(index.ndim, 1) != max(x.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {what} tensor"
        )


def check_bounds(
    op: str,
    index: Array,
    dim: int,
    shape: Shape,
    kind: type[Exception] = RuntimeError,
    *,
    lowest: int = 0,
    words: str = "",
) -> None:
    """Raise PyTorch's error for the first index that is out of range.

    Args:
        op: Op that asks.
        index: The indices.
        dim: Dimension that they are of,
        shape: in an array of this shape.
        kind: Of error.
        lowest: The least that one may be.
        words: Start of the message.
    """
    if index.size:
        size = shape[dim] if shape else 1
        check_elements(
            f"{op}: check", _check_bounds, index, lowest, size, dim, words, kind
        )


def _check_bounds(
    index: np.ndarray,
    lowest: int,
    size: int,
    dim: int,
    words: str,
    kind: type[Exception],
) -> None:
    if not in_bounds(index, size, lowest=lowest):
        first = int(index[(index < lowest) | (index >= size)].reshape(-1)[0])
        raise kind(
            f"{words}index {first} is out of bounds for dimension {dim} with size "
            f"{size}"
        )


def in_bounds(index: np.ndarray, size: int, *, lowest: int = 0) -> bool:
    """Return whether all of some indices are at least `lowest` and less than `size`."""
    greatest = np.maximum.reduce(index, axis=None)
    return bool(greatest < size and np.minimum.reduce(index, axis=None) >= lowest)


def check_flat_bounds(op: str, index: Array, size: int) -> None:
    """Raise PyTorch's error for the first index that is out of range."""
    if index.size:
        check_elements(f"{op}: check", _check_flat_bounds, index, size)


def _check_rows(index: np.ndarray, size: int) -> None:
    if not in_bounds(index, size):
        raise IndexError("index out of range in self")


def _check_flat_bounds(index: np.ndarray, size: int) -> None:
    if not in_bounds(index, size, lowest=-size):
        first = int(index[(index < -size) | (index >= size)].reshape(-1)[0])
        raise IndexError(
            f"out of range: tried to access index {first} on a tensor of {size} "
            f"elements."
        )


def _broadcast_but_one(x: Value, index: Array, dim: int) -> tuple[Value, Array]:
    """Both expanded to one shape in all dimensions but one."""
    ours, theirs = list(raw(x).shape), list(index.shape)
    ours[dim] = theirs[dim] = 1
    common = common_shape(tuple(ours), tuple(theirs))
    ours, theirs = list(common), list(common)
    ours[dim], theirs[dim] = raw(x).shape[dim], index.shape[dim]
    return broadcast_to(x, tuple(ours)), np.broadcast_to(index, tuple(theirs))


PUBLIC = [
    *names("gv.f(out=) x.f", gather, index_select, masked_select, take, take_along_dim),
]
