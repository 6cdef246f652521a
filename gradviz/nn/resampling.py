"""Layers that change the size of images, or the order of their parts."""

from typing import Any

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class Upsample(Module):
    """Images, or sequences or volumes, of another size.

    Args:
        size: The size; None to take `scale_factor`.
        scale_factor: Factor by which they become larger, for all dimensions or each.
        mode: Method that finds what is between the elements: ``nearest``, ``linear``
            and the others of `gradviz.nn.functional.interpolate`.
        align_corners: True if elements at corners stay there.
        recompute_scale_factor: See `gradviz.nn.functional.interpolate`.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, *)``."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        how = (
            f"size={self.size}"
            if self.scale_factor is None
            else f"scale_factor={self.scale_factor!r}"
        )
        return f"{how}, mode={self.mode!r}"


class PixelShuffle(Module):
    """Channels become parts of larger images.

    Args:
        upscale_factor: Factor by which images become larger.
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(*, C * factor**2, H, W)`` to ``(*, C, H * factor, W * factor)``."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The argument."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Undoes `PixelShuffle`.

    Args:
        downscale_factor: Factor by which images become smaller.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(*, C, H * factor, W * factor)`` to ``(*, C * factor**2, H, W)``."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The argument."""
        return f"downscale_factor={self.downscale_factor}"


class Unfold(Module):
    """The neighborhoods that a kernel would see, as columns.

    Args:
        kernel_size: Of a neighborhood.
        dilation: Distance between its elements.
        padding: Number of elements that are added to both ends of each dimension.
        stride: From one neighborhood to the next.
    """

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, H, W)`` to ``(N, C * size, number)``."""
        return F.unfold(
            input, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Fold(Module):
    """Columns back into images, overlaps added; undoes `Unfold`.

    Args:
        output_size: Of the images.
        kernel_size: Of a neighborhood.
        dilation: Distance between its elements.
        padding: Number of elements that were added to both ends of each dimension.
        stride: From one neighborhood to the next.
    """

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C * size, number)`` to ``(N, C, *output_size)``."""
        return F.fold(
            input,
            self.output_size,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class ChannelShuffle(Module):
    """Mixes channels: one of each group in turn.

    Args:
        groups: Number of groups.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, *)``."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The argument."""
        return f"groups={self.groups}"


class UpsamplingNearest2d(Upsample):
    """Images of another size, of the nearest elements.

    The arguments are those of `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images of another size, of weighted neighbors; corners stay where they are.

    The arguments are those of `Upsample`.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
