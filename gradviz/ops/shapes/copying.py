"""Copies: on the same device, on another, with another dtype."""

import enum
from typing import Any, Final

import numpy as np

from gradviz.backends.arrays.pinning import pinned
from gradviz.backends.base import Array, copy_to, device_of
from gradviz.backends.device import CPU, Device
from gradviz.backends.protocols import Accelerator
from gradviz.ops.conventions.memory_layout import laid_out_like
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw


class MemoryFormat(enum.Enum):
    """The order of a copy's elements in memory."""

    CONTIGUOUS = "contiguous_format"  # C order
    PRESERVE = "preserve_format"  # that of the original

    def __repr__(self) -> str:
        return f"gradviz.{self.value}"

    __str__ = __repr__


#: PyTorch's names of them.
contiguous_format: Final = MemoryFormat.CONTIGUOUS
preserve_format: Final = MemoryFormat.PRESERVE


@differentiable("CloneBackward0", x=lambda grad: grad)
def contiguous_copy(x: Array) -> Array:
    """A copy in C order."""
    return np.copy(x, order="C")


@differentiable("CloneBackward0", x=lambda grad: grad)
def _like_original(x: Array) -> Array:
    return laid_out_like(np.copy(x), x) if 0 in x.strides else np.copy(x, order="K")


def contiguous(input: Value) -> Value:
    """Return `input` itself if its elements are in C order, else such a copy."""
    return input if raw(input).flags.c_contiguous else contiguous_copy(input)


def clone(input: Value, *, memory_format: MemoryFormat = preserve_format) -> Value:
    """Return a copy with the memory order of the original.

    Args:
        input: Tensor to copy.
        memory_format: `MemoryFormat.CONTIGUOUS` for C order.
    """
    if memory_format is MemoryFormat.PRESERVE:
        return _like_original(input)
    return contiguous_copy(input)


@differentiable(
    "ToCopyBackward0",
    x=lambda grad, x_dtype, x_device: to_copy(grad, _cast(grad, x_dtype), x_device),
)
def to_copy(
    x: Array, dtype: DTypeLike, device: Device, non_blocking: bool = False
) -> Array:
    """A copy with another dtype, on another device, or both.

    The node runs on the device that the copy is on, as its gradient is there; the
    gradient's copy is waited for, `non_blocking` or not, as in PyTorch.
    """
    if device_of(x) is device:
        return x.astype(dtype)
    if device is CPU:  # the copy may still be going on: what changes it goes first
        return copy_to(x.astype(dtype, copy=False), device, non_blocking=non_blocking)
    copy = copy_to(x, device, non_blocking=non_blocking)
    return copy.astype(dtype, copy=False)


@differentiable("PinMemoryBackward0", x=lambda grad: grad)
def pinned_copy(x: Array, accelerator: Accelerator) -> Array:
    """A copy in pinned memory; its gradient may be anywhere on the host."""
    return pinned(x, accelerator)


def _cast(grad: Value, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return `dtype`, or its complex form if `grad` is complex: the engine cuts it.

    NumPy would warn of it.
    """
    given: np.dtype[Any] = raw(grad).dtype
    return np.result_type(given, dtype) if given.kind == "c" else dtype


PUBLIC = [*names("gv.f x.f", clone), *names("np.f(axis=)", copy=clone)]
