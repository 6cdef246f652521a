"""The edge that the gradient of one of PyTorch's tensors takes.

Nothing here runs an operation on a tensor of a class of its own, which would hear it.
"""

from typing import Any

from gradviz.pytorch.nodes.graph_reader import TorchNode


def root_edge(one: Any, torch: Any) -> tuple[TorchNode | None, int]:  # noqa: ANN401
    """The node at which a backward from a tensor begins, and its output; None for none.

    Args:
        one: A tensor, or an edge of `torch.autograd.graph`.
        torch: The module.
    """
    if not isinstance(one, torch.Tensor):
        return one.node, one.output_nr
    if one.grad_fn is not None:
        return one.grad_fn, one.output_nr
    if not one.requires_grad:
        return None, 0
    # A leaf knows its AccumulateGrad, and tells nobody. No mode hears of the view, and
    # no class either, unless it has no memory of its own.
    try:
        with torch.enable_grad(), torch._C._DisableTorchDispatch():
            return one.view_as(one).grad_fn.next_functions[0][0], 0
    except (RuntimeError, AttributeError):
        return None, 0


def output_edge(one: Any, torch: Any) -> tuple[TorchNode | Any, int]:  # noqa: ANN401
    """Return the place of a requested output: its node, or the leaf itself."""
    if not isinstance(one, torch.Tensor):
        return one.node, one.output_nr
    return (one, 0) if one.grad_fn is None else (one.grad_fn, one.output_nr)
