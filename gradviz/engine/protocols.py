"""What the engine needs of a gradient, and of a leaf: nothing about array libraries.

A gradient is anything that can be added to its like: a NumPy or CuPy array, a float, a
Tensor, a class of the user's own. Where a node declares metadata for an input, the
gradient that arrives there must also have a shape and a dtype, and the methods of an
array that the checks of `gradviz.engine.validation` call.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

#: A gradient, or None where none flows ("undefined" in PyTorch's words). The engine is
#: duck-typed here on purpose: only `+` is asked of every gradient.
Gradient: TypeAlias = Any


class Leaf(Protocol):
    """Where `AccumulateGrad` puts its gradient.

    Attributes:
        grad: The sum of the gradients so far, None before the first.
        requires_grad: A leaf that no longer wants gradients is skipped.
    """

    grad: Gradient
    requires_grad: bool


class Named(Protocol):
    """What has a name, as nodes have."""

    def name(self) -> str:
        """How messages call it."""


def name_of(node: Named) -> str:
    """The name of a node, even if a user has given it an attribute called so."""
    return type(node).name(node)


def size_bytes(gradient: Gradient) -> int:
    """Bytes of a gradient's data, 0 where it has no such notion."""
    return getattr(gradient, "nbytes", 0)


def sum_of_sizes(gradients: Sequence[Gradient]) -> int:
    """Bytes of several gradients."""
    if len(gradients) == 1:  # nearly always: one call instead of five
        return getattr(gradients[0], "nbytes", 0)
    return sum(map(size_bytes, gradients))
