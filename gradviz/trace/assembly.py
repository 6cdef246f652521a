"""Assembly: what was read from many frames becomes the parts of one trace.

Blocks of several threads are merged into columns in the order of time, and rows of
definitions, which refer to each other by number, into definitions.
"""

import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.columns import Integers
from gradviz.trace.definitions import InputRow, NodeRow
from gradviz.trace.events import KINDS, MAX_SEQUENCE_NR, Event, kind_name, own_columns
from gradviz.trace.frames import DamageError
from gradviz.trace.model import LOST_TEXT, Column, InputDefinition, NodeDefinition

#: The first columns of a block, in this order; `seq` and `thread` are not written.
_WRITTEN: Final = ("t_ns", "task", "node")


class EventBlock(NamedTuple):
    """Rows of one kind that one thread reported; `columns` as `known_rows` made it."""

    kind: type[Event]
    thread: int
    columns: Integers


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

    def positions(self, indices: Column) -> Column:
        """Where the texts of some indices stand in `all`."""
        lost = len(self._indices)
        places = np.searchsorted(self._indices, indices)
        places[places == lost] = 0
        if not lost:
            return places
        return np.where(self._indices[places] == indices, places, lost)


class Nodes(Mapping[int, NodeDefinition]):
    """Node id -> definition, made when it is first asked for.

    A long recording defines many more nodes than anybody looks at.
    """

    def __init__(
        self,
        rows: Mapping[int, NodeRow],
        inputs: Mapping[int, InputRow],
        texts: Texts,
        locations: Mapping[int, int],
    ) -> None:
        self._rows = rows
        self._inputs = inputs
        self._texts = texts
        self._locations = locations
        self._made: dict[int, NodeDefinition] = {}
        self._made_inputs: dict[int, InputDefinition | None] = {-1: None}

    def __getitem__(self, node: int) -> NodeDefinition:
        made = self._made.get(node)
        if made is None:
            made = self._made[node] = self._make(self._rows[node])
        return made

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _make(self, row: NodeRow) -> NodeDefinition:
        location = self._locations.get(row.id)
        return NodeDefinition(
            id=row.id,
            name=self._texts[row.name],
            sequence_nr=MAX_SEQUENCE_NR if row.sequence_nr == -1 else row.sequence_nr,
            topological_nr=row.topological_nr,
            device=self._texts[row.device],
            edges=tuple(zip(row.edges[::2], row.edges[1::2], strict=True)),
            inputs=tuple(map(self._input, row.inputs)),
            location="" if location is None else self._texts.all[location],
            module="" if row.module == -1 else self._texts[row.module],
        )

    def _input(self, index: int) -> InputDefinition | None:
        if index not in self._made_inputs:
            row = self._inputs.get(index)
            self._made_inputs[index] = (
                InputDefinition((), LOST_TEXT, LOST_TEXT)
                if row is None
                else InputDefinition(
                    row.shape, self._texts[row.dtype], self._texts[row.device]
                )
            )
        return self._made_inputs[index]


def known_rows(kind: type[Event], columns: Integers) -> Integers:
    """The columns and rows of a block that this version understands.

    A later version may have appended columns, which are left out, or members to an
    enum, whose rows are. Columns that an earlier version did not have are zero.

    Raises:
        DamageError: Not even the columns of every event are there.
    """
    own = own_columns(kind)
    width = len(_WRITTEN) + len(own)
    if len(columns) < len(_WRITTEN):
        raise DamageError(f"its rows of {kind_name(kind)} are too short")
    if len(columns) < width:
        missing = np.zeros((width - len(columns), columns.shape[1]), np.int64)
        columns = np.concatenate((columns, missing))
    columns = columns[:width]
    for number, column in enumerate(own, len(_WRITTEN)):
        if issubclass(column.type, enum.Enum):
            understood = np.isin(columns[number], [one.value for one in column.type])
            if not understood.all():
                columns = columns[:, understood]
    return columns


def merge(blocks: list[EventBlock], texts: Texts) -> Mapping[str, Mapping[str, Column]]:
    """The columns of a trace (see `Trace.columns`) from all of its blocks.

    Empties `blocks`, so that a long trace is not in memory twice.
    """
    by_kind: dict[type[Event], list[EventBlock]] = {kind: [] for kind in KINDS.values()}
    while blocks:
        block = blocks.pop()
        by_kind[block.kind].append(block)
    tables = {kind: _table(kind, by_kind.pop(kind)) for kind in KINDS.values()}
    t_ns = np.concatenate([table[0] for table in tables.values()])
    thread = np.concatenate([table[-1] for table in tables.values()])
    order = np.lexsort((thread, t_ns))
    seq = np.empty(len(order), np.int64)
    seq[order] = np.arange(len(order))
    columns = {}
    begin = 0
    for kind in KINDS.values():
        table = tables.pop(kind)
        end = begin + table.shape[1]
        columns[kind_name(kind)] = _columns(kind, table, seq[begin:end], texts)
        begin = end
    return columns


def _table(kind: type[Event], blocks: Sequence[EventBlock]) -> Integers:
    """All rows of one kind; the last row of the table is the thread."""
    width = len(_WRITTEN) + len(own_columns(kind)) + 1
    num_rows = sum(block.columns.shape[1] for block in blocks)
    table = np.empty((width, num_rows), np.int64)
    end = num_rows  # the last block is the first that was read
    for block in blocks:
        begin = end - block.columns.shape[1]
        table[:-1, begin:end] = block.columns
        table[-1, begin:end] = block.thread
        end = begin
    return table


def _columns(
    kind: type[Event], table: Integers, seq: Column, texts: Texts
) -> Mapping[str, Column]:
    place = np.argsort(seq)
    own = own_columns(kind)
    columns = {"seq": seq[place]}
    for name, numbers in zip(
        (*_WRITTEN, *(one.name for one in own), "thread"), table, strict=True
    ):
        columns[name] = numbers[place]
    for one in own:
        if one.type is str:
            columns[one.name] = texts.positions(columns[one.name])
    for column in columns.values():
        column.setflags(write=False)
    return columns
