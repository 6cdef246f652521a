"""Where the gradients of a node gather until all of them are there."""

from typing import TypeAlias

from gradviz.engine.ownership import fits, is_sole_reference, owns_its_memory
from gradviz.engine.protocols import Gradient
from gradviz.trace.probe import How

#: The gradients that have arrived at a node, a place for each of its inputs; None
#: where nothing has come. Guarded by the mutex of its GraphTask until the node runs.
InputBuffer: TypeAlias = list[Gradient]


def add(buffer: InputBuffer, index: int, gradient: Gradient, *, copies: bool) -> How:
    """Add `gradient` to the one in ``buffer[index]``.

    In place if nobody else can see it, so that a sum of many needs memory for one; see
    Note [Stealing a gradient]. Runs the gradient's own ``+``: call it without locks.

    Args:
        buffer: Has a gradient at `index`.
        index: Which.
        gradient: What to add.
        copies: Never add in place: the sums are part of a graph (``create_graph``).

    Source: torch/csrc/autograd/input_buffer.cpp, accumulate (S3).
    """
    if (
        not copies
        and is_sole_reference(buffer, index)
        and owns_its_memory(buffer[index])
        and fits(buffer[index], gradient)
    ):
        buffer[index] += gradient
        return How.IN_PLACE
    buffer[index] = buffer[index] + gradient
    return How.OUT_OF_PLACE
