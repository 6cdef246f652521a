"""Tables: the events of one kind as columns, in as few bytes as their numbers need.

Most numbers of a trace are small: a column of 64 bits each would take five times the
memory. So columns are kept narrow and made wide when they are asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

#: Signed 64-bit integers, one for each event of a kind; read-only.
Column: TypeAlias = npt.NDArray[np.int64]

#: Signed integers of any width, one for each event of a kind.
Narrow: TypeAlias = npt.NDArray[np.signedinteger[Any]]

_WIDTHS: Final = ((np.int8, 1 << 7), (np.int16, 1 << 15), (np.int32, 1 << 31))


def narrow(numbers: Narrow) -> Narrow:
    """The same numbers in as few bytes as they fit into."""
    if not len(numbers):
        return numbers.astype(np.int8)
    # Methods of arrays go through Python, which for short columns is half of the time.
    least, largest = int(np.minimum.reduce(numbers)), int(np.maximum.reduce(numbers))
    for width, end in _WIDTHS:
        if -end <= least and largest < end:
            return numbers.astype(width)
    return numbers.astype(np.int64)


def joined(parts: Sequence[Narrow]) -> Narrow:
    """Several columns, one after the other, in as few bytes as the widest needs."""
    return np.concatenate(parts) if parts else np.empty(0, np.int8)


def different(numbers: Narrow) -> Narrow:
    """Each number once, sorted. NumPy's own way takes six times as long."""
    ordered = np.sort(numbers)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


class _SortedColumn(NamedTuple):
    """A column in order.

    Attributes:
        ordered: Its numbers, sorted.
        places: The row of each; None if they are sorted in the table.
    """

    ordered: Narrow
    places: Narrow | None


class _SomeRows(Mapping[str, Narrow]):
    """Columns of some rows; each is made when it is asked for: few of them are."""

    def __init__(
        self, columns: Mapping[str, Narrow], places: "slice | npt.NDArray[Any]"
    ) -> None:
        self._columns = columns
        self._places = places
        self._made: dict[str, Narrow] = {}

    def __getitem__(self, name: str) -> Narrow:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._columns[name][self._places]
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns


#: Maximum number of values found one by one; one pass over all rows finds more of them.
_FEW: Final = 64

#: A long table has more of them: one for so many rows, since a pass takes longer there.
_ROWS_EACH: Final = 256


class Table(Mapping[str, Column]):
    """The events of one kind, column by column.

    What it gives are 64-bit integers, made anew each time. Never changes.

    Args:
        columns: Name -> numbers, all of one length.
    """

    def __init__(self, columns: Mapping[str, Narrow]) -> None:
        self._columns = columns
        self.num_rows = len(next(iter(columns.values())))
        #: Name of a column -> its index; None if it was asked for once.
        self._indices: dict[str, _SortedColumn | None] = {}

    def __getitem__(self, name: str) -> Column:
        column: Column = self._columns[name].astype(np.int64)
        column.setflags(write=False)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def narrow(self, name: str) -> Narrow:
        """A column as it is kept. Sums and products of it may not fit its integers."""
        return self._columns[name]

    def at(self, places: "slice | npt.NDArray[Any]") -> "Table":
        """Some of the rows, in their order; of all of them the table itself."""
        if isinstance(places, slice):
            return Table(_SomeRows(self._columns, places))
        if places.dtype == np.bool_ and places.all():
            return self
        # A copy, for its owner may go on working on it.
        return Table(_SomeRows(self._columns, places.copy()))

    def having(self, name: str, numbers: "Sequence[int] | Narrow") -> "Table":
        """Return the rows of which a column has one of some numbers, in their order.

        A column that is asked about again is sorted once. So views of thousands of
        passes find the rows of each without a look at those of all others.
        """
        wanted = different(np.asarray(numbers, np.int64))
        is_few = len(wanted) <= max(_FEW, self.num_rows // _ROWS_EACH)
        index = self._index(name, sorts=is_few)
        if index is None or (index.places is not None and not is_few):
            return self.at(np.isin(self._columns[name], wanted))
        ordered = index.ordered
        is_near = (wanted >= ordered[:1].sum()) & (wanted <= ordered[-1:].sum())
        wanted = wanted[is_near].astype(ordered.dtype)  # else all rows would be widened
        begins = np.searchsorted(ordered, wanted)
        ends = np.searchsorted(ordered, wanted, side="right")
        begins, ends = begins[begins < ends], ends[begins < ends]
        if index.places is None and (begins[1:] == ends[:-1]).all():
            return self.at(slice(begins[:1].sum(), ends[-1:].sum()))
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        if index.places is None:
            return self.at(joined([np.arange(*one) for one in spans]))
        return self.at(np.sort(joined([index.places[slice(*one)] for one in spans])))

    def _index(self, name: str, *, sorts: bool = True) -> "_SortedColumn | None":
        """Return the index of a column; None if it must be sorted, and was not yet.

        It is sorted at a later request that `sorts`.
        """
        if name not in self._indices:
            column = self._columns[name]
            is_sorted = bool((column[1:] >= column[:-1]).all())
            self._indices[name] = _SortedColumn(column, None) if is_sorted else None
        elif sorts and self._indices[name] is None:
            places = np.argsort(self._columns[name], kind="stable")
            self._indices[name] = _SortedColumn(
                self._columns[name][places], narrow(places)
            )
        return self._indices[name]

    def rows(self, *names: str) -> "zip[tuple[int, ...]]":
        """The numbers of some columns, a tuple for each row."""
        return zip(*(self.narrow(name).tolist() for name in names), strict=True)

    def __contains__(self, name: object) -> bool:
        return name in self._columns
