"""Places of elements: the indices of those that are not 0, and of flat places."""

from collections.abc import Sequence

import numpy as np

from gradviz.ops.conventions.dimensions import INTEGERS
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw, variable


def nonzero(input: Value, *, as_tuple: bool = False) -> Value:
    """Return the indices of the nonzero elements.

    Args:
        input: The tensor to search.
        as_tuple: Return one tensor for each dimension, which together are an index.

    Returns:
        int64, shape ``(number of elements found, dimensions of input)``.
    """
    array = raw(input)
    if not as_tuple:
        return variable(np.argwhere(array))
    found = np.argwhere(array if array.ndim else array.reshape(1))
    return tuple(variable(found[:, dim].copy()) for dim in range(found.shape[1]))


def argwhere(input: Value) -> Value:
    """Return the indices of the nonzero elements: `nonzero` by NumPy's name."""
    return nonzero(input)


def unravel_index(indices: Value, shape: int | Sequence[int]) -> tuple[Value, ...]:
    """Places in a flattened tensor as an index for each of its dimensions.

    Args:
        indices: The places.
        shape: Of the tensor.

    Raises:
        ValueError: `indices` does not have integers, or a length is negative.

    Source: torch/functional.py, unravel_index.
    """
    places = raw(indices)
    lengths = (shape,) if isinstance(shape, INTEGERS) else tuple(shape)
    if places.dtype.kind not in "iu":
        raise ValueError(
            f"expected 'indices' to be an integer tensor, but got "
            f"{type(indices).__name__} of {places.dtype}"
        )
    if min(lengths, default=0) < 0:
        raise ValueError(
            f"'shape' cannot have negative values, but got {tuple(lengths)}"
        )
    found = []
    for size in reversed(lengths):
        places, place = np.floor_divide(places, size), np.remainder(places, size)
        found.append(variable(place))
    return tuple(reversed(found))


PUBLIC = [
    *names("gv.f", unravel_index),
    *names("gv.f x.f", argwhere),
    *names("gv.f(out=) x.f", nonzero),
]
