"""``torch.autograd.Variable``: the class of tensors before PyTorch 0.4.

Old programs still make leaves with it.
"""

from collections.abc import Callable

from gradviz.autograd.current_pass import queue_callback
from gradviz.engine import default_engine
from gradviz.ops.variables import variable as ops_variable
from gradviz.ops.variables.variable import Value, detached


class _IsTensor(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ops_variable.Variable)


class _ExecutionEngine:
    """PyTorch's private access to the engine."""

    @staticmethod
    def queue_callback(callback: Callable[[], object]) -> None:
        """See `gradviz.autograd.graph.queue_callback`."""
        queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Return whether every pass on this thread's stack runs unrestricted (K1)."""
        return default_engine().is_checkpoint_valid()


class Variable(metaclass=_IsTensor):
    """Makes a leaf on the memory of a tensor; every tensor is an instance.

    Args:
        data: The tensor.
        requires_grad: True if gradients are wanted.
    """

    _execution_engine = _ExecutionEngine()

    def __new__(  # noqa: D102 - see the class
        cls, data: ops_variable.Variable, requires_grad: bool = False
    ) -> Value:
        leaf = detached(data)
        if requires_grad:
            leaf.requires_grad = True
        return leaf
