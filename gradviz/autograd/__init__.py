"""Differentiation, under PyTorch's names."""

from gradviz.autograd.grad_mode import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from gradviz.autograd.gradcheck import GradcheckError, gradcheck
from gradviz.autograd.gradient import grad
from gradviz.tensors.backward import backward

__all__ = [
    "GradcheckError",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
