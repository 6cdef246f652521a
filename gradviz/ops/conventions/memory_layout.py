"""Memory layout of elements: those of a result in the order in which PyTorch's are.

Whether a later `reshape` is a view or a copy depends on it, and so do the nodes that it
makes. NumPy chooses otherwise where operands lie in different orders, after reductions
and after indexing.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradviz.backends.base import Array

#: From the dimension of the longest steps to that of the shortest.
MemoryOrder = Sequence[int]

#: Images and volumes whose channels lie next to each other, as PyTorch calls them.
_CHANNELS_LAST: Final[dict[int, MemoryOrder]] = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def in_c_order(x: Array) -> Array:
    """Return `x`, copied unless its elements are in C order."""
    return x if x.flags.c_contiguous else np.copy(x, order="C")


def laid_out(x: Array, order: MemoryOrder) -> Array:
    """Return `x`, copied unless its elements are in this order."""
    turned = np.transpose(x, order)
    if turned.flags.c_contiguous:
        return x
    return np.transpose(np.copy(turned, order="C"), np.argsort(order).tolist())


def laid_out_like(x: Array, *operands: Array) -> Array:
    """Return `x` in the order that PyTorch gives to results of `operands`."""
    return laid_out(x, memory_order(x.shape, operands)) if x.ndim > 1 else x


def as_images(x: Array, images: Array) -> Array:
    """`x` with channels last if `images` has them there, else in C order."""
    if images.flags.c_contiguous or not has_channels_last(images):
        return in_c_order(x)
    return laid_out(x, _CHANNELS_LAST[x.ndim])


def has_channels_last(x: Array) -> bool:
    """Return whether these are images or volumes with channels stored last.

    Source: c10/core/MemoryFormat.h, is_channels_last_strides_2d and _3d.
    """
    if x.flags.c_contiguous or x.ndim not in _CHANNELS_LAST or not x.strides[1]:
        return False
    least = 0
    for dim in (1, *reversed(_CHANNELS_LAST[x.ndim][1:-1]), 0):
        size, step = x.shape[dim], x.strides[dim]
        if size == 1:  # whose step means nothing, and is another one in PyTorch
            continue
        if not size or step < least or (dim == 0 and least == x.strides[1]):
            return False
        least = step * size
    return True


def memory_order(shape: Sequence[int], operands: Sequence[Array]) -> MemoryOrder:
    """Return the order of dimensions of results of `operands`, which broadcast.

    The first operand that tells two dimensions apart decides; one that takes no steps
    along a dimension, as it was expanded, does not.

    Source: aten/src/ATen/TensorIterator.cpp, reorder_dimensions.
    """
    steps = [_steps(shape, one) for one in operands if hasattr(one, "strides")]
    dims = list(range(len(shape)))[::-1]
    for i in range(1, len(dims)):
        moving = i
        for before in range(i - 1, -1, -1):
            compared = _compared(dims[before], dims[moving], shape, steps)
            if compared > 0:
                dims[before], dims[moving] = dims[moving], dims[before]
                moving = before
            elif compared < 0:
                break
    return dims[::-1]


def is_dense(array: Array) -> bool:
    """Return whether the elements fill the memory from the first to the last."""
    if array.flags.c_contiguous:
        return True
    steps = zip(array.shape, array.strides, strict=True)
    span = sum((length - 1) * step for length, step in steps) + array.dtype.itemsize
    return bool(span == array.nbytes)


def is_laid_out_as(gradient: Array, leaf: Array) -> bool:
    """Return whether a gradient is laid out like its leaf, or in C order.

    It is the latter if the leaf has gaps or overlapping elements. So a step of an
    optimizer goes through both in one order.

    Source: torch/csrc/autograd/utils/grad_layout_contract.h, obeys_layout_contract.
    """
    if gradient.strides == leaf.strides and gradient.dtype is leaf.dtype:
        return True
    if gradient.shape != leaf.shape or not is_dense(leaf):
        return bool(gradient.flags.c_contiguous)
    return _takes_steps_of(gradient, leaf)


def _takes_steps_of(gradient: Array, leaf: Array) -> bool:
    """Return whether the elements follow each other like those of the leaf."""
    size, own_size = gradient.dtype.itemsize, leaf.dtype.itemsize
    return all(
        length == 1 or step * own_size == own_step * size
        for length, step, own_step in zip(
            leaf.shape, gradient.strides, leaf.strides, strict=True
        )
    )


def _steps(shape: Sequence[int], x: Array) -> list[int]:
    """Return the step along each dimension; 0 where `x` is expanded to `shape`."""
    missing = len(shape) - x.ndim
    return [0] * missing + [
        step if size == wanted else 0
        for step, size, wanted in zip(x.strides, x.shape, shape[missing:], strict=True)
    ]


def _compared(
    a: int, b: int, shape: Sequence[int], steps: Sequence[Sequence[int]]
) -> int:
    for one in steps:
        if one[a] and one[b]:
            if one[a] != one[b]:
                return 1 if one[a] > one[b] else -1
            if shape[a] > shape[b]:
                return 1
    return 0
