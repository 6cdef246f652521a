"""Refusal of foreign tensors, with the function to use for PyTorch's."""

from typing import Any, Final

from gradviz.ops.variables.variable import Variable

#: Advice for a tensor of PyTorch's.
_INSTEAD: Final = {
    "draw": "gv.draw(gv.pytorch.graph(tensor)) draws its graph",
    "graph_size": "gv.pytorch.graph(tensor).num_nodes counts the nodes of its graph",
    "find_nan": "torch.autograd.detect_anomaly() finds the node",
    "why_none": "record the backward, 'with gv.pytorch.record(FILE)', and 'gradviz "
    "explain FILE PARAMETER' says why its gradient is or is not there",
}


def check_own_tensor(value: Any, function: str) -> None:  # noqa: ANN401 - unchecked
    """Refuse any object that is not a tensor of ours.

    Raises:
        TypeError: It is none.
    """
    if isinstance(value, Variable):
        return
    if is_pytorchs(value):
        raise TypeError(
            f"{function}() takes gradviz's tensors, got {type(value).__name__} of "
            f"PyTorch: {_INSTEAD[function]}"
        )
    raise TypeError(f"{function}() takes a tensor, got {type(value).__name__}")


def is_pytorchs(value: object) -> bool:
    """Return whether it is a tensor of PyTorch, without importing that."""
    kinds = type(value).__mro__
    return any((one.__module__, one.__name__) == ("torch", "Tensor") for one in kinds)
