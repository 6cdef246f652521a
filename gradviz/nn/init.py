"""First values of parameters, in place and outside the graph.

The distributions are PyTorch's; the numbers are not, for the same seed.
Source: torch/nn/init.py.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np

from gradviz.autograd.grad_mode import no_grad
from gradviz.ops.conventions.generator import Generator
from gradviz.tensors.creation import random
from gradviz.tensors.creation.factories import eye
from gradviz.tensors.creation.from_data import from_numpy
from gradviz.tensors.tensor import Tensor

#: Side of a layer whose number counts: its inputs or its outputs.
Fan = Literal["fan_in", "fan_out"]


def uniform_(
    tensor: Tensor,
    a: float = 0.0,
    b: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Uniform between `a` and `b`."""
    return _fill(tensor, _uniform(tensor.shape, generator) * (b - a) + a)


def normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal of this mean and standard deviation."""
    return _fill(tensor, _normal(tensor.shape, generator) * std + mean)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers; redraw those outside of `a` to `b`."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The "
            "distribution of values may be incorrect.",
            stacklevel=2,
        )
    values = _normal(tensor.shape, generator).numpy() * std + mean
    while (outside := (values < a) | (values > b)).any():
        again = _normal((int(outside.sum()),), generator).numpy()
        values[outside] = again * std + mean
    return _fill(tensor, from_numpy(values))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """`val` everywhere."""
    with no_grad():
        tensor.fill_(val)
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix, as far as it fits.

    Raises:
        ValueError: The tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _fill(tensor, eye(*tensor.shape))


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform, keeping the variance both ways (Glorot & Bengio, 2010)."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Normal, keeping the variance both ways (Glorot & Bengio, 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: Fan = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform, keeping the variance one way (He et al., 2015).

    Args:
        tensor: Tensor to fill.
        a: The slope below 0 of a leaky ReLU that follows.
        mode: Direction in which the variance is kept: forward (``fan_in``) or backward.
        nonlinearity: Nonlinearity that follows.
        generator: Source of the random numbers.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: Fan = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal, keeping the variance one way; see `kaiming_uniform_`."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def orthogonal_(
    tensor: Tensor, gain: float = 1, generator: Generator | None = None
) -> Tensor:
    """A matrix (all but the first dimension flattened) with orthogonal rows or columns.

    Raises:
        ValueError: The tensor has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    shape = max(rows, columns), min(rows, columns)
    drawn = _normal(shape, generator).numpy()
    q, r = np.linalg.qr(drawn)
    q = q * np.sign(np.diag(r))
    matrix = q.T if rows < columns else q
    values = gain * matrix.reshape(tuple(tensor.shape))
    return _fill(tensor, from_numpy(np.ascontiguousarray(values)))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """The weight of a convolution that passes its input on, as far as it fits.

    Args:
        tensor: Tensor to fill: three to five dimensions.
        groups: Those of the convolution.

    Raises:
        ValueError: The tensor has another number of dimensions, or the groups would
            not be of one size.
    """
    if tensor.ndim not in {3, 4, 5}:
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *field = tensor.shape
    if outputs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = np.zeros(tuple(tensor.shape))
    size = outputs // groups
    middle = tuple(length // 2 for length in field)
    for start in range(0, outputs, size):
        for channel in range(min(size, inputs)):
            values[(start + channel, channel, *middle)] = 1
    return _fill(tensor, from_numpy(values))


def sparse_(
    tensor: Tensor,
    sparsity: float,
    std: float = 0.01,
    generator: Generator | None = None,
) -> Tensor:
    """Normal, but for a part of each column, which is 0 (Martens, 2010).

    Args:
        tensor: Tensor to fill: a matrix.
        sparsity: Fraction of each column that is 0.
        std: Standard deviation of the other elements.
        generator: Source of the random numbers.

    Raises:
        ValueError: The tensor is not a matrix.
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    values = std * _normal((rows, columns), generator).numpy()
    order = np.argsort(_uniform((rows, columns), generator).numpy(), axis=0)
    np.put_along_axis(values, order[: math.ceil(sparsity * rows)], 0, axis=0)
    return _fill(tensor, from_numpy(values))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain that makes up for a nonlinearity's scaling.

    Args:
        nonlinearity: Its name in `gradviz.nn.functional`.
        param: The slope of ``leaky_relu`` below 0.

    Raises:
        ValueError: It is not known, or `param` is not a number.
    """
    match nonlinearity:
        case "tanh":
            return 5.0 / 3
        case "relu":
            return math.sqrt(2.0)
        case "leaky_relu":
            slope = 0.01 if param is None else param
            if isinstance(slope, bool) or not isinstance(slope, (int, float)):
                raise ValueError(f"negative_slope {param} not a valid number")
            return math.sqrt(2.0 / (1 + slope**2))
        case "selu":
            return 3.0 / 4
        case _ if nonlinearity in _NO_GAIN:
            return 1.0
        case _:
            raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


_NO_GAIN = frozenset(
    f"{kind}{dims}d" for kind in ("conv", "conv_transpose") for dims in (1, 2, 3)
) | {"linear", "sigmoid"}


def fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the numbers of inputs per output of a layer, and outputs per input.

    Raises:
        ValueError: The tensor has fewer than two dimensions.
    """
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    outputs, inputs, *field = tensor.shape
    return inputs * math.prod(field), outputs * math.prod(field)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / (fan_in + fan_out))


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fans = dict(zip(("fan_in", "fan_out"), fan_in_and_fan_out(tensor), strict=True))
    fan = fans.get(mode.lower())
    if fan is None:
        raise ValueError(
            f"Mode {mode.lower()} not supported, please use one of {list(fans)}"
        )
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _uniform(shape: Sequence[int], generator: Generator | None) -> Tensor:
    """Numbers from 0 to 1, as exact as any parameter may be."""
    return random.rand(shape, dtype=np.float64, generator=generator)


def _normal(shape: Sequence[int], generator: Generator | None) -> Tensor:
    """Numbers of mean 0 and variance 1, as exact."""
    return random.randn(shape, dtype=np.float64, generator=generator)


def _fill(tensor: Tensor, values: Tensor) -> Tensor:
    with no_grad():
        tensor.copy_(values.to(dtype=tensor.dtype))
    return tensor
