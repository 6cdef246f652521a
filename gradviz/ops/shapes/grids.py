"""All combinations of the elements of vectors."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gradviz.ops.conventions.refusal import check_list
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.broadcasting import broadcast_to
from gradviz.ops.shapes.gathering import masked_select
from gradviz.ops.shapes.joining import stack
from gradviz.ops.shapes.shape import flatten, view
from gradviz.ops.variables.variable import Value, Variable, raw, variable


def meshgrid(
    *tensors: Variable | Sequence[Variable], indexing: str = "ij"
) -> tuple[Value, ...]:
    """For each vector a grid of its elements, constant along the others' dimensions.

    Args:
        *tensors: Vectors, or numbers; or one sequence of them.
        indexing: ``ij``: the first vector goes along the first dimension; ``xy``:
            along the second.

    Raises:
        RuntimeError: One has more dimensions, or dtypes differ.
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise ValueError("meshgrid expects a non-empty TensorList")
    check_list(tensors)
    for one in tensors:
        if raw(one).ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{list(raw(one).shape)}"
            )
        if raw(one).dtype != raw(tensors[0]).dtype:
            raise RuntimeError(
                "torch.meshgrid expects all tensors to have the same dtype"
            )
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: '
            f"{indexing}"
        )
    swapped = indexing == "xy" and len(tensors) >= 2
    order = [1, 0, *range(2, len(tensors))] if swapped else list(range(len(tensors)))
    shape = tuple(raw(tensors[i]).size for i in order)
    grids = []
    for i, one in enumerate(tensors):
        lengths = [1] * len(tensors)
        lengths[order.index(i)] = raw(one).size
        grids.append(broadcast_to(view(one, lengths), shape))
    return tuple(grids)


def cartesian_prod(*tensors: Value) -> Value:
    """All combinations of one element of each vector, one a row.

    Raises:
        RuntimeError: One is not a vector.
    """
    check_list(tensors)
    for one in tensors:
        if raw(one).ndim != 1:
            raise RuntimeError(
                f"Expect a 1D vector, but got shape {list(raw(one).shape)}"
            )
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in meshgrid(*tensors)], 1)


def combinations(input: Value, r: int = 2, with_replacement: bool = False) -> Value:
    """All choices of `r` elements of a vector, one a row.

    Raises:
        RuntimeError: `input` is not a vector.
    """
    x = raw(input)
    if x.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return variable(np.empty_like(x, shape=0))
    number = np.cumsum(np.ones_like(x, dtype=np.int64))
    places = np.meshgrid(*[number] * r, indexing="ij")
    wanted = places[0] > 0  # all, to begin with
    for first, second in pairwise(places):
        wanted &= second >= first if with_replacement else second > first
    return stack([masked_select(grid, wanted) for grid in meshgrid(*[input] * r)], 1)


PUBLIC = [*names("gv.f", cartesian_prod, combinations, meshgrid)]
