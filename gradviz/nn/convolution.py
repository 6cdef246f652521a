"""Layers that slide a kernel over their input."""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from gradviz.backends.device import Device
from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.factory import Factory, parameter, reset_linear
from gradviz.nn.module import Module
from gradviz.ops.conventions.dimensions import Lengths
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.tensor import Tensor

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Convolution(Module):
    """Base of convolutions of any number of dimensions.

    Args:
        in_channels: Channels (dimension 1) of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the kernel.
        stride: Step between positions of the kernel.
        padding: Padding of both ends of each dimension, or ``same`` or ``valid``.
        dilation: Distance between elements of the kernel.
        groups: Number of groups of channels that are convolved separately.
        bias: True if there is a bias.
        padding_mode: ``zeros``, ``reflect``, ``replicate`` or ``circular``.
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default one.

    Raises:
        ValueError: Arguments do not fit each other.

    Source: torch/nn/modules/conv.py, _ConvNd.
    """

    _num_dims: ClassVar[int]
    _function: ClassVar[str]
    _is_transposed: ClassVar[bool] = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Lengths,
        stride: Lengths = 1,
        padding: Lengths | str = 0,
        dilation: Lengths = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        super().__init__()
        _check(in_channels, out_channels, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._lengths(kernel_size)
        self.stride = self._lengths(stride)
        self.padding = padding if isinstance(padding, str) else self._lengths(padding)
        self.dilation = self._lengths(dilation)
        self.output_padding = self._lengths(0)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check_padding()
        channels = (out_channels, in_channels // groups)
        if self._is_transposed:
            channels = (in_channels, out_channels // groups)
        self.weight = parameter(*channels, *self.kernel_size, **factory)
        self.register_parameter(
            "bias", parameter(out_channels, **factory) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        reset_linear(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, in_channels, ...)``, or without ``N``."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._ends(), mode=self.padding_mode)
            padding = self._lengths(0)
        return getattr(F, self._function)(
            input,
            self.weight,
            self.bias,
            self.stride,
            padding,
            self.dilation,
            self.groups,
        )

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        texts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if self.padding != self._lengths(0):
            texts.append(f"padding={self.padding}")
        if self.dilation != self._lengths(1):
            texts.append(f"dilation={self.dilation}")
        if self.output_padding != self._lengths(0):
            texts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            texts.append(f"groups={self.groups}")
        if self.bias is None:
            texts.append("bias=False")
        if self.padding_mode != "zeros":
            texts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(texts)

    def _lengths(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, int):
            return (value,) * self._num_dims
        return tuple(value)

    def _ends(self) -> list[int]:
        """Return the padding of both ends of each dimension, the last one first."""
        if self.padding == "valid":
            return [0] * (2 * self._num_dims)
        if self.padding == "same":
            totals = [
                dilation * (size - 1)
                for dilation, size in zip(self.dilation, self.kernel_size, strict=True)
            ]
            ends = [(total // 2, total - total // 2) for total in totals]
        else:
            ends = [(int(one), int(one)) for one in self.padding]
        return list(itertools.chain.from_iterable(reversed(ends)))

    def _check_padding(self) -> None:
        if not isinstance(self.padding, str):
            return
        if self.padding not in {"same", "valid"}:
            raise ValueError(
                f"Invalid padding string {self.padding!r}, should be one of "
                f"{{'valid', 'same'}}"
            )
        if self.padding == "same" and any(one != 1 for one in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")


class Conv1d(Convolution):
    """Slides a kernel along one dimension."""

    _num_dims = 1
    _function = "conv1d"


class Conv2d(Convolution):
    """Slides a kernel over images."""

    _num_dims = 2
    _function = "conv2d"


class Conv3d(Convolution):
    """Slides a kernel through volumes."""

    _num_dims = 3
    _function = "conv3d"


class TransposedConvolution(Convolution):
    """Layer that computes a convolution's gradient.

    The arguments besides these are those of `Convolution`.

    Args:
        output_padding: Padding added to one end of each dimension of the output.
        padding_mode: ``zeros``.

    Source: torch/nn/modules/conv.py, _ConvTransposeNd.
    """

    _is_transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Lengths,
        stride: Lengths = 1,
        padding: Lengths = 0,
        output_padding: Lengths = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Lengths = 1,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DTypeLike = None,
    ) -> None:
        factory: Factory = {"device": device, "dtype": dtype}
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}'
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            **factory,
        )
        self.output_padding = self._lengths(output_padding)

    def forward(
        self, input: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """The transpose of the convolution's map.

        Args:
            input: Shape ``(N, in_channels, ...)``, or without ``N``.
            output_size: Lengths of the result's last dimensions, or of all; they take
                the place of `output_padding`.

        Raises:
            ValueError: No padding gives a result of these lengths.
        """
        padding = self.output_padding
        if output_size is not None:
            padding = self._output_padding(input, list(output_size))
        return getattr(F, self._function)(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            padding,
            self.groups,
            self.dilation,
        )

    def _output_padding(self, input: Tensor, sizes: list[int]) -> tuple[int, ...]:
        num_dims = self._num_dims
        num_others = 2 if input.ndim == num_dims + 2 else 1
        given = len(sizes)
        if given == num_others + num_dims:
            sizes = sizes[num_others:]
        if len(sizes) != num_dims:
            raise ValueError(
                f"ConvTranspose{num_dims}D: for {input.ndim}D input, output_size must "
                f"have {num_dims} or {num_others + num_dims} elements (got {given})"
            )
        assert not isinstance(self.padding, str)  # no name is taken here
        least = [
            (length - 1) * step - 2 * padding + apart * (reach - 1) + 1
            for (length, step, padding), (apart, reach) in zip(
                zip(input.shape[num_others:], self.stride, self.padding, strict=True),
                zip(self.dilation, self.kernel_size, strict=True),
                strict=True,
            )
        ]
        most = [size + step - 1 for size, step in zip(least, self.stride, strict=True)]
        for size, low, high in zip(sizes, least, most, strict=True):
            if not low <= size <= high:
                raise ValueError(
                    f"requested an output size of {sizes}, but valid sizes range from "
                    f"{least} to {most} (for an input of {input.shape[num_others:]})"
                )
        return tuple(size - low for size, low in zip(sizes, least, strict=True))


class ConvTranspose1d(TransposedConvolution):
    """The transpose of `Conv1d`."""

    _num_dims = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(TransposedConvolution):
    """The transpose of `Conv2d`."""

    _num_dims = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(TransposedConvolution):
    """The transpose of `Conv3d`."""

    _num_dims = 3
    _function = "conv_transpose3d"


def _check(in_channels: int, out_channels: int, groups: int, padding_mode: str) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {set(_PADDING_MODES)}, but got "
            f"padding_mode='{padding_mode}'"
        )
