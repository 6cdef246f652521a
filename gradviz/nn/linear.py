"""Layers that multiply with a matrix, and those that only pass on or reshape."""

import math
from typing import Any

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter, reset_linear
from gradviz.nn.module import Module
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor


class Identity(Module):
    """Returns its input; accepts any arguments of the constructor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


class Linear(Module):
    """``input @ weight.T + bias``.

    Args:
        in_features: Length of the last dimension of the input.
        out_features: That of the output.
        bias: True if there is a bias.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = parameter(out_features, in_features, **factory)
        self.register_parameter(
            "bias", parameter(out_features, **factory) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        reset_linear(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(*, in_features)`` to ``(*, out_features)``."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """The `Linear` at the end of a `MultiheadAttention`, by PyTorch's name for it."""


class Bilinear(Module):
    """``input1 @ weight @ input2 + bias``, a matrix for each output.

    Args:
        in1_features: Length of the last dimension of the first input.
        in2_features: That of the second.
        out_features: That of the output.
        bias: True if there is a bias.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = parameter(out_features, in1_features, in2_features, **factory)
        self.register_parameter(
            "bias", parameter(out_features, **factory) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        for one in self.parameters():
            init.uniform_(one, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Shapes ``(*, in1_features)`` and ``(*, in2_features)``."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Several dimensions as one.

    Args:
        start_dim: The first of them.
        end_dim: The last of them.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The input in another shape."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several.

    Args:
        dim: Dimension that is split.
        unflattened_size: Their lengths.
    """

    def __init__(self, dim: int, unflattened_size: tuple[int, ...]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The input in another shape."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
