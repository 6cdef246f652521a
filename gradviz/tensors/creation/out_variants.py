"""``out=`` of functions that make a tensor: the one that they fill instead."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

from gradviz.backends.device import Device
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.tensors.tensor import Tensor

P = ParamSpec("P")


def fills_out(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Let a function that makes a tensor take ``out=`` instead; a decorator.

    It makes one in the dtype of ``out`` and where that is.
    """

    @functools.wraps(function)
    def make(*args: P.args, **options: P.kwargs) -> Tensor:
        out: Any = options.pop("out", None)
        if out is None:
            return function(*args, **options)
        if GRAD_ENABLED.get() and out.requires_grad:
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't "
                f"support automatic differentiation, but one of the arguments requires "
                f"grad."
            )
        dtype: Any = options.setdefault("dtype", out.dtype)
        if dtype != out.dtype:
            raise RuntimeError(
                f"dtype {scalar_type_name(dtype)} does not match dtype of out "
                f"parameter ({scalar_type_name(out.dtype)})"
            )
        device: Any = options.setdefault("device", out.device)
        if Device(device) is not out.device:
            raise RuntimeError(
                f"device {device} does not match device of out parameter ({out.device})"
            )
        made = function(*args, **options)
        if made.shape != out.shape:
            out.resize_(made.shape)
        out.copy_(made)
        return out

    return make
