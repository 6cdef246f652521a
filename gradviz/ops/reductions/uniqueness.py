"""Different values, and runs of equal ones."""

from typing import NamedTuple

import numpy as np

from gradviz.ops.recording.dimensions import at, wrap_dim
from gradviz.ops.recording.variable import Value, raw, variable


class Unique(NamedTuple):
    """What is asked of `unique`.

    Attributes:
        values: The different values, or slices.
        inverse: For each element, which of them it is.
        counts: How often each is there.
    """

    values: Value
    inverse: Value
    counts: Value


def unique(
    input: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Value:
    """The different elements, or the different slices along a dimension.

    Args:
        input: What to look at.
        sorted: In order; here they always are.
        return_inverse: Return also which of them each element is.
        return_counts: Return also how often each is there.
        dim: Compare slices along this dimension.

    Returns:
        The values; a tuple with the others that were asked for.
    """
    del sorted
    x = raw(input)
    axis = None if dim is None else wrap_dim(dim, x.ndim)
    values, inverse, counts = np.unique(
        x, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    if axis is None:
        inverse = inverse.reshape(x.shape)
    return _asked(Unique(values, inverse, counts), return_inverse, return_counts)


def unique_consecutive(
    input: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Value:
    """The first element, or slice, of each run of equal ones.

    Args:
        input: What to look at.
        return_inverse: Return also in which run each element is.
        return_counts: Return also how long each run is.
        dim: Compare slices along this dimension; None compares elements in C order.
    """
    x = raw(input)
    axis = 0 if dim is None else wrap_dim(dim, x.ndim)
    flat = x.reshape(-1) if dim is None else x
    length = flat.shape[axis]
    rest = tuple(i for i in range(flat.ndim) if i != axis)
    pairs = flat[at(axis, slice(1, None))] != flat[at(axis, slice(None, -1))]
    starts = np.flatnonzero(np.any(pairs, axis=rest)) + 1
    if length:
        starts = np.concatenate([np.zeros_like(starts, shape=1), starts])
    is_start = np.zeros_like(x, shape=length, dtype=np.int64)
    is_start[starts] = 1
    inverse = np.cumsum(is_start) - 1
    if dim is None:
        inverse = inverse.reshape(x.shape)
    counts = np.bincount(np.cumsum(is_start) - 1) if length else starts
    values = flat[at(axis, starts)]
    return _asked(Unique(values, inverse, counts), return_inverse, return_counts)


def _asked(found: Unique, return_inverse: bool, return_counts: bool) -> Value:
    values, inverse, counts = map(variable, found)
    if not (return_inverse or return_counts):
        return values
    return (values, *[inverse] * return_inverse, *[counts] * return_counts)
