"""Making parameters of layers: of which dtype, on which device, from where."""

import math
from typing import TypedDict, Unpack

from gradviz.backends.device import Device
from gradviz.nn import init
from gradviz.nn.parameter import Parameter
from gradviz.ops.conventions.promotion import DTypeLike
from gradviz.tensors.creation.factories import zeros


class Factory(TypedDict, total=False):
    """Options that every layer with parameters accepts besides its own.

    Attributes:
        device: Device of the parameters; None for the CPU.
        dtype: Their type; None for the default.
    """

    device: Device | str | None
    dtype: DTypeLike


def parameter(*shape: int, **factory: Unpack[Factory]) -> Parameter:
    """Return a parameter whose elements the layer sets afterwards."""
    return Parameter(zeros(shape, **factory))


def reset_linear(weight: Parameter, bias: Parameter | None) -> None:
    """The first values of a layer that multiplies: uniform within ``1 / sqrt(fan_in)``.

    Source: torch/nn/modules/linear.py, Linear.reset_parameters.
    """
    if weight.numel():
        init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)
