"""How the elements of an array lie in memory."""

from gradviz.backends.base import Array


def is_dense(array: Array) -> bool:
    """Whether the elements fill the memory between the first and the last."""
    if array.flags.c_contiguous:
        return True
    steps = zip(array.shape, array.strides, strict=True)
    span = sum((length - 1) * step for length, step in steps) + array.dtype.itemsize
    return bool(span == array.nbytes)


def is_laid_out_as(gradient: Array, leaf: Array) -> bool:
    """Whether the memory of a gradient is as that of its leaf, or in C order.

    The latter if the leaf's has gaps or elements that share a place. So a step of an
    optimizer goes through both in one order.

    Source: torch/csrc/autograd/utils/grad_layout_contract.h, obeys_layout_contract.
    """
    if gradient.strides == leaf.strides and gradient.dtype is leaf.dtype:
        return True
    if gradient.shape != leaf.shape or not is_dense(leaf):
        return bool(gradient.flags.c_contiguous)
    size, own_size = gradient.dtype.itemsize, leaf.dtype.itemsize
    return all(
        length == 1 or step * own_size == own_step * size
        for length, step, own_step in zip(
            leaf.shape, gradient.strides, leaf.strides, strict=True
        )
    )
