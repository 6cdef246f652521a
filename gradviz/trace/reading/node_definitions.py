"""The nodes of a trace: definitions kept as columns, made when they are asked for.

A long recording defines many more nodes than anybody looks at.
"""

import operator
from array import array
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gradviz.trace.events import MAX_SEQUENCE_NR
from gradviz.trace.format.definitions import InputRow, NodeRow
from gradviz.trace.format.frames import Budget
from gradviz.trace.format.model import (
    LOST_TEXT,
    EdgeColumns,
    InputDefinition,
    NodeDefinition,
    NodeDefinitions,
)
from gradviz.trace.format.table import Column, Narrow, Table, joined, narrow
from gradviz.trace.reading.assembly import Texts

#: The fields of a node that are one number.
_SINGLE: Final = (
    "id",
    "name",
    "sequence_nr",
    "topological_nr",
    "device",
    "module",
    "parameter",
    "location",
)

#: Its lists, one after the other, and the length of each.
_LISTS: Final = ("edges", "num_edges", "inputs", "num_inputs")

#: Maximum number of rows that wait to become columns.
_MAX_WAITING: Final = 1 << 14

#: Definitions that were made are remembered, as long as they have so many edges and
#: inputs together, each definition counted as ten.
_MAX_MADE: Final = 1 << 18
_WEIGHT: Final = 10

#: Maximum size of a row, in bytes, besides its edges and inputs.
_ROW_BYTES: Final = 8 * len(_SINGLE) + 16
_LIST_BYTES: Final = 8

#: Stands for what is not known of a node.
_LOST: Final = -2


class GatheredNodes:
    """Rows of nodes, as they are read frame by frame.

    Attributes:
        num_rows: Number of rows, those defined again included.
    """

    def __init__(self) -> None:
        self.num_rows = 0
        self._waiting = {name: array("q") for name in (*_SINGLE, *_LISTS)}
        self._parts: dict[str, list[Narrow]] = {name: [] for name in self._waiting}

    def add(self, rows: list[NodeRow], budget: Budget) -> None:
        """Keep some rows.

        Raises:
            DamageError: The file has had its share of memory.
        """
        edges, inputs = [row.edges for row in rows], [row.inputs for row in rows]
        numbers = sum(map(len, edges)) + sum(map(len, inputs))
        budget.keep(_ROW_BYTES * len(rows) + _LIST_BYTES * numbers)
        self.num_rows += len(rows)
        # At once: many rows that wait as objects are far apart in memory, and slow.
        waiting = self._waiting
        for name in _SINGLE:
            waiting[name].extend(map(operator.attrgetter(name), rows))
        for name, lists in (("edges", edges), ("inputs", inputs)):
            waiting[name].extend(chain.from_iterable(lists))
            waiting[f"num_{name}"].extend(map(len, lists))
        if len(waiting["id"]) >= _MAX_WAITING:
            self._put_together()

    def nodes(
        self,
        inputs: Mapping[int, InputRow],
        texts: Texts,
        created: Table,
    ) -> "Nodes":
        """Return all kept nodes; of several rows of one node the last counts."""
        self._put_together()
        for parts in self._parts.values():
            parts[:] = [joined(parts)]
        columns = {name: parts[0] for name, parts in self._parts.items()}
        return Nodes(columns, inputs, texts, created)

    def _put_together(self) -> None:
        if not len(self._waiting["id"]):
            return
        for name, numbers in self._waiting.items():
            self._parts[name].append(narrow(np.array(numbers, np.int64)))
            self._waiting[name] = array("q")


