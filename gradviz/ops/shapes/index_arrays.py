"""Checks of arrays of integers and booleans in an index."""

import warnings
from typing import Any, Final, TypeAlias

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.variables.variable import Value, raw

#: Arrays of integers or booleans, and slices of all where a dimension has none.
Indices: TypeAlias = tuple[Any, ...]

#: Content of the brackets of ``x[...]``.
Subscript: TypeAlias = Any

_ALL: Final = slice(None)


def index_array(item: object) -> Array:
    """Return an item other than number, slice, None, ellipsis as an index array."""
    array = raw(item)
    if isinstance(array, (list, range)):
        array = np.asarray(
            [one.item() if hasattr(one, "item") else one for one in array]
        )
        array = array if array.size else array.astype(np.int64)
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`), None and long or byte "
            f"Variables are valid indices (got {type(item).__name__})"
        )
    if dtype == np.uint8:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
            "torch.bool instead.",
            UserWarning,
            stacklevel=5,
        )
        return array.astype(np.bool_)
    if dtype not in (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_)):
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors"
        )
    return array


def prepared(x: Array, gathers: dict[int, Array]) -> Indices:
    """Arrays by the dimension that they index, as one index for `x`.

    Raises:
        IndexError: A mask does not fit.
    """
    spread: dict[int, Array] = {}
    for dim, array in gathers.items():
        if is_mask(array):
            _check_mask(array, x.shape, dim)
            if len(gathers) > 1:  # to broadcast with the others
                found = np.nonzero(array)
                spread.update({dim + i: part for i, part in enumerate(found)})
                continue
        spread[dim] = array
    num_indexed = max(spread) + 1
    if num_indexed > x.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension {x.ndim} (got {num_indexed})"
        )
    return tuple([spread.get(dim, _ALL) for dim in range(num_indexed)])


def misfit(shape: Shape, indices: Indices) -> IndexError:
    """PyTorch's words for an index that NumPy refused."""
    arrays = [one for one in indices if not isinstance(one, slice)]
    try:
        np.broadcast_shapes(*[array.shape for array in arrays])
    except ValueError:
        shapes = ", ".join([str(list(array.shape)) for array in arrays])
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with "
            f"shapes {shapes}"
        )
    indexed = [
        (index, size)
        for index, size in zip(indices, shape, strict=False)
        if not isinstance(index, slice)
    ]
    for number, (index, size) in enumerate(indexed):  # PyTorch counts these only
        if not index.size:
            continue
        if not size:
            return IndexError("index is out of bounds for dimension with size 0")
        wrong = index[(index < -size) | (index >= size)].reshape(-1)
        if wrong.size:
            return IndexError(
                f"index {int(wrong[0])} is out of bounds for dimension {number} with "
                f"size {size}"
            )
    return IndexError(f"these indices do not fit a tensor of shape {list(shape)}")


def _check_mask(mask: Array, shape: Shape, dim: int) -> None:
    for i, (wanted, got) in enumerate(zip(shape[dim:], mask.shape, strict=False)):
        if wanted != got:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match "
                f"the shape of the indexed tensor {list(shape)} at index {dim + i}"
            )


def is_mask(index: Value) -> bool:
    """Return whether `index` is an array of booleans."""
    return bool(getattr(index, "dtype", None) == np.bool_)
