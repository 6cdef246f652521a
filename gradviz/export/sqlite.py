"""SQLite: all tables in one database."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from gradviz.errors import UserError
from gradviz.export.tables import TABLES
from gradviz.trace.format.model import Trace

#: Number of bytes in a part.
_PIECE: Final = 1 << 20

#: Columns that joins and queries search.
_INDICES: Final = ("runs (task, node)", "nodes (node)", "events (kind)")


def parts(trace: Trace) -> Iterator[bytes]:
    """The bytes of the database, which is made in the folder for temporary files.

    Raises:
        UserError: There is no room for it.
    """
    with tempfile.TemporaryDirectory(prefix="gradviz-") as folder:
        path = Path(folder, "trace.sqlite")
        try:
            _fill(path, trace)
        except sqlite3.Error as error:
            raise UserError(
                f"cannot make a database in {folder}: {error}; TMPDIR names a folder "
                f"with more room"
            ) from error
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece


def _fill(path: Path, trace: Trace) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        # Nobody reads it before it is done, and what is not done is thrown away.
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        for table in TABLES.values():
            columns = ", ".join(f"{one.name} {one.type}" for one in table.fields)
            database.execute(f"CREATE TABLE {table.name} ({columns})")
            places = ", ".join("?" * len(table.fields))
            insert = f"INSERT INTO {table.name} VALUES ({places})"
            for batch in table.batches(trace):
                database.executemany(insert, batch)
        for index in _INDICES:
            name = index.partition(" ")[0]
            database.execute(f"CREATE INDEX {name}_index ON {index}")
        database.execute("COMMIT")
