"""Layouts of arrays in memory: shapes, dtypes and strides, each combination once."""

from typing import Any, Final

import numpy as np

#: Content of memory without an owner: NaN as a float of any size; for others a number
#: that is large and no index of anything.
NAN_BYTE: Final = 0xFF
LARGE_BYTE: Final = 0x7F

#: Maximum number of layouts that are one object each; later ones of the same layout may
#: be another.
_MAX_KNOWN: Final = 20_000


class ArrayLayout:
    """Metadata of an array that exists, or is to be made.

    Every launch looks up what it returns by the layouts of its arguments: to compare
    and hash them by identity takes a fraction of what three tuples take. Two that were
    made far apart may be equal and not the same: then something is worked out again.

    Attributes:
        shape: Length of each dimension.
        dtype: Type of the elements.
        strides: Bytes from one element to the next, for each dimension.
        num_bytes: Of all elements.
        poison: The byte that memory for it is full of while nobody owns it.
    """

    __slots__ = ("dtype", "num_bytes", "poison", "shape", "strides")

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.strides = strides
        self.num_bytes = dtype.itemsize
        for length in shape:
            self.num_bytes *= length
        self.poison = poison_for(dtype)

    def __repr__(self) -> str:
        return f"ArrayLayout({self.shape}, {self.dtype}, strides={self.strides})"


#: Any thread; each is stored once, by an atomic call.
_known: dict[Any, ArrayLayout] = {}


def layout_of(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...]
) -> ArrayLayout:
    """The layout of arrays of that shape, dtype and strides."""
    key = shape, dtype, strides
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        known = _known.setdefault(key, ArrayLayout(shape, dtype, strides))
    return known


def in_c_order(shape: tuple[int, ...], dtype: np.dtype[Any]) -> ArrayLayout:
    """Return the layout with elements one after the other, last index first."""
    strides: tuple[int, ...] = ()
    step = dtype.itemsize
    for length in reversed(shape):
        strides = (step, *strides)
        step *= max(length, 1)
    return layout_of(shape, dtype, strides)


def poison_for(dtype: np.dtype[Any]) -> int:
    """The byte that memory without an owner is full of, for elements of a dtype."""
    return NAN_BYTE if dtype.kind in "fc" else LARGE_BYTE
