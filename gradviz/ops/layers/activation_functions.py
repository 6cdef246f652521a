"""Activations as functions, with PyTorch's way of saying that they work in place."""

from gradviz.ops.dispatch.in_place import change
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise import activation, selection
from gradviz.ops.elementwise.rectifier import rrelu as random_rectifier
from gradviz.ops.elementwise.rectifier import rrelu_in_place
from gradviz.ops.variables.variable import Value


def relu(input: Value, inplace: bool = False) -> Value:
    """The elements above 0, and 0 for the others."""
    if inplace:
        return change(input, activation.relu)
    return activation.relu(input)


def relu6(input: Value, inplace: bool = False) -> Value:
    """The elements limited to between 0 and 6."""
    if inplace:
        return change(input, activation.relu6)
    return activation.relu6(input)


def leaky_relu(
    input: Value, negative_slope: float = 0.01, inplace: bool = False
) -> Value:
    """The elements, those below 0 times `negative_slope`."""
    if inplace:
        return change(input, activation.leaky_relu_in_place, negative_slope)
    return activation.leaky_relu(input, negative_slope)


def elu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """The elements, those below 0 bent towards ``-alpha``."""
    if inplace:
        return change(input, activation.elu_in_place, alpha)
    return activation.elu(input, alpha)


def selu(input: Value, inplace: bool = False) -> Value:
    """Return `elu`, scaled so that mean and variance keep their values."""
    if inplace:
        return change(input, activation.selu_in_place)
    return activation.selu(input)


def celu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """`elu` with a slope of 1 at 0 for every `alpha`."""
    if inplace:
        return change(input, activation.celu_in_place, alpha)
    return activation.celu(input, alpha)


def silu(input: Value, inplace: bool = False) -> Value:
    """The elements times `sigmoid` of them."""
    if inplace:
        return change(input, activation.silu)
    return activation.silu(input)


def mish(input: Value, inplace: bool = False) -> Value:
    """The elements times ``tanh(softplus(input))``."""
    if inplace:
        return change(input, activation.mish)
    return activation.mish(input)


def hardtanh(
    input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Value:
    """The elements within limits; at a limit the gradient is 0."""
    if inplace:
        return change(input, activation.hardtanh, min_val, max_val)
    return activation.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Value, inplace: bool = False) -> Value:
    """A straight line from 0 at -3 to 1 at 3."""
    if inplace:
        return change(input, activation.hardsigmoid)
    return activation.hardsigmoid(input)


def hardswish(input: Value, inplace: bool = False) -> Value:
    """The elements times `hardsigmoid` of them."""
    if inplace:
        return change(input, activation.hardswish)
    return activation.hardswish(input)


def threshold(
    input: Value, threshold: float, value: float, inplace: bool = False
) -> Value:
    """Elements above `threshold`, and `value` in place of the others."""
    if inplace:
        return change(input, selection.threshold_in_place, threshold, value)
    return selection.threshold(input, threshold, value)


def rrelu(
    input: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Value:
    """`leaky_relu` with random slopes; see `rrelu` in `gradviz.ops`."""
    if inplace:
        return change(input, rrelu_in_place, lower, upper, training)
    return random_rectifier(input, lower, upper, training)


PUBLIC = [
    *names("gv.f F.f", rrelu),
    *names("F.f", celu, elu, hardsigmoid, hardswish, hardtanh, leaky_relu, mish, relu),
    *names("F.f", relu6, selu, silu, threshold),
]
