"""Layers that take a norm of each neighborhood."""

from typing import ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.ops.conventions.dimensions import Lengths
from gradviz.tensors.tensor import Tensor


class LPPool1d(Module):
    """The p-norm of each neighborhood along one dimension.

    Args:
        norm_type: Exponent of the norm.
        kernel_size: Of the neighborhood.
        stride: From one to the next; `kernel_size` if not given.
        ceil_mode: True if neighborhoods may reach over the end.

    Source: torch/nn/modules/pooling.py.
    """

    _function: ClassVar[str] = "lp_pool1d"

    def __init__(
        self,
        norm_type: float,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, ...)`` or ``(C, ...)``."""
        return getattr(F, self._function)(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool2d(LPPool1d):
    """The p-norm of each neighborhood of images; see `LPPool1d`."""

    _function = "lp_pool2d"


class LPPool3d(LPPool1d):
    """The p-norm of each neighborhood of volumes; see `LPPool1d`."""

    _function = "lp_pool3d"
