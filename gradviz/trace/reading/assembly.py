"""Assembly of the columns of one trace from many frames.

Blocks of several threads are kept as they come, in as few bytes as they need, and at
the end put into the order of time.
"""

import enum
import functools
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from gradviz.trace.events import KINDS, Event, kind_name, own_columns
from gradviz.trace.format.columns import Integers
from gradviz.trace.format.frames import Budget, DamageError
from gradviz.trace.format.model import LOST_TEXT
from gradviz.trace.format.table import Column, Narrow, Table, joined, narrow

#: The first columns of a block, in this order; `seq` and `thread` are not written.
_WRITTEN: Final = ("t_ns", "task", "node")

#: Blocks with so many rows together become one. The room of many small arrays would
#: stay between those that are kept, too small for what is made of them in the end.
_MANY_ROWS: Final = 1 << 18

#: So many numbers of blocks wait at most, a megabyte of each kind. They are made narrow
#: together: for each block, or each small array, it would take far longer.
_MAX_WAITING: Final = 1 << 17

#: An array takes as much as so many numbers, whatever is in it.
_ARRAY: Final = 32

_SEQ_BYTES: Final = 4

#: Suffixes of the names of columns that are times or sizes.
_UNITS: Final = ("_ns", "_bytes")

#: No time and no size of a trace is larger: nine years, or 256 PiB. So sums and
#: differences of them fit 64 bits.
MAX_QUANTITY: Final = 1 << 58


class Texts:
    """The texts of a trace, by the index under which the file knows them.

    An index whose definition was lost, or that no recorder ever wrote, stands for
    `LOST_TEXT`.

    Attributes:
        all: Every text once, `LOST_TEXT` at the end.
    """

    def __init__(self, by_index: Mapping[int, str]) -> None:
        self._by_index = by_index
        indices = sorted(by_index)
        self._indices = np.array(indices, np.int64)
        self.all = (*(by_index[index] for index in indices), LOST_TEXT)

    def __getitem__(self, index: int) -> str:
        return self._by_index.get(index, LOST_TEXT)

    def positions(self, indices: Narrow) -> Column:
        """Return the positions in `all` of the texts at some indices."""
        lost = len(self._indices)
        places = np.searchsorted(self._indices, indices)
        places[places == lost] = 0
        if not lost:
            return places
        return np.where(self._indices[places] == indices, places, lost)


class GatheredRows:
    """The rows of one kind of event, as they are read block by block."""

    def __init__(self, kind: type[Event]) -> None:
        self._kind = kind
        self._names = _names(kind)
        self._parts: list[list[Narrow]] = []
        #: Number of parts, from the first, that are done; the rows of the others.
        self._num_done = 0
        self._num_recent = 0
        #: Of each block its thread, and whether it is inferred.
        self._waiting: list[tuple[tuple[int, bool], Integers]] = []
        self._num_waiting = 0

    @property
    def has_any(self) -> bool:
        """Return whether any row was kept."""
        return bool(self._parts or self._waiting)

    def add(
        self, thread: int, rows: Integers, budget: Budget, *, inferred: bool = False
    ) -> None:
        """Keep a block, as `known_rows` made it.

        Raises:
            DamageError: The file has had its share of memory.
        """
        budget.keep(8 * rows.size + _SEQ_BYTES * rows.shape[1])
        self._waiting.append(((thread, inferred), rows))
        self._num_waiting += rows.size + _ARRAY
        if self._num_waiting < _MAX_WAITING:
            return
        wide = 8 * sum(rows.size for _, rows in self._waiting)
        self._put_together()
        budget.keep(sum(one.nbytes for one in self._parts[-1]) - wide)
        self._num_recent += len(self._parts[-1][0])
        if self._num_recent >= _MANY_ROWS:
            recent = self._parts[self._num_done :]
            self._parts[self._num_done :] = [[*map(joined, zip(*recent, strict=True))]]
            self._num_done, self._num_recent = len(self._parts), 0

    def columns(self, *, keeps: bool = False) -> dict[str, Narrow]:
        """All rows that were kept, in the order in which they were read.

        Empties it, unless it `keeps` them.
        """
        self._put_together()
        parts, self._parts = self._parts, []
        columns = {}
        for name in reversed(self._names):
            columns[name] = joined([part.pop() for part in parts])
        if keeps:
            self._parts.append([columns[name] for name in self._names])
        self._num_done, self._num_recent = len(self._parts), 0
        return {name: columns[name] for name in self._names}

    def _put_together(self) -> None:
        if not self._waiting:
            return
        rows = np.concatenate([rows for _, rows in self._waiting], axis=1)
        of_blocks = np.repeat(
            np.array([about for about, _ in self._waiting], np.int64).T,
            [rows.shape[1] for _, rows in self._waiting],
            axis=1,
        )
        self._parts.append([*map(narrow, rows), *map(narrow, of_blocks)])
        self._waiting.clear()
        self._num_waiting = 0


