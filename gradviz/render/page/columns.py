"""Columns of numbers, packed into as few bytes as a page can unpack quickly.

Note [What a page unpacks]
~~~~~~~~~~~~~~~~~~~~~~~~~~
Little-endian: the length of a JSON object as four bytes, the object, then the columns
one after the other, each beginning at a multiple of eight bytes (from the first column
on). The object is ``{"header": ..., "columns": {NAME: [STORED, IS_DELTA, LENGTH,
OFFSET]}}``: `STORED` is how a number is written, ``i1``, ``i2``, ``i4`` or ``f8``;
`IS_DELTA` whether it is the difference to the one before it, the first to 0. Names are
``table.column``. All of it is compressed with gzip, which a browser undoes itself.

Differences of what grows are small, and small numbers take few bytes and compress
well: a million times take 2 MB and not 8. `source/data.ts` undoes it.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from gradviz.trace.format.table import Column, Narrow, narrow

#: Higher levels take up to four times as long and save 4 %.
_LEVEL: Final = 3
_ALIGNED: Final = 8


class TextTable:
    """TextTable, each kept once and called by its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return the index of a text, added if it is new."""
        return self._places.setdefault(text, len(self._places))

    def places(self, texts: Sequence[str]) -> Column:
        """Return the indices of some texts."""
        return np.array([self.place(text) for text in texts], np.int64)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)


class RowPlaces:
    """Rows of a table by the numbers of a trace.

    Args:
        ids: The number of each row, each once.
    """

    def __init__(self, ids: Column) -> None:
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]

    def of(self, ids: Narrow) -> Column:
        """The places of some numbers, -1 of those that no row has."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[at] == ids, self._order[at], -1)


def pack(header: Mapping[str, Any], columns: Mapping[str, Narrow]) -> bytes:
    """Both as bytes; see Note [What a page unpacks].

    The same for the same arguments. Numbers beyond 2**53 lose their last digits.
    """
    described: dict[str, tuple[str, int, int, int]] = {}
    parts: list[bytes] = []
    offset = 0
    for name, numbers in columns.items():
        stored, is_delta = _stored(numbers)
        data = stored.astype(stored.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % _ALIGNED)
        kind = f"{stored.dtype.kind}{stored.dtype.itemsize}"
        described[name] = kind, int(is_delta), len(stored), offset
        parts.append(data)
        offset += len(data)
    head = json.dumps(
        {"header": header, "columns": described}, separators=(",", ":")
    ).encode("utf-8", "replace")
    return gzip.compress(
        b"".join((len(head).to_bytes(4, "little"), head, *parts)), _LEVEL, mtime=0
    )


def _stored(numbers: Narrow) -> tuple["np.ndarray[Any, Any]", bool]:
    """Return a column as it is or as differences, whichever is narrower."""
    plain = narrow(numbers)
    wide = numbers.astype(np.int64)
    steps = narrow(wide - np.concatenate(([0], wide[:-1])) if len(wide) else wide)
    is_delta = steps.itemsize < plain.itemsize or (
        steps.itemsize == plain.itemsize and _is_growing(steps)
    )
    stored = steps if is_delta else plain
    return (stored.astype(np.float64) if stored.itemsize == _ALIGNED else stored), (
        is_delta
    )


def _is_growing(steps: Narrow) -> bool:
    return bool((steps >= 0).all())
