"""Activations as functions, with PyTorch's way of saying that they work in place."""

from collections.abc import Callable
from typing import Any, Final

from gradviz.ops.elementwise import activation, selection
from gradviz.ops.elementwise.rectifier import rrelu as random_rectifier
from gradviz.ops.elementwise.rectifier import rrelu_in_place
from gradviz.ops.recording.in_place import in_place
from gradviz.ops.recording.variable import Value

#: What takes a tensor first.
InPlaceFunction = Callable[..., Any]

relu_: Final[InPlaceFunction] = in_place(activation.relu)
leaky_relu_: Final[InPlaceFunction] = in_place(activation.leaky_relu_in_place)
elu_: Final[InPlaceFunction] = in_place(activation.elu_in_place)
selu_: Final[InPlaceFunction] = in_place(activation.selu_in_place)
celu_: Final[InPlaceFunction] = in_place(activation.celu_in_place)
hardtanh_: Final[InPlaceFunction] = in_place(activation.hardtanh)
threshold_: Final[InPlaceFunction] = in_place(selection.threshold_in_place)
rrelu_: Final[InPlaceFunction] = in_place(rrelu_in_place)
_relu6_: Final[InPlaceFunction] = in_place(activation.relu6)
_silu_: Final[InPlaceFunction] = in_place(activation.silu)
_mish_: Final[InPlaceFunction] = in_place(activation.mish)
_hardsigmoid_: Final[InPlaceFunction] = in_place(activation.hardsigmoid)
_hardswish_: Final[InPlaceFunction] = in_place(activation.hardswish)


def relu(input: Value, inplace: bool = False) -> Value:
    """The elements above 0, and 0 for the others."""
    return (relu_ if inplace else activation.relu)(input)


def relu6(input: Value, inplace: bool = False) -> Value:
    """The elements limited to between 0 and 6."""
    return (_relu6_ if inplace else activation.relu6)(input)


def leaky_relu(
    input: Value, negative_slope: float = 0.01, inplace: bool = False
) -> Value:
    """The elements, those below 0 times `negative_slope`."""
    return (leaky_relu_ if inplace else activation.leaky_relu)(input, negative_slope)


def elu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """The elements, those below 0 bent towards ``-alpha``."""
    return (elu_ if inplace else activation.elu)(input, alpha)


def selu(input: Value, inplace: bool = False) -> Value:
    """`elu`, scaled so that mean and variance stay what they are."""
    return (selu_ if inplace else activation.selu)(input)


def celu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """`elu` with a slope of 1 at 0 for every `alpha`."""
    return (celu_ if inplace else activation.celu)(input, alpha)


def silu(input: Value, inplace: bool = False) -> Value:
    """The elements times `sigmoid` of them."""
    return (_silu_ if inplace else activation.silu)(input)


def mish(input: Value, inplace: bool = False) -> Value:
    """The elements times ``tanh(softplus(input))``."""
    return (_mish_ if inplace else activation.mish)(input)


def hardtanh(
    input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Value:
    """The elements within limits; at a limit the gradient is 0."""
    return (hardtanh_ if inplace else activation.hardtanh)(input, min_val, max_val)


def hardsigmoid(input: Value, inplace: bool = False) -> Value:
    """A straight line from 0 at -3 to 1 at 3."""
    return (_hardsigmoid_ if inplace else activation.hardsigmoid)(input)


def hardswish(input: Value, inplace: bool = False) -> Value:
    """The elements times `hardsigmoid` of them."""
    return (_hardswish_ if inplace else activation.hardswish)(input)


def threshold(
    input: Value, threshold: float, value: float, inplace: bool = False
) -> Value:
    """Elements above `threshold`, and `value` in place of the others."""
    return (threshold_ if inplace else selection.threshold)(input, threshold, value)


def rrelu(
    input: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Value:
    """`leaky_relu` with random slopes; see `rrelu` in `gradviz.ops`."""
    function = rrelu_ if inplace else random_rectifier
    return function(input, lower, upper, training)
