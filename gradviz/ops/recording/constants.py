"""Arrays that depend on no input: what formulas return where nothing flows."""

import numpy as np

from gradviz.ops.recording.variable import Value, Variable, variable


def zeros_like(x: Value) -> Value:
    """Zeros of the shape, dtype, device and class of `x`, outside the graph."""
    if isinstance(x, Variable):
        return variable(np.zeros_like(x.array))
    return np.zeros_like(x)
