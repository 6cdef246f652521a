"""Adding up the gradients of a context, by the rules of a leaf's ``.grad``."""

from gradviz.engine.graph.input_buffer import (
    InputBuffer,
    fits,
    is_sole_reference,
    is_writeable,
    owns_its_memory,
)
from gradviz.ops.conventions.memory_layout import is_laid_out_as
from gradviz.ops.variables.variable import Value, Variable, variable


def accumulated(
    leaf: Variable, stored: Value | None, gradients: InputBuffer, input_nr: int
) -> Value:
    """Return the sum of the stored gradient of `leaf` and the new one.

    The first gradient is kept without a copy if nobody else has it, and a later one is
    added in place.

    Args:
        leaf: Leaf that the gradient belongs to.
        stored: Stored gradient, None for nothing.
        gradients: Buffer of the new one: the only list that has it, if it may be kept.
        input_nr: Its place there.

    Source: torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad (E).
    """
    if stored is None:
        if (
            is_sole_reference(gradients, input_nr)
            and owns_its_memory(gradients[input_nr])
            and is_laid_out_as(gradients[input_nr], leaf.array)
        ):
            return variable(gradients[input_nr])
        return variable(gradients[input_nr].copy())
    gradient = gradients[input_nr]
    if fits(stored.array, gradient) and is_writeable(stored.array):
        stored.array += gradient
        stored.shared_version().value += 1
        return stored
    return variable(stored.array + gradient)
