"""Rules for assignments to ``.grad`` and ``.grad_dtype``, in PyTorch's words.

Source: torch/csrc/autograd/variable.cpp, check_variable_grad and set_grad_dtype.
"""

from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.backends.device import Device
from gradviz.ops.conventions.dtype_names import cpp_name, scalar_type_name


def check_grad(
    grad: Array,
    grad_device: Device,
    own: Array,
    device: Device,
    grad_dtype: np.dtype[Any] | None,
) -> None:
    """Raise if `grad` cannot be the gradient of a tensor with elements `own`.

    Args:
        grad: The gradient's elements.
        grad_device: Device that they are on.
        own: The elements of what it is assigned to.
        device: Device that those are on.
        grad_dtype: The dtype that gradients must have, None for any.

    Raises:
        RuntimeError: Its dtype, device or shape differs.
    """
    if grad_dtype is not None and grad.dtype != grad_dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{cpp_name(grad.dtype)}' to a "
            f"tensor with grad_dtype '{scalar_type_name(grad_dtype)}'. The gradient "
            f"must match the tensor's grad_dtype (defaults to the tensor's dtype). You "
            f"can set the tensor's grad_dtype attribute with a specific dtype, or None "
            f"to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of "
            f"a tensor and its gradient may break downstream systems that assume they "
            f"match."
        )
    if grad_device is not device:
        raise RuntimeError(
            f"attempting to assign a gradient located on device '{grad_device}' to a "
            f"tensor located on device '{device}'"
        )
    if grad.shape != own.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor "
            f"of size '{list(own.shape)}'. Please ensure that the gradient and the "
            f"tensor are the same size"
        )


def check_grad_dtype(wanted: np.dtype[Any] | None, grad: Array | None) -> None:
    """Raise if there is a gradient already, of another dtype than is wanted now."""
    if wanted is not None and grad is not None and grad.dtype != wanted:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{scalar_type_name(wanted)}' because there is "
            f"already a gradient with dtype '{cpp_name(grad.dtype)}'. Please clear the "
            f"gradient (.grad = None) before changing grad_dtype, or ensure the new "
            f"grad_dtype matches the existing gradient's dtype."
        )
