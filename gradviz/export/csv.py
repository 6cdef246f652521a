"""CSV: one table, for spreadsheets and whatever reads lines.

A text that a spreadsheet would take for a formula, because it begins with ``=``, ``+``,
``-``, ``@``, a tab or a line break, gets a ``'`` before it. NULL is an empty cell.
"""

import csv
import io
from collections.abc import Iterator
from typing import Final

from gradviz.export.table_rows import TableCell
from gradviz.export.tables import TABLES
from gradviz.trace.format.model import Trace

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def parts(trace: Trace, table: str) -> Iterator[bytes]:
    """The names of the columns, then the rows, some thousand a part."""
    wanted = TABLES[table]
    yield _lines([tuple(field.name for field in wanted.fields)])
    for batch in wanted.batches(trace):
        yield _lines([tuple(map(_harmless, row)) for row in batch])


def _lines(rows: list[tuple[TableCell, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _harmless(cell: TableCell) -> TableCell:
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return f"'{cell}"
    return cell
