"""Layers that add something to the ends of dimensions."""

from typing import ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class Padding(Module):
    """Adds to the ends of the last dimensions.

    Args:
        padding: Length to add: one number for all ends, or one for each, those of the
            last dimension first. Negative numbers take away.
    """

    _num_dims: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        if isinstance(padding, int):
            padding = (padding,) * (2 * self._num_dims)
        self.padding = tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Shape ``(N, C, *)`` or ``(C, *)``."""
        value = getattr(self, "value", None)
        return F.pad(input, self.padding, self._mode, value)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.padding}"


class ConstantPad1d(Padding):
    """Adds `value` to the ends of sequences; see `Padding`."""

    _num_dims = 1

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """The arguments."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Adds `value` to the ends of images; see `Padding`."""

    _num_dims = 2


class ConstantPad3d(ConstantPad1d):
    """Adds `value` to the ends of volumes; see `Padding`."""

    _num_dims = 3


class ZeroPad1d(ConstantPad1d):
    """Adds zeros to the ends of sequences; see `Padding`."""

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.padding}"


class ZeroPad2d(ZeroPad1d):
    """Adds zeros to the ends of images; see `Padding`."""

    _num_dims = 2


class ZeroPad3d(ZeroPad1d):
    """Adds zeros to the ends of volumes; see `Padding`."""

    _num_dims = 3


class ReflectionPad1d(Padding):
    """Adds the elements before the end, in reverse; see `Padding`."""

    _num_dims = 1
    _mode = "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Like `ReflectionPad1d`, for images."""

    _num_dims = 2


class ReflectionPad3d(ReflectionPad1d):
    """Like `ReflectionPad1d`, for volumes."""

    _num_dims = 3


class ReplicationPad1d(Padding):
    """Repeats the element at the end; see `Padding`."""

    _num_dims = 1
    _mode = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """Like `ReplicationPad1d`, for images."""

    _num_dims = 2


class ReplicationPad3d(ReplicationPad1d):
    """Like `ReplicationPad1d`, for volumes."""

    _num_dims = 3


class CircularPad1d(Padding):
    """Pads with the elements of the other end; see `Padding`."""

    _num_dims = 1
    _mode = "circular"


class CircularPad2d(CircularPad1d):
    """Like `CircularPad1d`, for images."""

    _num_dims = 2


class CircularPad3d(CircularPad1d):
    """Like `CircularPad1d`, for volumes."""

    _num_dims = 3
