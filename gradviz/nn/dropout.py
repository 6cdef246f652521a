"""Layers that leave out some of their input while training."""

from typing import ClassVar

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class Dropout(Module):
    """Sets elements to 0 with probability `p`, and scales up the others.

    Args:
        p: The probability.
        inplace: True if the input itself is changed.

    Raises:
        ValueError: `p` is not a probability.
    """

    _function: ClassVar[str] = "dropout"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(
                f"dropout probability has to be between 0 and 1, but got {p}"
            )
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The input, in training mode with some elements left out."""
        return getattr(F, self._function)(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """Leaves out whole channels of sequences."""

    _function: ClassVar[str] = "dropout1d"


class Dropout2d(Dropout):
    """Leaves out whole channels of images."""

    _function: ClassVar[str] = "dropout2d"


class Dropout3d(Dropout):
    """Leaves out whole channels of volumes."""

    _function = "dropout3d"


class AlphaDropout(Dropout):
    """Keeps mean 0 and variance 1, for networks of SELU."""

    _function: ClassVar[str] = "alpha_dropout"


class FeatureAlphaDropout(Dropout):
    """Like `AlphaDropout`, of whole channels."""

    _function = "feature_alpha_dropout"
