"""The same elements in another shape: views where that is possible, else copies.

What only adds or takes dimensions of length 1 is in
`gradviz.ops.shapes.unit_dimensions`, what repeats elements without a copy in
`gradviz.ops.shapes.broadcasting`.
"""

import math
from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.copying import contiguous_copy
from gradviz.ops.variables.variable import Value, raw, variable


def _reshaped(x: Array, shape: Shape) -> Array:
    return x.reshape(shape)


_view = differentiable(
    "ViewBackward0", view=True, x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)


_reshape_alias = differentiable(
    "ReshapeAliasBackward0", view=True, x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)


unsafe_view = differentiable(
    "UnsafeViewBackward0", x=lambda grad, x_shape: reshape(grad, x_shape)
)(_reshaped)


@differentiable("AliasBackward0", view=True, x=lambda grad: grad)
def alias(x: Array) -> Array:
    """Another view of the whole."""
    return x[...]


def reshape(input: Value, shape: Sequence[int]) -> Value:
    """The elements of `input` in C order in another shape: a view where possible.

    Args:
        input: Tensor to reshape.
        shape: One of the lengths may be -1, and is then inferred.

    Raises:
        RuntimeError: The shape does not fit the number of elements.
    """
    shape = tuple(shape)
    array = raw(input)
    if array is input:
        return _reshaped(input, shape)
    if array.flags.c_contiguous:
        return _view_of_all(input, array, shape)
    shape = _inferred(array, shape)
    if _fits_as_view(array, shape):
        return _reshape_alias(input, shape)
    return unsafe_view(contiguous_copy(input), shape)


def view(input: Value, shape: Sequence[int]) -> Value:
    """`input` in another shape, sharing its memory.

    Raises:
        RuntimeError: That is impossible.
    """
    array = raw(input)
    shape = tuple(shape)
    if array.flags.c_contiguous:
        return _view_of_all(input, array, shape)
    shape = _inferred(array, shape)
    if _fits_as_view(array, shape):
        return _view(input, shape)
    raise RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least "
        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
        "instead."
    )


def _view_of_all(x: Value, array: Array, shape: Shape) -> Value:
    """Return a view of memory in C order, so that NumPy need not copy it."""
    for size in shape:
        if size < -1:  # NumPy takes it for -1
            raise _size_error(array, shape)
    try:
        return _view(x, shape)
    except ValueError as error:
        raise _size_error(array, shape) from error


def view_as_dtype(x: Value, dtype: DTypeLike) -> Value:
    """The bytes of the elements as elements of another type, without a gradient."""
    wanted = np.dtype(dtype)
    known = raw(x).dtype
    if wanted == known:
        return alias(x)
    if wanted.itemsize != known.itemsize and not raw(x).ndim:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {scalar_type_name(known)} as "
            f"{scalar_type_name(wanted)} (different element sizes)"
        )
    return variable(raw(x).view(wanted))


def ravel(input: Value) -> Value:
    """All elements in one dimension: a view where possible."""
    array = raw(input)
    if not array.flags.c_contiguous:
        input = contiguous_copy(input)
    return view(input, (-1,)) if array.ndim != 1 else input


def flatten(input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Dimensions `start_dim` to `end_dim` joined to one.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The first comes after the last.
    """
    shape = raw(input).shape
    start = wrap_dim(start_dim, len(shape))
    end = wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    if not shape:
        return reshape(input, (1,))
    if start == end:
        return input
    joined = math.prod(shape[start : end + 1])
    return reshape(input, (*shape[:start], joined, *shape[end + 1 :]))


def unflatten(input: Value, dim: int, sizes: Sequence[int]) -> Value:
    """One dimension taken apart to several of these lengths, of which one may be -1.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The lengths do not multiply to that of the dimension.
    """
    shape = raw(input).shape
    dim = wrap_dim(dim, len(shape))
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(size for size in sizes if size != -1)
    length = shape[dim]
    fits = known and length % known == 0 if -1 in sizes else known == length
    if not fits:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of "
            f"dim {dim} ({length}) in the input tensor"
        )
    sizes = tuple(length // known if size == -1 else size for size in sizes)
    return view(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))


def _inferred(array: Array, shape: Shape) -> Shape:
    """`shape` with the length that is meant by -1."""
    if min(shape, default=0) < -1:
        raise _size_error(array, shape)
    known = math.prod(size for size in shape if size != -1)
    if shape.count(-1) == 1 and known and array.size % known == 0:
        return tuple(array.size // known if size == -1 else size for size in shape)
    if -1 in shape or known != array.size:
        raise _size_error(array, shape)
    return shape


def _size_error(array: Array, shape: Shape) -> RuntimeError:
    for i, size in enumerate(shape):
        if size < -1:
            return RuntimeError(
                f"invalid shape dimension {size} at index {i} of shape {list(shape)}"
            )
    if shape.count(-1) > 1:
        return RuntimeError("only one dimension can be inferred")
    if -1 in shape and array.size == 0:
        return RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            f"unspecified dimension size -1 can be any value and is ambiguous"
        )
    return RuntimeError(
        f"shape '{list(shape)}' is invalid for input of size {array.size}"
    )


def _fits_as_view(array: Array, shape: Shape) -> bool:
    """Return whether strides can express `shape`, which has as many elements.

    Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl.
    """
    if array.size == 0:
        return True
    lengths = [size for size in shape if size != 1]
    for size, _ in _runs(array):
        # The last lengths must fill this run of evenly spaced elements exactly.
        filled = 1
        while filled < size and lengths:
            filled *= lengths.pop()
        if filled != size:
            return False
    return not lengths


def _runs(array: Array) -> list[list[int]]:
    """Dimensions joined where one step of the outer is all steps of the inner.

    Returns:
        For each, from the last, its length and stride.
    """
    runs: list[list[int]] = []
    for size, stride in zip(
        reversed(array.shape), reversed(array.strides), strict=True
    ):
        if size == 1:
            continue
        if runs and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= size
        else:
            runs.append([size, stride])
    return runs


PUBLIC = [
    *names("gv.f", reshape, unflatten),
    *names("gv.f x.f", flatten, ravel),
    *names("np.f(axis=)", ravel=flatten),
]
