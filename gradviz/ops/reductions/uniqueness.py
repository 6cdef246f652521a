"""Different values, and runs of equal ones."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import at, wrap_dim
from gradviz.ops.conventions.refusal import not_implemented
from gradviz.ops.dispatch.differentiable import Op, differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, Variable, raw, variable


class Unique(NamedTuple):
    """Results of `unique`.

    Attributes:
        values: The different values, or slices.
        inverse: For each element, the index of its value.
        counts: Number of occurrences of each.
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
        input: Tensor to look at.
        sorted: In order; here they always are.
        return_inverse: Return also which of them each element is.
        return_counts: Return also how often each is there.
        dim: Compare slices along this dimension.

    Returns:
        The values; a tuple with the others that were asked for.
    """
    del sorted
    if dim is None:
        found = _unique(input)
    else:
        found = _unique_slices(input, wrap_dim(dim, raw(input).ndim))
    return _asked(found, return_inverse, return_counts)


def unique_consecutive(
    input: Value,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Value:
    """The first element, or slice, of each run of equal ones.

    Args:
        input: Tensor to look at.
        return_inverse: Return also in which run each element is.
        return_counts: Return also how long each run is.
        dim: Compare slices along this dimension; None compares elements in C order.
    """
    axis = None if dim is None else wrap_dim(dim, raw(input).ndim)
    return _asked(_runs(input, axis), return_inverse, return_counts)


def _without_gradient(op: str) -> Callable[[Callable[..., Unique]], Op]:
    """Return an op whose values have a node that cannot be differentiated."""
    name = "".join(word.capitalize() for word in op.split("_"))
    return differentiable(
        f"{name}Backward0",
        results=Unique._fields,
        plain=("inverse", "counts"),
        x=not_implemented(op),
    )


@_without_gradient("_unique2")
def _unique(x: Array) -> Unique:
    values, inverse, counts = np.unique(
        x, return_inverse=True, return_counts=True, equal_nan=False
    )
    return Unique(values, inverse.reshape(x.shape), counts)


@_without_gradient("unique_dim")
def _unique_slices(x: Array, axis: int) -> Unique:
    return Unique(
        *np.unique(
            x, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
        )
    )


@_without_gradient("unique_consecutive")
def _runs(x: Array, dim: int | None) -> Unique:
    axis = 0 if dim is None else dim
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
    return Unique(values, inverse, counts)


def _asked(found: Unique, return_inverse: bool, return_counts: bool) -> Value:
    values, inverse, counts = (
        one if isinstance(one, Variable) else variable(one) for one in found
    )
    if not (return_inverse or return_counts):
        return values
    return (values, *[inverse] * return_inverse, *[counts] * return_counts)


PUBLIC = [*names("gv.f x.f", unique, unique_consecutive)]
