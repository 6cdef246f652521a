"""Local response normalization: elements over the size of those in nearby channels."""

from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import add, div, mul
from gradviz.ops.elementwise.powers import pow
from gradviz.ops.layers.pooling import avg_pool2d, avg_pool3d
from gradviz.ops.shapes.padding import pad
from gradviz.ops.shapes.shape import view
from gradviz.ops.shapes.unit_dimensions import squeeze, unsqueeze
from gradviz.ops.variables.variable import Value, raw


def local_response_norm(
    input: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """Elements, divided by a power of the mean of the squares in nearby channels.

    Args:
        input: Shape ``(N, C, ...)``.
        size: Number of channels that are nearby.
        alpha: Factor of the mean.
        beta: The power.
        k: Number that is added before the power is taken.

    Raises:
        ValueError: `input` has less than three dimensions.

    Source: torch/nn/functional.py, local_response_norm.
    """
    shape = raw(input).shape
    if len(shape) < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got "
            f"{len(shape)} dimensions)"
        )
    if 0 in shape:
        return input
    squares = mul(input, input)
    margins = (size // 2, (size - 1) // 2)
    if len(shape) == 3:
        padded = pad(unsqueeze(squares, 1), (0, 0, *margins))
        means = squeeze(avg_pool2d(padded, (size, 1), stride=1), 1)
    else:
        rows = view(squares, (shape[0], 1, *shape[1:3], -1))
        padded = pad(rows, (0, 0, 0, 0, *margins))
        means = squeeze(avg_pool3d(padded, (size, 1, 1), stride=1), 1)
        means = view(means, shape)
    return div(input, pow(add(mul(means, alpha), k), beta))


PUBLIC = [*names("F.f", local_response_norm)]
