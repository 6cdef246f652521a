"""Layers that normalize each channel, over the batch or over each sample."""

from typing import ClassVar

from gradviz.autograd.grad_mode import no_grad
from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn import init
from gradviz.nn.factory import Factory, parameter
from gradviz.nn.module import Module
from gradviz.nn.normalization import reset_affine
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.creation.factories import ones, zeros
from gradviz.tensors.creation.from_data import tensor
from gradviz.tensors.tensor import Tensor


class BatchNorm(Module):
    """Normalizes each channel over the batch.

    In evaluation mode by the running mean and variance of what was seen in training.

    Args:
        num_features: Dimension 1 of the input.
        eps: Is added to the variance.
        momentum: Weight of a batch in the running statistics; None if all batches count
            the same.
        affine: True if a scale and a shift of each channel are learned.
        track_running_stats: True if there are running statistics.
        bias: True if the shift is learned when the scale is.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Source: torch/nn/modules/batchnorm.py, _BatchNorm.
    """

    _num_dims: ClassVar[tuple[int, ...]]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, is_learned in (("weight", affine), ("bias", affine and bias)):
            one = parameter(num_features, **factory) if is_learned else None
            self.register_parameter(name, one)
        tracked = track_running_stats
        device = factory.get("device")
        self.register_buffer(
            "running_mean", zeros(num_features, **factory) if tracked else None
        )
        self.register_buffer(
            "running_var", ones(num_features, **factory) if tracked else None
        )
        self.register_buffer(
            "num_batches_tracked", tensor(0, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the statistics of training."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set scale to 1 and shift to 0, and reset the statistics."""
        self.reset_running_stats()
        reset_affine(self)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, num_features, *)``.

        Raises:
            ValueError: The input has another number of dimensions.
        """
        if input.ndim not in self._num_dims:
            expected = " or ".join(f"{one}D" for one in self._num_dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")
        by_batch = self.training or self.running_mean is None
        updates = self.training and self.track_running_stats
        keeps_statistics = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keeps_statistics else None,
            self.running_var if keeps_statistics else None,
            self.weight,
            self.bias,
            by_batch,
            self._weight_of_batch() if updates else self.momentum or 0.0,
            self.eps,
        )

    def _weight_of_batch(self) -> float:
        """Count the batch; returns how much it counts in the running statistics."""
        if self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
        if self.momentum is None:
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """For shapes ``(N, C)`` and ``(N, C, L)``."""

    _num_dims = (2, 3)


class BatchNorm2d(BatchNorm):
    """For images, shape ``(N, C, H, W)``."""

    _num_dims = (4,)


class BatchNorm3d(BatchNorm):
    """For volumes, shape ``(N, C, D, H, W)``."""

    _num_dims = (5,)


class InstanceNorm(BatchNorm):
    """Normalizes each channel of each sample.

    In evaluation mode by running statistics, if there are any.

    Args:
        num_features: Dimension 1 of the input.
        eps: Is added to the variance.
        momentum: Weight of a batch in the running statistics.
        affine: True if a scale and a shift of each channel are learned.
        track_running_stats: True if there are running statistics.
        bias: True if the shift is learned when the scale is.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Source: torch/nn/modules/instancenorm.py.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device | str | None = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            track_running_stats,
            bias=bias,
            **factory,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, num_features, *)``, or without ``N``.

        Raises:
            ValueError: The input has another number of dimensions.
        """
        if input.ndim not in self._num_dims:
            expected = " or ".join(f"{one}D" for one in self._num_dims)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")
        is_alone = input.ndim == self._num_dims[0]
        result = F.instance_norm(
            input.unsqueeze(0) if is_alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum or 0.0,
            self.eps,
        )
        return result.squeeze(0) if is_alone else result


class InstanceNorm1d(InstanceNorm):
    """For sequences, shape ``(N, C, L)`` or ``(C, L)``."""

    _num_dims = (2, 3)


class InstanceNorm2d(InstanceNorm):
    """For images, shape ``(N, C, H, W)`` or ``(C, H, W)``."""

    _num_dims = (3, 4)


class InstanceNorm3d(InstanceNorm):
    """For volumes, shape ``(N, C, D, H, W)`` or ``(C, D, H, W)``."""

    _num_dims = (4, 5)