def known_rows(kind: type[Event], columns: Integers) -> Integers:
    """The columns and rows of a block that this version understands.

    A later version may have appended columns, which are left out, or members to an
    enum, whose rows are. Columns that an earlier version did not have are filled.

    Raises:
        DamageError: Not even the columns of every event are there.
    """
    own = own_columns(kind)
    width = len(_WRITTEN) + len(own)
    if len(columns) < len(_WRITTEN):
        raise DamageError(f"its rows of {kind_name(kind)} are too short")
    if len(columns) < width:
        absent = np.array([one.absent for one in own], np.int64)
        missing = absent[len(columns) - len(_WRITTEN) :, np.newaxis]
        columns = np.concatenate(
            (columns, np.repeat(missing, columns.shape[1], axis=1))
        )
    columns = columns[:width]
    for number, is_member in _enums(kind):
        # As unsigned numbers those below zero are larger than all members, too.
        values = np.minimum(columns[number].view(np.uint64), len(is_member) - 1)
        understood = is_member[values]
        if not understood.all():
            columns = columns[:, understood]
    return columns


def credible_rows(kind: type[Event], rows: Integers) -> Integers:
    """The rows of which each time and each size can be true; see `MAX_QUANTITY`."""
    if -MAX_QUANTITY <= rows.min(initial=0) <= rows.max(initial=0) <= MAX_QUANTITY:
        return rows
    own = enumerate(own_columns(kind), len(_WRITTEN))
    quantities = [0, *(at for at, one in own if one.name.endswith(_UNITS))]
    some = rows[quantities]
    is_credible = (some >= -MAX_QUANTITY) & (some <= MAX_QUANTITY)
    return rows[:, is_credible.all(axis=0)]


def merge(
    gathered: Mapping[type[Event], GatheredRows],
    texts: Texts,
    first_seq: int = 0,
    *,
    keeps: bool = False,
) -> Mapping[str, Table]:
    """The columns of a trace (see `Trace.columns`) from all rows that were read.

    Empties `gathered`, so that a long trace is not in memory twice, unless it `keeps`
    them for another time.
    """
    tables = {
        kind: rows.columns(keeps=keeps)
        for kind, rows in gathered.items()
        if rows.has_any
    }
    seq = _places_in_time(tables.values(), first_seq)
    columns = {}
    begin = 0
    for kind in KINDS.values():
        if kind not in tables:
            columns[kind_name(kind)] = _nothing(kind)
            continue
        table = tables.pop(kind)
        end = begin + len(table["t_ns"])
        columns[kind_name(kind)] = _sorted(kind, table, seq[begin:end], texts)
        begin = end
    return columns


@functools.cache
def _enums(kind: type[Event]) -> tuple[tuple[int, npt.NDArray[np.bool_]], ...]:
    """Return the place of each column that is an enum, and which numbers are members.

    The last number stands for all larger ones, which are none.
    """
    found = []
    for number, column in enumerate(own_columns(kind), len(_WRITTEN)):
        if issubclass(column.type, enum.Enum):
            members = [one.value for one in column.type]
            is_member = np.zeros(max(members) + 2, np.bool_)
            is_member[members] = True
            found.append((number, is_member))
    return tuple(found)


@functools.cache
def _nothing(kind: type[Event]) -> Table:
    return Table(dict.fromkeys(("seq", *_names(kind)), joined(())))


def _names(kind: type[Event]) -> tuple[str, ...]:
    """Return the columns kept of each row: its own, and those of its block."""
    own = (one.name for one in own_columns(kind))
    return (*_WRITTEN, *own, "thread", "inferred")


def _places_in_time(tables: Iterable[Mapping[str, Narrow]], first: int) -> Narrow:
    """The place of each row among all: by time, then by thread; the first is given."""
    tables = list(tables)
    t_ns = joined([table["t_ns"] for table in tables])
    # Rows mostly come in their order: to sort them takes little more than to look.
    order = np.argsort(t_ns, kind="stable")
    t_ns.sort(kind="stable")  # in its place: there is no room for one more of them
    if (t_ns[1:] == t_ns[:-1]).any():
        t_ns, threads = (
            joined([table[name] for table in tables]) for name in ("t_ns", "thread")
        )
        order = np.lexsort((threads, t_ns))
    del t_ns
    seq = np.empty(len(order), np.int32)
    seq[order] = np.arange(first, first + len(order), dtype=np.int32)
    return seq


def _sorted(
    kind: type[Event], table: dict[str, Narrow], seq: Narrow, texts: Texts
) -> Table:
    """The rows of one kind in the order of time; empties `table`."""
    for one in own_columns(kind):
        if one.type is str:
            table[one.name] = narrow(texts.positions(table[one.name]))
    place = None
    if (seq[1:] < seq[:-1]).any():
        place = np.argsort(seq, kind="stable")
        seq = seq[place]
    columns: dict[str, Narrow] = {"seq": seq}
    for name in list(table):
        column = table.pop(name)
        columns[name] = column if place is None else column[place]
    for column in columns.values():
        column.setflags(write=False)
    return Table(columns)
