"""The tables that databases and spreadsheets get; docs/export.md explains them."""

import itertools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gradviz.export import table_rows
from gradviz.export.table_rows import BATCH, TableRow
from gradviz.trace.format.model import Trace


class Field(NamedTuple):
    """A column: its name, and ``integer`` or ``text``."""

    name: str
    type: str


class ExportedTable(NamedTuple):
    """A table: its columns, and how a trace fills them.

    Attributes:
        name: Its name in SQL.
        fields: Its columns.
        rows: The rows of a trace.
    """

    name: str
    fields: tuple[Field, ...]
    rows: Callable[[Trace], Iterator[TableRow]]

    def batches(self, trace: Trace) -> Iterator[list[TableRow]]:
        """The rows, at most `BATCH` at a time: no table is in memory as a whole."""
        every = self.rows(trace)
        while batch := list(itertools.islice(every, BATCH)):
            yield batch


def _table(
    name: str, of: Callable[[Trace], Iterator[TableRow]], fields: str
) -> ExportedTable:
    """Return a table with fields written as in SQL: ``node integer, name text``."""
    columns = (Field(*field.split()) for field in fields.split(","))
    return ExportedTable(name, tuple(columns), of)


_ALL: Final = (
    _table(
        "runs",
        table_rows.runs_rows,
        """task integer, node integer, name text, module text, location text,
        device text, thread integer, queue integer, pushed_ns integer,
        popped_ns integer, started_ns integer, ended_ns integer, waited_ns integer,
        took_ns integer, thread_time_ns integer, status text, error text,
        part integer, worker integer""",
    ),
    _table(
        "passes",
        table_rows.passes_rows,
        """task integer, parent integer, depth integer, thread integer,
        began_ns integer, ended_ns integer, took_ns integer, status text,
        error text""",
    ),
    _table(
        "parts",
        table_rows.parts_rows,
        """part integer, task integer, worker integer, parent integer,
        thread integer, began_ns integer, ended_ns integer, took_ns integer,
        status text, error text""",
    ),
    _table(
        "nodes",
        table_rows.nodes_rows,
        """node integer, name text, sequence_nr integer, topological_nr integer,
        device text, module text, location text, inputs text,
        parameters text""",
    ),
    _table(
        "edges",
        table_rows.edges_rows,
        "producer integer, output_nr integer, consumer integer, input_nr integer",
    ),
    _table(
        "events",
        table_rows.events_rows,
        """seq integer, t_ns integer, thread integer, task integer, node integer,
        kind text, fields text, inferred integer""",
    ),
    _table(
        "processes",
        table_rows.processes_rows,
        "pid integer, rank integer, host text, argv text",
    ),
    _table(
        "threads", table_rows.threads_rows, "thread integer, name text, pid integer"
    ),
    _table(
        "queues", table_rows.queues_rows, "queue integer, name text, device integer"
    ),
    _table("streams", table_rows.streams_rows, "stream text, name text, location text"),
    _table(
        "kernels",
        table_rows.kernels_rows,
        """kernel integer, name text, stream text, location text, thread integer,
        launched_ns integer, began_ns integer, ended_ns integer""",
    ),
    _table("losses", table_rows.losses_rows, "what text, number integer, text text"),
    _table("trace", table_rows.trace_rows, "key text, value text"),
)

#: All of them, by name.
TABLES: Final = {table.name: table for table in _ALL}
