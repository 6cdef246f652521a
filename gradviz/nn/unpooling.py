"""Layers that put the largest of neighborhoods back where they were."""

from collections.abc import Sequence
from typing import ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.ops.conventions.dimensions import Lengths
from gradviz.tensors.tensor import Tensor


class MaxUnpool1d(Module):
    """Undoes `MaxPool1d` as far as possible: other elements become 0.

    Args:
        kernel_size: Of the neighborhoods of the layer to undo.
        stride: From one to the next there; `kernel_size` if not given.
        padding: Length added there to both ends of each dimension.

    Source: torch/nn/modules/pooling.py.
    """

    _num_dims: ClassVar[int] = 1

    def __init__(
        self, kernel_size: Lengths, stride: Lengths | None = None, padding: Lengths = 0
    ) -> None:
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self.kernel_size if stride is None else self._each(stride)
        self.padding = self._each(padding)

    def _each(self, length: Lengths) -> tuple[int, ...]:
        if isinstance(length, int):
            return (length,) * self._num_dims
        return tuple(length)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Undo a pooling.

        Args:
            input: Largest elements, shape ``(N, C, ...)`` or ``(C, ...)``.
            indices: Index of each of them, as the pooling returned it.
            output_size: Of the result, where several are possible.
        """
        function = getattr(F, f"max_unpool{self._num_dims}d")
        return function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}"
        )


class MaxUnpool2d(MaxUnpool1d):
    """Undoes `MaxPool2d`; see `MaxUnpool1d`."""

    _num_dims = 2


class MaxUnpool3d(MaxUnpool1d):
    """Undoes `MaxPool3d`; see `MaxUnpool1d`."""

    _num_dims = 3
