"""Parquet: one table, column by column. Needs pyarrow, the extra ``parquet``."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gradviz.errors import MissingToolError
from gradviz.export.tables import TABLES
from gradviz.trace.format.model import Trace

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
except ImportError:
    HAS_PYARROW = False
else:
    HAS_PYARROW = True

#: Types of a table's fields in Arrow.
_TYPES: Final = {"integer": "int64", "text": "string"}


def parts(trace: Trace, table: str) -> Iterator[bytes]:
    """The bytes of the file.

    Its metadata say under ``gradviz`` who recorded the trace and what is missing.

    Raises:
        MissingToolError: There is no pyarrow.
    """
    if not HAS_PYARROW:
        raise MissingToolError(
            "Parquet needs pyarrow: pip install 'gradviz[parquet]', or export sqlite"
        )
    wanted = TABLES[table]
    schema = pa.schema(
        [(one.name, _TYPES[one.type]) for one in wanted.fields],
        metadata={"gradviz": _metadata(trace)},
    )
    written = _Pieces()
    with ParquetWriter(pa.PythonFile(written, "w"), schema) as writer:
        for batch in wanted.batches(trace):
            columns: list[tuple[Any, ...]] = list(zip(*batch, strict=True))
            arrays = map(pa.array, columns, schema.types)
            writer.write_batch(pa.record_batch(list(arrays), schema=schema))
            yield written.take()
    yield written.take()


class _Pieces:
    """A file that is only written to, and taken away piece by piece."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: written bytes are available at once."""

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken


def _metadata(trace: Trace) -> bytes:
    return msgspec.json.encode(
        {
            "header": trace.header,
            "losses": trace.losses,
            "is_complete": trace.losses.is_complete,
        }
    )
