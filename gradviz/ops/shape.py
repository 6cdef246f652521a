"""The same elements in another shape or order: views where possible, else copies."""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.copying import clone
from gradviz.ops.differentiable import differentiable
from gradviz.ops.variable import Value, raw

Shape = tuple[int, ...]

# --- one view each ----------------------------------------------------------------


def _reshaped(x: Array, shape: Shape) -> Array:
    return x.reshape(shape)


_view = differentiable("ViewBackward0", x=lambda grad, x_shape: reshape(grad, x_shape))(
    _reshaped
)
_reshape_alias = differentiable(
    "ReshapeAliasBackward0", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)
unsafe_view = differentiable(
    "UnsafeViewBackward0", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)
_squeeze_all = differentiable(
    "SqueezeBackward0", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)
_squeeze_one = differentiable(
    "SqueezeBackward1", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)
_squeeze_several = differentiable(
    "SqueezeBackward2", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)
#: What `matmul` of a vector and a matrix ends with: PyTorch squeezes in place there.
squeeze_in_place = differentiable(
    "SqueezeBackward4", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)


@differentiable("UnsqueezeBackward0", x=lambda grad, x_shape: reshape(grad, x_shape))
def _unsqueeze(x: Array, dim: int) -> Array:
    return np.expand_dims(x, dim)


@differentiable(
    "TransposeBackward0", x=lambda grad, dim0, dim1: transpose(grad, dim0, dim1)
)
def transpose(x: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions exchanged."""
    return np.swapaxes(x, dim0, dim1) if x.ndim else x


@differentiable("TBackward0", x=lambda grad: t(grad))
def t(x: Array) -> Array:
    """A matrix with its dimensions exchanged; fewer dimensions stay as they are."""
    if x.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D"
        )
    return x.T


@differentiable("PermuteBackward0", x=lambda grad, dims: _permute(grad, _inverse(dims)))
def _permute(x: Array, dims: Shape) -> Array:
    return np.transpose(x, dims)


@differentiable("ExpandBackward0", x=lambda grad, x_shape: sum_to(grad, x_shape))
def broadcast_to(x: Array, shape: Shape) -> Array:
    """`expand` without its checks and its -1."""
    return np.broadcast_to(x, shape)


@differentiable("AliasBackward0", x=lambda grad: grad)
def alias(x: Array) -> Array:
    """Another view of the whole."""
    return x[...]


@differentiable("SumBackward1", x=lambda grad, x_shape: broadcast_to(grad, x_shape))
def _sum_keeping(x: Array, dims: Shape) -> Array:
    return x.sum(axis=dims, keepdims=True)


# --- what users call --------------------------------------------------------------


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """The elements of `x` in C order in another shape: a view where that is possible.

    Args:
        x: What to reshape.
        shape: One of the lengths may be -1, and is then inferred.

    Raises:
        RuntimeError: The shape does not fit the number of elements.
    """
    shape = tuple(shape)
    array = raw(x)
    if array is x:
        return _reshaped(x, shape)
    try:
        if array.flags.c_contiguous:
            return _view(x, shape)
        if _fits_as_view(array, shape):
            return _reshape_alias(x, shape)
    except ValueError as error:
        raise _size_error(array, shape) from error
    return unsafe_view(clone(x), shape)


def view(x: Value, shape: Sequence[int]) -> Value:
    """`x` in another shape, sharing its memory.

    Raises:
        RuntimeError: That is impossible.
    """
    shape = tuple(shape)
    try:
        if _fits_as_view(raw(x), shape):
            return _view(x, shape)
    except ValueError as error:
        raise _size_error(raw(x), shape) from error
    raise RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least "
        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
        "instead."
    )


def flatten(x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Dimensions `start_dim` to `end_dim` joined to one."""
    shape = raw(x).shape
    if not shape:
        return reshape(x, (1,))
    start, end = start_dim % len(shape), end_dim % len(shape)
    if start > end:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    if start == end:
        return x
    return reshape(
        x, (*shape[:start], _product(shape[start : end + 1]), *shape[end + 1 :])
    )


def permute(x: Value, dims: Sequence[int]) -> Value:
    """The dimensions in another order."""
    ndim = raw(x).ndim
    if len(dims) != ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not "
            f"match the length of the desired ordering of dimensions i.e. "
            f"input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    return _permute(x, tuple(dim % ndim for dim in dims))


def reversed_dims(x: Value) -> Value:
    """The dimensions in reverse order: the attribute ``T``."""
    return _permute(x, tuple(reversed(range(raw(x).ndim))))


def unsqueeze(x: Value, dim: int) -> Value:
    """A new dimension of length 1 at `dim`."""
    return _unsqueeze(x, dim)


def squeeze(x: Value, dim: int | Sequence[int] | None = None) -> Value:
    """Without dimensions of length 1: all of them, or those among `dim`."""
    shape = raw(x).shape
    if dim is None:
        return _squeeze_all(x, tuple(size for size in shape if size != 1))
    dims = {
        one % max(len(shape), 1) for one in ([dim] if isinstance(dim, int) else dim)
    }
    kept = tuple(size for i, size in enumerate(shape) if i not in dims or size != 1)
    return _squeeze_one(x, kept) if isinstance(dim, int) else _squeeze_several(x, kept)


def expand(x: Value, shape: Sequence[int]) -> Value:
    """`x` repeated to a larger shape without copying; -1 leaves a length as it is.

    Raises:
        RuntimeError: A length other than 1 would change.
    """
    known = np.shape(raw(x))
    missing = len(shape) - len(known)
    wanted = tuple(
        known[i - missing] if size == -1 and i >= missing else size
        for i, size in enumerate(shape)
    )
    try:
        return broadcast_to(x, wanted)
    except ValueError as error:
        raise RuntimeError(
            f"cannot expand a tensor of shape {list(known)} to {list(shape)}: "
            f"only dimensions of length 1 can grow, and new ones come first"
        ) from error


def sum_to(x: Value, shape: Shape) -> Value:
    """`x` summed to a shape from which broadcasting leads back to its own."""
    known = raw(x).shape
    if known == shape:
        return x
    added = len(known) - len(shape)
    dims = tuple(
        i
        for i, size in enumerate(known)
        if i < added or (shape[i - added] == 1 and size != 1)
    )
    return reshape(_sum_keeping(x, dims) if dims else x, shape)


def _fits_as_view(array: Array, shape: Shape) -> bool:
    result = array.reshape(shape)
    return result.size == 0 or bool(np.may_share_memory(result, array))


def _size_error(array: Array, shape: Shape) -> RuntimeError:
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    return RuntimeError(
        f"shape '{list(shape)}' is invalid for input of size {array.size}"
    )


def _inverse(dims: Shape) -> Shape:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