class Nodes(NodeDefinitions):
    """Makes a definition from its columns when it is asked for."""

    def __init__(
        self,
        columns: Mapping[str, Narrow],
        inputs: Mapping[int, InputRow],
        texts: Texts,
        created: Table,
    ) -> None:
        self._singles = {name: columns[name] for name in _SINGLE}
        self._edges, self._inputs = columns["edges"], columns["inputs"]
        self._edge_ends = np.cumsum(columns["num_edges"], dtype=np.int64)
        self._input_ends = np.cumsum(columns["num_inputs"], dtype=np.int64)
        self._rows = _Index(columns["id"])
        self._known_inputs = inputs
        self._texts = texts
        self._created = created
        self._creations = _Index(created.narrow("node"))
        # Threads that meet here make a definition twice, or forget one too early.
        self._made: dict[int, NodeDefinition] = {}
        self._weight = 0
        self._made_inputs: dict[int, InputDefinition | None] = {-1: None}

    def __getitem__(self, node: int) -> NodeDefinition:
        made = self._made.get(node)
        if made is None:
            row = self._rows.find(node)
            if row < 0:
                raise KeyError(node)
            made = self._make(node, row)
            self._weight += _WEIGHT + len(made.edges) + len(made.inputs)
            if self._weight > _MAX_MADE:
                self._made.clear()
                self._weight = 0
            self._made[node] = made
        return made

    def __contains__(self, node: object) -> bool:
        return isinstance(node, int) and self._rows.find(node) >= 0

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows.numbers.tolist())

    def __len__(self) -> int:
        return len(self._rows.numbers)

    def names(
        self,
        nodes: Narrow,
        of: Literal["name", "device", "module", "location", "parameter"] = "name",
    ) -> tuple[list[str], Column]:
        """See `NodeDefinitions.names`."""
        if of == "location":
            return self._locations(nodes)
        indices = self._numbers(nodes, of, lost=_LOST)
        different, places = np.unique(indices, return_inverse=True)
        # Two indices may stand for the same text.
        names: dict[str, int] = {}
        same = [
            names.setdefault(
                "?" if one == _LOST else "" if one < 0 else self._texts[one],
                len(names),
            )
            for one in different.tolist()
        ]
        return list(names), np.array(same, np.int64)[places]

    def sequence_nrs(self, nodes: Narrow) -> Column:
        """See `NodeDefinitions.sequence_nrs`."""
        return self._numbers(nodes, "sequence_nr", lost=0)

    def topological_nrs(self, nodes: Narrow) -> Column:
        """See `NodeDefinitions.topological_nrs`."""
        return self._numbers(nodes, "topological_nr", lost=0)

    def inputs(self, nodes: Narrow) -> list[tuple[InputDefinition | None, ...]]:
        """See `NodeDefinitions.inputs`."""
        rows = self._rows.find_all(nodes)
        end_of = np.append(0, self._input_ends)
        begins, ends = np.where(rows < 0, 0, (end_of[rows], end_of[rows + 1]))
        made: dict[bytes, tuple[InputDefinition | None, ...]] = {}
        found = []
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            piece = self._inputs[begin:end]
            key = piece.tobytes()
            if key not in made:
                made[key] = tuple(map(self._input, piece.tolist()))
            found.append(made[key])
        return found

    def edges(self, nodes: Narrow) -> EdgeColumns:
        """See `NodeDefinitions.edges`."""
        end_of = np.concatenate(([0], self._edge_ends))
        rows = self._rows.find_all(nodes)
        begin, end = end_of[rows], end_of[rows + 1]
        many = np.where(rows < 0, 0, end - begin)
        ends = np.cumsum(many)
        places = np.repeat(begin - (ends - many), many) + np.arange(many.sum())
        pairs = self._edges[places].astype(np.int64)
        return EdgeColumns(ends // 2, pairs[::2], pairs[1::2])

    def _locations(self, nodes: Narrow) -> tuple[list[str], Column]:
        rows = self._creations.find_all(nodes)
        known = np.append(self._created["location"], -1)[rows]
        # An event has the position of its text, a definition the index.
        defined = self._numbers(nodes, "location", lost=_LOST)
        defined = np.where(defined < 0, defined, self._texts.positions(defined))
        different, places = np.unique(
            np.where(rows < 0, defined, known), return_inverse=True
        )
        texts = [
            "?" if one == _LOST else "" if one < 0 else self._texts.all[one]
            for one in different.tolist()
        ]
        return texts, places

    def _numbers(self, nodes: Narrow, name: str, lost: int) -> Column:
        rows = self._rows.find_all(nodes)
        if not len(self):
            return np.full(len(nodes), lost)
        return np.where(rows < 0, lost, self._singles[name][rows].astype(np.int64))

    def _make(self, node: int, row: int) -> NodeDefinition:
        number = {name: column.item(row) for name, column in self._singles.items()}
        edges = _piece(self._edges, self._edge_ends, row)
        created = self._creations.find(node)
        return NodeDefinition(
            id=node,
            name=self._texts[number["name"]],
            sequence_nr=MAX_SEQUENCE_NR
            if number["sequence_nr"] == -1
            else number["sequence_nr"],
            topological_nr=number["topological_nr"],
            device=self._texts[number["device"]],
            edges=tuple(zip(edges[::2], edges[1::2], strict=True)),
            inputs=tuple(map(self._input, _piece(self._inputs, self._input_ends, row))),
            location=self._made_at(created, number["location"]),
            module="" if number["module"] == -1 else self._texts[number["module"]],
            parameters=()
            if number["parameter"] == -1
            else tuple(self._texts[number["parameter"]].split("\n")),
        )

    def _made_at(self, created: int, told: int) -> str:
        if created >= 0:
            return self._texts.all[self._created.narrow("location").item(created)]
        return "" if told < 0 else self._texts[told]

    def _input(self, index: int) -> InputDefinition | None:
        if index not in self._made_inputs:
            row = self._known_inputs.get(index)
            self._made_inputs[index] = (
                InputDefinition((), LOST_TEXT, LOST_TEXT)
                if row is None
                else InputDefinition(
                    row.shape, self._texts[row.dtype], self._texts[row.device]
                )
            )
        return self._made_inputs[index]


class _Index:
    """Last position of each number in a column.

    Attributes:
        numbers: Each once, sorted.
    """

    def __init__(self, column: Narrow) -> None:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        is_last = np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]
        # Wide, or each search would make them wide.
        self.numbers = ordered[is_last].astype(np.int64)
        self._places = narrow(order[is_last])

    def find(self, number: int) -> int:
        """Return the position of a number, -1 for none."""
        place = int(self.numbers.searchsorted(number))
        if place == len(self.numbers) or self.numbers[place] != number:
            return -1
        return int(self._places[place])

    def find_all(self, numbers: Narrow) -> Column:
        """Return the positions of many numbers, -1 for none."""
        if not len(self.numbers):
            return np.full(len(numbers), -1)
        places = np.searchsorted(self.numbers, numbers)
        places[places == len(self.numbers)] = 0
        found = self.numbers[places] == numbers
        return np.where(found, self._places[places].astype(np.int64), -1)


def _piece(flat: Narrow, ends: "npt.NDArray[np.int64]", row: int) -> list[Any]:
    """Return one row of concatenated lists."""
    begin = int(ends[row - 1]) if row else 0
    return flat[begin : int(ends[row])].tolist()  # type: ignore[no-any-return]
