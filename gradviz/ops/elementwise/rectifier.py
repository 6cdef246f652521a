"""Rectifiers whose slopes are random."""

import numpy as np

from gradviz.backends.base import Array, copy_to
from gradviz.ops.recording.differentiable import differentiable
from gradviz.ops.recording.generator import default_generator
from gradviz.ops.recording.variable import Value, device_of, raw


@differentiable(
    "RreluWithNoiseBackward0", arrays=("slopes",), x=lambda grad, slopes: grad * slopes
)
def _scaled(x: Array, slopes: Array) -> Array:
    return x * slopes


def rrelu(
    input: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Value:
    """The elements, those that are not above 0 times a slope between two limits.

    Args:
        input: Floats.
        lower: The smallest slope.
        upper: The largest slope.
        training: Draw a slope for each element, from the default generator; otherwise
            all are in the middle.

    Raises:
        RuntimeError: `lower` is above `upper`.
    """
    x = raw(input)
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound"
        )
    if training:
        drawn = default_generator.random.uniform(lower, upper, x.shape)
        slopes = copy_to(np.asarray(drawn), device_of(x)).astype(x.dtype)
    else:
        slopes = x.dtype.type((lower + upper) / 2)
    return _scaled(input, np.where(x > 0, x.dtype.type(1), slopes))
