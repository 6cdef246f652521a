"""Layers that say how far apart vectors are."""

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.nn.module import Module
from gradviz.tensors.tensor import Tensor


class CosineSimilarity(Module):
    """The cosine of the angle between vectors.

    Args:
        dim: The dimension along which they are vectors.
        eps: The least length that counts.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The shape of the inputs without `dim`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of the difference of vectors.

    Args:
        p: Order of the norm.
        eps: Is added to the difference.
        keepdim: True if the last dimension is kept.
    """

    def __init__(
        self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
    ) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Shapes ``(*, D)``."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
