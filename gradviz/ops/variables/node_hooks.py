"""Hooks of users on the nodes of tensors, and calls of these nodes.

Through the engine flow raw arrays in a plain backward; here they are put into tensors
for the user, and back.
"""

from typing import Any

from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.odd_fields import FIELD_ERRORS, error_at
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.variables.variable import Variable, as_flowing, as_tensor


class Hookable(Node):
    """A node with which users may deal."""

    __slots__ = ()

    def __call__(self, *grads: object) -> Any:  # noqa: ANN401 - a tensor or several
        """Run the node alone, outside of any pass and without its hooks.

        Args:
            *grads: The gradient of each output, None where there is none.

        Returns:
            The gradient of the input, or those of all inputs. They are part of the
            graph unless gradient mode is off.

        Raises:
            TypeError: There are more or fewer, or one is not a tensor.

        Source: torch/csrc/autograd/python_cpp_function.cpp, THPCppFunction_call.
        """
        if len(grads) != self.num_inputs:
            raise TypeError(
                f"expected {self.num_inputs} arguments, got {len(grads)} instead"
            )
        for index, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Variable):
                raise TypeError(f"argument {index} is not a Variable")
        try:
            called = self.call([as_flowing(one) for one in grads])
        except FIELD_ERRORS as error:
            raise error_at(error, self)  # noqa: B904 - which has its cause
        results = tuple(map(as_tensor, called))
        return results[0] if len(results) == 1 else results

    @staticmethod
    def shown(gradient: Gradient) -> Gradient:
        """A gradient as a tensor."""
        return as_tensor(gradient)

    @staticmethod
    def taken(gradient: Gradient) -> Gradient:
        """Return a hook's result as it flows in the current pass."""
        return as_flowing(gradient)


def move(x: Variable, edge: Edge) -> None:
    """Give `x` another place in the graph, where an op in place has put it.

    Its hooks stay where it was, for they were to see the gradient of the old value.
    """
    before = x.edge
    x.edge, x.needs_grad = edge, True
    if x._hooks is not None:
        x._hooks.pre = ()
    move_retained_grad(before, edge)


def move_retained_grad(before: Edge | None, after: Edge) -> None:
    """Move the retention of a gradient from one place to another.

    Source: torch/csrc/autograd/variable.cpp, update_tensor_hooks_on_new_gradfn.
    """
    if before is None or before.node is None or before.node.hooks is None:
        return
    keep = before.node.hooks.retains_grad.pop(before.input_nr, None)
    if keep is not None and after.node is not None:
        after.node.hooks_to_add_to().retains_grad[after.input_nr] = keep
