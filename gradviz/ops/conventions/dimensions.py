"""Dimensions as users name them: negative, several at once, one by one."""

import math
from collections.abc import Sequence
from typing import Any, Final, SupportsIndex, TypeAlias

import numpy as np

#: One dimension, several, or None for all; negative ones count from the end.
Dims: TypeAlias = int | Sequence[int] | None

#: Integers as users give them: one by one, or as one sequence.
SizeArgs: TypeAlias = SupportsIndex | Sequence[SupportsIndex]

#: Types that count as one integer.
INTEGERS: Final = (int, np.integer)

#: A number for each spatial dimension, or one for all of them.
Lengths: TypeAlias = int | Sequence[int]

#: The lengths of an array.
Shape: TypeAlias = tuple[int, ...]


def wrap_dim(dim: int, ndim: int) -> int:
    """The dimension that `dim` names, counted from the front.

    A tensor without dimensions counts as one of length 1.

    Raises:
        IndexError: There is no such dimension.
    """
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of "
            f"[{-bound}, {bound - 1}], but got {dim})"
        )
    return dim + bound if dim < 0 else dim


def wrap_dims(dims: Dims, ndim: int) -> Shape:
    """The dimensions that `dims` names: all for None, and for an empty sequence.

    Returns:
        Dimensions of the array, none for one that has none.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: One is named twice.
    """
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, INTEGERS):
        dim = wrap_dim(dims, ndim)
        return (dim,) if ndim else ()
    wrapped = tuple(wrap_dim(dim, ndim) for dim in dims)
    for i, dim in enumerate(wrapped):
        if dim in wrapped[:i]:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    if not wrapped:
        return tuple(range(ndim))
    return wrapped if ndim else ()


def kept_shape(shape: Shape, dims: Shape) -> Shape:
    """`shape` with the length 1 in place of those of `dims`."""
    return tuple([1 if dim in dims else size for dim, size in enumerate(shape)])


def num_reduced(shape: Shape, dims: Shape) -> int:
    """Return the number of elements that a reduction of `dims` combines into one."""
    return math.prod([shape[dim] for dim in dims])


def at(dim: int, index: object) -> tuple[Any, ...]:
    """The NumPy index that takes `index` of one dimension, and all of the others.

    The ellipsis has it return an array, where an element alone would be a copy.
    """
    return (*(slice(None),) * dim, index, ...) if dim else (index, ...)


def several(dims: Dims) -> Shape:
    """One dimension, or several, as a tuple."""
    return (dims,) if isinstance(dims, INTEGERS) else tuple(dims or ())


def varargs(
    function: str, parameter: str, arguments: Sequence[Any], named: Dims
) -> Shape:
    """Integers that were given one by one, as one sequence, or by name.

    Args:
        function: Function that takes them.
        parameter: Name under which they may be given.
        arguments: Integers that were given by position.
        named: Integers that were given by name.

    Raises:
        TypeError: They were given in no way, or in two.
    """
    if named is not None:
        if arguments:
            raise TypeError(
                f"{function}() got multiple values for argument {parameter!r}"
            )
        return several(named)
    if not arguments:
        raise TypeError(
            f'{function}() missing 1 required positional arguments: "{parameter}"'
        )
    if len(arguments) == 1 and not hasattr(arguments[0], "__index__"):
        return tuple(arguments[0])
    return tuple(arguments)
