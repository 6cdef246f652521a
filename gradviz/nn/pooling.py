"""Layers that take the largest, or the mean, of each neighborhood."""

from typing import Any, ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.ops.conventions.dimensions import Lengths
from gradviz.tensors.tensor import Tensor


class MaxPool(Module):
    """The largest of each neighborhood.

    Args:
        kernel_size: Of the neighborhood.
        stride: From one to the next; `kernel_size` if not given.
        padding: Padding added to both ends of each dimension.
        dilation: Distance between elements of a neighborhood.
        return_indices: True if the indices of the largest are returned, too.
        ceil_mode: True if neighborhoods may reach over the end.
    """

    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        dilation: Lengths = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Shape ``(N, C, ...)`` or ``(C, ...)``."""
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(MaxPool):
    """The largest of each neighborhood along one dimension."""

    _function = "max_pool1d"


class MaxPool2d(MaxPool):
    """The largest of each neighborhood of images."""

    _function = "max_pool2d"


class MaxPool3d(MaxPool):
    """The largest of each neighborhood of volumes."""

    _function = "max_pool3d"


class AvgPool1d(Module):
    """The mean of each neighborhood along one dimension; see `AvgPool2d`."""

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = self.kernel_size if stride is None else _single(stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, L)`` or ``(C, L)``."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class AvgPool2d(Module):
    """The mean of each neighborhood of images.

    Args:
        kernel_size: Of the neighborhood.
        stride: From one to the next; `kernel_size` if not given.
        padding: Padding added to both ends of each dimension.
        ceil_mode: True if neighborhoods may reach over the end.
        count_include_pad: True if the padding counts.
        divisor_override: Divisor to use instead of the number of elements.
    """

    _function: ClassVar[str] = "avg_pool2d"

    def __init__(
        self,
        kernel_size: Lengths,
        stride: Lengths | None = None,
        padding: Lengths = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, H, W)`` or ``(C, H, W)``."""
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class AvgPool3d(AvgPool2d):
    """The mean of each neighborhood of volumes; see `AvgPool2d`."""

    _function = "avg_pool3d"


class AdaptivePool(Module):
    """Neighborhoods of such a size that the output has a given one.

    Args:
        output_size: Of the output; None for a dimension as long as the input's.
    """

    _function: ClassVar[str]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, ...)`` or ``(C, ...)``."""
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        """The argument."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(AdaptivePool):
    """The mean of each neighborhood along one dimension."""

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(AdaptivePool):
    """The mean of each neighborhood of images."""

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(AdaptivePool):
    """The mean of each neighborhood of volumes."""

    _function = "adaptive_avg_pool3d"


class AdaptiveMaxPool1d(AdaptivePool):
    """The largest of each neighborhood along one dimension.

    Args:
        output_size: See `AdaptivePool`.
        return_indices: True if the indices of the largest are returned, too.
    """

    _function: ClassVar[str] = "adaptive_max_pool1d"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Shape ``(N, C, ...)`` or ``(C, ...)``."""
        function = getattr(F, self._function)
        return function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(AdaptiveMaxPool1d):
    """The largest of each neighborhood of images; see `AdaptiveMaxPool1d`."""

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(AdaptiveMaxPool1d):
    """The largest of each neighborhood of volumes; see `AdaptiveMaxPool1d`."""

    _function = "adaptive_max_pool3d"


def _single(length: Lengths) -> tuple[int, ...]:
    return (length,) if isinstance(length, int) else tuple(length)
