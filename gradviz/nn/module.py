"""Module: the base class of layers and models."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from gradviz.autograd.grad_mode import no_grad
from gradviz.backends.device import Device
from gradviz.backends.device_type import DeviceLike, DeviceType
from gradviz.nn import gradients
from gradviz.nn.calling import Calling
from gradviz.nn.state import Stateful
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.ops.variables.variable import Variable
from gradviz.tensors.attributes import dtypes
from gradviz.tensors.tensor import Tensor


class Module(Calling, Stateful):
    """A part of a model: its parameters, and its computation.

    A subclass calls ``super().__init__()``, assigns parameters and other modules to its
    attributes, and defines ``forward``::

        class Perceptron(nn.Module):
            def __init__(self):
                super().__init__()
                self.hidden = nn.Linear(64, 32)
                self.output = nn.Linear(32, 10)

            def forward(self, x):
                return self.output(self.hidden(x).relu())

    Nodes that are made while a module runs carry its name, and traces show it.

    Source: torch/nn/modules/module.py.
    """

    # --- mode -------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set this module and all below it to training mode, or to evaluation mode.

        Raises:
            ValueError: `mode` is not a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set this module and all below it to evaluation mode."""
        return self.train(mode=False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters want gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to 0."""
        gradients.clear(self.parameters(), set_to_none=set_to_none)

    def apply(self, fn: Callable[["Module"], object]) -> Self:
        """Call `fn` with each module below this one, and with this one last."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- dtype and device -------------------------------------------------------------

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert all parameters and buffers, in place.

        Args:
            *args: A dtype (floats only are converted to it), a device or its name,
                both, or a tensor to be like.
            **kwargs: `dtype`, `device` and `non_blocking`, by name; see `Tensor.to`.

        Raises:
            TypeError: The dtype is none of floats or complex numbers.
        """
        dtype, device, non_blocking = _target(*args, **kwargs)
        if dtype is not None and dtype.kind not in "fc":
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype=gradviz.{dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            is_float = tensor.dtype.kind in "fc"
            return tensor.to(
                dtype=dtype if is_float else None,
                device=device,
                non_blocking=non_blocking,
            )

        return self._apply(convert)

    def type(self, dst_type: DTypeLike) -> Self:
        """Convert all parameters and buffers to a dtype, in place."""
        return self._apply(lambda tensor: tensor.to(dtype=dst_type))

    def float(self) -> Self:
        """Convert all parameters and buffers of floats to float32, in place."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Convert all parameters and buffers of floats to float64, in place."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Convert all parameters and buffers of floats to float16, in place."""
        return self.to(dtypes.float16)

    def cpu(self) -> Self:
        """Move all parameters and buffers to host memory, in place."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None) -> Self:
        """Move all parameters and buffers to a CUDA device, in place.

        Args:
            device: Device to move them to; the current one if not given.

        Raises:
            RuntimeError: There is no such device, or no CuPy.
        """
        return self.to(DeviceType("cuda").parse(device))

    def _apply(self, function: Callable[[Any], Any]) -> Self:
        """Replace the elements of all parameters and buffers."""
        for module in self.children():
            module._apply(function)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is not None:
                    grad = parameter.grad
                    parameter.grad = None  # of the dtype and device that were
                    parameter.data = function(parameter.data)
                    parameter.grad = None if grad is None else function(grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = function(buffer)
        return self

    # --- text -------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the text in brackets after the name; a subclass may define it."""
        return ""

    def _child_texts(self) -> list[tuple[str, str]]:
        """Return the texts of the modules below, with their names."""
        return [(name, repr(module)) for name, module in self._modules.items()]

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {_indented(text)}" for name, text in self._child_texts()
        ]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra})"
        lines = extra_lines + child_lines
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"


def _target(
    *args: Any,
    dtype: DTypeLike = None,
    device: Device | str | int | None = None,
    non_blocking: bool = False,
) -> tuple[np.dtype[Any] | None, Device | str | int | None, bool]:
    """Interpret the arguments of ``to``: dtype, device, and whether not to wait."""
    for arg in args:
        match arg:
            case Variable():
                dtype, device = arg.array.dtype, arg.device
            case None:
                pass
            case bool():
                non_blocking = arg
            case str() | Device() | int():
                device = arg
            case _:
                dtype = arg
    return None if dtype is None else np.dtype(dtype), device, non_blocking


def _indented(text: str) -> str:
    """`text` with all lines but the first moved to the right."""
    return text.replace("\n", "\n  ")
