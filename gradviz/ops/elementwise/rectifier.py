"""Rectifiers with random slopes."""

import numpy as np

from gradviz.backends.base import Array, copy_to
from gradviz.ops.conventions.generator import default_generator
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, device_of, raw


def _scaled(x: Array, slopes: Array) -> Array:
    return x * slopes


_out_of_place = differentiable(
    "RreluWithNoiseBackward0", arrays=("slopes",), x=lambda grad, slopes: grad * slopes
)(_scaled)
_in_place = differentiable(
    "RreluWithNoiseBackward1", arrays=("slopes",), x=lambda grad, slopes: grad * slopes
)(_scaled)


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
    return _rectified(_out_of_place, input, lower, upper, training)


def rrelu_in_place(
    input: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Value:
    """`rrelu` as its form in place records it."""
    return _rectified(_in_place, input, lower, upper, training)


def _rectified(
    op: Op, input: Value, lower: float, upper: float, training: bool
) -> Value:
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
    return op(input, np.where(x > 0, x.dtype.type(1), slopes))


PUBLIC = [*names("gv.f_ F.f_", rrelu=rrelu_in_place)]
