"""Running values, from one step to the next: means, the number of steps."""

from typing import Any, Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.variables.variable import variable
from gradviz.tensors.creation.factories import zeros_like
from gradviz.tensors.tensor import Tensor

#: Key of the number of steps: a tensor of one float, on the host.
STEP: Final = "step"


def kept(state: dict[str, Any], name: str, x: Array) -> Array:
    """The array of this name in a state, zeros like `x` at first."""
    if name not in state:
        state[name] = zeros_like(variable(x))
    array: Array = state[name].array
    return array


def moved(mean: Array, value: Array, share: float) -> Array:
    """A running mean, changed in place: so much of it is kept, the rest is `value`."""
    mean *= share
    mean += (1 - share) * value
    return mean


def next_step(state: dict[str, Any]) -> int:
    """Count a step; returns its number, 1 at first."""
    step = state.get(STEP)
    if not isinstance(step, Tensor):
        step = state[STEP] = variable(np.array(step or 0.0, np.float32))
    step.array += 1
    return int(step.array)
