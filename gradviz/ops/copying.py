"""Copies: on the same device, on another, with another dtype."""

from gradviz.backends.base import Array, copy_to, device_of
from gradviz.backends.device import Device
from gradviz.ops.differentiable import differentiable
from gradviz.ops.promotion import DTypeLike


@differentiable("CloneBackward0", x=lambda grad: grad)
def clone(x: Array) -> Array:
    """A copy in C order."""
    return x.copy()


@differentiable(
    "ToCopyBackward0",
    x=lambda grad, x_dtype, x_device: to_copy(grad, x_dtype, x_device),
)
def to_copy(x: Array, dtype: DTypeLike, device: Device) -> Array:
    """A copy with another dtype, on another device, or both.

    The node runs on the device that the copy is on, as its gradient is there.
    """
    if device_of(x) is device:
        return x.astype(dtype)
    return copy_to(x, device).astype(dtype, copy=False)
