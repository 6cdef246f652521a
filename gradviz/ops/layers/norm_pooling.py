"""Pooling by the norm of each window."""

from math import prod

from gradviz.ops.conventions.dimensions import INTEGERS, Lengths
from gradviz.ops.dispatch.differentiable import Op
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.activation import relu
from gradviz.ops.elementwise.arithmetic import mul
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.elementwise.rounding import abs as absolute
from gradviz.ops.elementwise.rounding import sign
from gradviz.ops.layers.pooling import avg_pool1d, avg_pool2d, avg_pool3d
from gradviz.ops.variables.variable import Value


def lp_pool1d(
    input: Value,
    norm_type: float,
    kernel_size: int,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Value:
    """The sum of powers over each window of a sequence, to the ``1 / norm_type``.

    Args:
        input: Shape ``(N, C, L)`` or ``(C, L)``.
        norm_type: The exponent.
        kernel_size: Number of elements in a window.
        stride: Steps between windows; by default there are none in common.
        ceil_mode: True if a last window may reach beyond the end.
    """
    averages = avg_pool1d(pow(input, norm_type), kernel_size, stride, 0, ceil_mode)
    return _rooted(averages, norm_type, kernel_size)


def lp_pool2d(
    input: Value,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Value:
    """`lp_pool1d` of images."""
    return _pooled(avg_pool2d, 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Value,
    norm_type: float,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    ceil_mode: bool = False,
) -> Value:
    """`lp_pool1d` of volumes."""
    return _pooled(avg_pool3d, 3, input, norm_type, kernel_size, stride, ceil_mode)


def _pooled(
    average: Op,
    spatial: int,
    x: Value,
    norm_type: float,
    size: Lengths,
    stride: Lengths | None,
    ceil_mode: bool,
) -> Value:
    count = size**spatial if isinstance(size, INTEGERS) else prod(size)
    averages = average(pow(x, norm_type), size, stride, 0, ceil_mode)
    return _rooted(averages, norm_type, count)


def _rooted(averages: Value, norm_type: float, count: int) -> Value:
    """Source: torch/nn/functional.py, lp_pool2d."""
    positive = mul(sign(averages), relu(absolute(averages)))
    return pow(mul(positive, count), 1.0 / norm_type)


PUBLIC = [*names("F.f", lp_pool1d, lp_pool2d, lp_pool3d)]
