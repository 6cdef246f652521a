"""Protocols of a gradient and of a leaf: all that the engine needs of arrays.

A gradient is anything that can be added to its like: a NumPy or CuPy array, a float, a
Tensor, an instance of a user's class. If a node declares metadata for an input, the
gradient that arrives there must also have a shape, a dtype, and the array methods that
the checks of `gradviz.engine.graph.validation` call.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

#: A gradient, or None if there is none ("undefined" in PyTorch's words). The engine is
#: duck-typed here on purpose: it requires only `+` of a gradient.
Gradient: TypeAlias = Any


class Leaf(Protocol):
    """Receiver of the gradient of an `AccumulateGrad`.

    Attributes:
        grad: The sum of the gradients so far, None before the first.
        requires_grad: A leaf that no longer wants gradients is skipped.
    """

    grad: Gradient
    requires_grad: bool


class Named(Protocol):
    """An object with a name, like a node."""

    def name(self) -> str:
        """Return the name to use in messages."""


def name_of(node: Named) -> str:
    """Return the name of a node, even if a user has set its `name`."""
    return type(node).name(node)


def size_bytes(gradient: Gradient) -> int:
    """Return the bytes of a gradient's data, 0 if it has no such notion."""
    return getattr(gradient, "nbytes", 0)


def sum_of_sizes(gradients: Sequence[Gradient]) -> int:
    """Return the total bytes of several gradients."""
    if len(gradients) == 1:  # nearly always: one call instead of five
        return getattr(gradients[0], "nbytes", 0)
    return sum(map(size_bytes, gradients))
