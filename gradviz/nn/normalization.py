"""Layers that bring their input to mean 0 and variance 1, over some of its elements."""

from collections.abc import Sequence

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor


class LayerNorm(Module):
    """Normalizes each sample over its last dimensions.

    Args:
        normalized_shape: The lengths of those dimensions.
        eps: Is added to the variance.
        elementwise_affine: True if a scale and a shift of each element are learned.
        bias: True if the shift is learned.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Source: torch/nn/modules/normalization.py.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter(
            "weight", parameter(*shape, **factory) if elementwise_affine else None
        )
        self.register_parameter(
            "bias",
            parameter(*shape, **factory) if elementwise_affine and bias else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(*, *normalized_shape)``."""
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides each sample by the root mean square over its last dimensions.

    Args:
        normalized_shape: The lengths of those dimensions.
        eps: Is added to the mean square; the dtype's smallest step if not given.
        elementwise_affine: True if a scale of each element is learned.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            parameter(*self.normalized_shape, **factory)
            if elementwise_affine
            else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Shape ``(*, *normalized_shape)``."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalizes each sample over groups of its channels.

    Args:
        num_groups: Number of groups.
        num_channels: Dimension 1 of the input.
        eps: Is added to the variance.
        affine: True if a scale and a shift of each channel are learned.
        bias: True if the shift is learned, if the scale is.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        ValueError: The groups would not be of one size.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, is_learned in (("weight", affine), ("bias", affine and bias)):
            one = parameter(num_channels, **factory) if is_learned else None
            self.register_parameter(name, one)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by 1, shift by 0."""
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, num_channels, *)``."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}, bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """Divides by the values of neighboring channels at the same place.

    Args:
        size: Number of channels that count.
        alpha: Weight of their mean square.
        beta: The exponent of what is divided by.
        k: Number that is added to the weighted mean square.
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
    ) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, *)``."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def reset_affine(module: Module) -> None:
    """Let a layer scale by 1 and shift by 0, if it does that."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)
