"""Extents: which bytes of an allocation an array covers, and whether two share some.

A layout as it is reported, ``offset;shape;strides;itemsize`` in bytes, says where the
first element lies and where the others do from there; strides may be negative or zero.
"""

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np

#: Effort of `overlap` before it says yes. Arrays of a few dimensions take a few steps.
#: (Any number will do, although NumPy's types know only 0 and -1.)
_MAX_WORK: Final[Any] = 10_000

#: An address that the arrays made here claim to have: nobody reads what is there.
_SOMEWHERE: Final = 1 << 40


class Extent(NamedTuple):
    """The bytes of an array.

    Attributes:
        low: The first byte.
        high: The byte after the last, `low` if there are none.
        is_dense: True if each byte between belongs to it.
        layout: As it was reported.
    """

    low: int
    high: int
    is_dense: bool
    layout: str


def whole(size_bytes: int) -> Extent:
    """All bytes of an allocation."""
    return Extent(0, size_bytes, True, f"0;{size_bytes};1;1")


@functools.lru_cache(maxsize=1 << 14)
def parse_extent(layout: str) -> Extent | None:
    """The bytes that a layout stands for; None if it is no layout."""
    try:
        offset, shape, strides, itemsize = _numbers(layout)
    except ValueError:
        return None
    if 0 in shape or not itemsize:
        return Extent(offset, offset, True, layout)
    steps = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = offset + sum(step for step in steps if step < 0)
    high = offset + sum(step for step in steps if step > 0) + itemsize
    is_dense = high - low == math.prod(shape) * itemsize and _is_packed(
        shape, strides, itemsize
    )
    return Extent(low, high, is_dense, layout)


def covers(one: Extent, other: Extent) -> bool:
    """Return whether `one` surely holds every byte of `other`."""
    return one.layout == other.layout or (
        one.is_dense and one.low <= other.low and other.high <= one.high
    )


def overlap(one: Extent, other: Extent) -> bool:
    """Return whether two ranges share a byte; True where that is too hard to tell."""
    if max(one.low, other.low) >= min(one.high, other.high):
        return False
    if one.layout == other.layout or (one.is_dense and other.is_dense):
        return True
    return _share_elements(*sorted((one.layout, other.layout)))


@functools.lru_cache(maxsize=1 << 12)
def _share_elements(one: str, other: str) -> bool:
    try:
        return np.may_share_memory(_array(one), _array(other), max_work=_MAX_WORK)
    except (ValueError, OverflowError):
        return True


def _array(layout: str) -> "np.ndarray[Any, Any]":
    """Return an array of that layout; its elements must not be read."""
    return np.asarray(_Interface(layout))


class _Interface:
    def __init__(self, layout: str) -> None:
        offset, shape, strides, itemsize = _numbers(layout)
        self.__array_interface__ = {
            "version": 3,
            "data": (_SOMEWHERE + offset, True),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


def _numbers(layout: str) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """Parse a layout.

    Raises:
        ValueError: It is no layout.
    """
    offset, shape, strides, itemsize = layout.split(";")
    lengths = tuple(map(int, filter(None, shape.split(","))))
    steps = tuple(map(int, filter(None, strides.split(","))))
    if len(lengths) != len(steps):
        raise ValueError(layout)
    return int(offset), lengths, steps, int(itemsize)


def _is_packed(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether the elements are contiguous, in any order of dimensions."""
    expected = itemsize
    for step, n in sorted(
        (abs(step), n) for step, n in zip(strides, shape, strict=True)
    ):
        if n == 1:
            continue
        if step != expected:
            return False
        expected *= n
    return True
