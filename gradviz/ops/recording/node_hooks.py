"""Hooks on the nodes of tensors: functions that see tensors.

The engine calls hooks with what flows through it, which is raw arrays in a plain
backward; here they are put into tensors for the user's function, and back.
"""

from gradviz.engine.node import Edge
from gradviz.engine.protocols import Gradient
from gradviz.ops.recording.variable import as_flowing, as_tensor


class Hookable:
    """A node on which users register hooks; a mixin for subclasses of `Node`."""

    __slots__ = ()

    @staticmethod
    def shown(gradient: Gradient) -> Gradient:
        """A gradient as a tensor."""
        return as_tensor(gradient)

    @staticmethod
    def taken(gradient: Gradient) -> Gradient:
        """What a hook returned, as it flows in the current pass."""
        return as_flowing(gradient)


def move_retained_grad(before: Edge | None, after: Edge) -> None:
    """Have what retained the gradient at one place retain it at another.

    An op in place moves its tensor there. Hooks stay, for they were to see the gradient
    of the old value.

    Source: torch/csrc/autograd/variable.cpp, update_tensor_hooks_on_new_gradfn.
    """
    if before is None or before.node is None or before.node.hooks is None:
        return
    keep = before.node.hooks.retains_grad.pop(before.input_nr, None)
    if keep is not None and after.node is not None:
        after.node.hooks_to_add_to().retains_grad[after.input_nr] = keep
