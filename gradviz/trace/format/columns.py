"""Columns: rows of integers as few bytes, and back.

An event is a row of integers. The rows of one kind that one thread reported make a
block, kept column by column: a column of times or ids has neighbors that differ by
little, so the differences fit one or two bytes where the numbers need eight.

The payload of an events frame, before it is packed (little-endian)::

    thread u32 | blocks u16 | block...
    block:  kind u16 | columns u16 | rows u32 | size u32 of what follows | column...
    column: width u8 | first i64 | least i64 | planes

Columns are those of `events`: ``t_ns``, ``task``, ``node``, then the kind's own. A
column is its first number, and for each further one by how much it differs from the one
before it, minus `least`, the least of these differences. What remains are unsigned
integers of `width` 0, 1, 2, 4 or 8 bytes, width 0 being all zeros. Planes: all lowest
bytes, then all second bytes and so on, because the high bytes of neighbors are alike
and pack well side by side. All arithmetic is modulo 2**64, so any integers survive.

Note [Few calls into NumPy]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
The writer works beside a program that keeps the interpreter busy. A call that releases
the interpreter's lock, as NumPy does in every operation on a long array, gets it back
only after the switch interval, five milliseconds. So all columns of a frame are in one
long array, and a handful of operations processes them at once; code that works column
by column keeps the lock.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.trace.format.frames import MAX_UNPACKED, Budget, DamageError

#: Signed 64-bit integers, shape (rows,) or (columns, rows).
Integers = npt.NDArray[np.int64]

_FRAME: Final = struct.Struct("<IH")
_BLOCK: Final = struct.Struct("<HHII")
_COLUMN: Final = struct.Struct("<Bqq")

#: Maximum number of numbers in one frame: two megabytes before they are packed, if each
#: needs all of its bytes.
_MAX_NUMBERS: Final = 1 << 18

#: Widths, and the largest difference that fits each but the last.
_WIDTHS: Final = (0, 1, 2, 4, 8)
_LARGEST: Final = np.array((0, 2**8 - 1, 2**16 - 1, 2**32 - 1), np.uint64)


class Part(NamedTuple):
    """One of the events that a row stands for.

    Attributes:
        code: The kind's code in `events.KINDS`.
        delay_ns: Delay after the row's time at which it is said to have happened.
        places: Indices of its columns in the row.
    """

    code: int
    delay_ns: int
    places: tuple[int, ...]


class RowLayout(NamedTuple):
    """Layout of rows, and the events that they stand for.

    Attributes:
        width: Numbers in a row, the time first.
        parts: The events of each row.
    """

    width: int
    parts: tuple[Part, ...]


class RowTable(NamedTuple):
    """Rows that were reported, column by column.

    Attributes:
        layout: Of the rows.
        num_rows: At least one.
        columns: All numbers of a column, or one if they are all the same.
    """

    layout: RowLayout
    num_rows: int
    columns: "tuple[array[int], ...]"


class Block(NamedTuple):
    """Rows of one kind of event, as they were read.

    Attributes:
        code: The kind's code in `events.KINDS`, perhaps one not known here.
        columns: Shape (columns, rows); at least one of each.
    """

    code: int
    columns: Integers


def tabulate(layout: RowLayout, numbers: list[int]) -> RowTable:
    """Put rows, one after the other, into columns.

    Raises:
        TypeError: One of the numbers is not an integer.
        OverflowError: One of them does not fit 64 bits.
    """
    columns = []
    for place in range(layout.width):
        column = numbers[place :: layout.width]
        # Most columns are: the task, the queue, whatever comes with them. To find out
        # takes 3 ns a number, to convert and encode them 25. Times and ids, of which to
        # find out takes longer, mostly end otherwise than they begin.
        first = column[0]
        is_constant = first == column[-1] and column.count(first) == len(column)
        columns.append(array("q", [first] if is_constant else column))
    return RowTable(layout, len(numbers) // layout.width, tuple(columns))


def encode_events(thread: int, tables: Iterable[RowTable]) -> Iterator[bytes]:
    """Payloads, not packed yet, that hold the rows of one thread.

    Rows too many for one frame are cut into several.
    """
    frame: list[RowTable] = []
    num_numbers = 0
    for table in tables:
        width = sum(len(part.places) for part in table.layout.parts)
        for piece in _cut(table, max(1, _MAX_NUMBERS // width)):
            if frame and num_numbers + width * piece.num_rows > _MAX_NUMBERS:
                yield _encode_frame(thread, frame)
                frame, num_numbers = [], 0
            frame.append(piece)
            num_numbers += width * piece.num_rows
    if frame:
        yield _encode_frame(thread, frame)


def decode_events(raw: bytes, budget: Budget) -> tuple[int, list[Block]]:
    """The thread and the blocks of a payload.

    Raises:
        DamageError: The payload contradicts itself.
    """
    try:
        return _decode_events(raw, budget)
    except struct.error:
        raise DamageError("it ends inside its events") from None


def _decode_events(raw: bytes, budget: Budget) -> tuple[int, list[Block]]:
    thread, num_blocks = _FRAME.unpack_from(raw)
    at = _FRAME.size
    blocks = []
    for _ in range(num_blocks):
        code, width, num_rows, size = _BLOCK.unpack_from(raw, at)
        begin, at = at + _BLOCK.size, at + _BLOCK.size + size
        unpacked = 8 * width * num_rows
        if at > len(raw) or not unpacked or unpacked > MAX_UNPACKED:
            raise DamageError(f"it claims {num_rows} rows of {width} columns")
        budget.decode(num_rows, unpacked)
        blocks.append(Block(code, _decode_block(raw[begin:at], width, num_rows)))
    if at != len(raw):
        raise DamageError("something follows its events")
    return thread, blocks


def _cut(table: RowTable, max_rows: int) -> Iterator[RowTable]:
    """`table`, in pieces of at most so many rows."""
    layout, num_rows, columns = table
    if num_rows <= max_rows:
        yield table
        return
    for begin in range(0, num_rows, max_rows):
        end = min(begin + max_rows, num_rows)
        pieces = (one if len(one) == 1 else one[begin:end] for one in columns)
        yield RowTable(layout, end - begin, tuple(pieces))


class _Encoded(NamedTuple):
    """A column as it is in a file; of its `first` number there may be variants."""

    width: int
    first: int
    least: int
    planes: bytes


def _encode_frame(thread: int, tables: list[RowTable]) -> bytes:
    columns = _encode_columns(tables)
    blocks = [
        _encode_block(part, table.num_rows, encoded)
        for table, encoded in zip(tables, columns, strict=True)
        for part in table.layout.parts
    ]
    return _FRAME.pack(thread, len(blocks)) + b"".join(blocks)


def _encode_block(part: Part, num_rows: int, columns: Sequence[_Encoded]) -> bytes:
    encoded: list[bytes] = []
    delay = part.delay_ns  # of the first column, which is the time
    for place in part.places:
        width, first, least, planes = columns[place]
        encoded += _COLUMN.pack(width, first + delay, least), planes
        delay = 0
    block = b"".join(encoded)
    return _BLOCK.pack(part.code, len(part.places), num_rows, len(block)) + block


def _encode_columns(tables: list[RowTable]) -> list[list[_Encoded]]:
    """Each column of each table. See Note [Few calls into NumPy]."""
    varying = [one for table in tables for one in table.columns if len(one) > 1]
    encoded = iter(_encode_varying(varying) if varying else ())
    return [
        [
            next(encoded) if len(one) > 1 else _Encoded(0, one[0], 0, b"")
            for one in table.columns
        ]
        for table in tables
    ]


def _encode_varying(columns: "list[array[int]]") -> Iterator[_Encoded]:
    numbers = array("q")
    for column in columns:
        numbers.extend(column)
    values = np.frombuffer(numbers, np.int64)
    lengths = [len(column) for column in columns]
    ends = np.cumsum(np.array(lengths, np.int64))
    starts = ends - lengths
    steps = np.empty_like(values)
    np.subtract(values[1:], values[:-1], out=steps[1:])
    # The number at the start of a column is no difference: it must not count.
    steps[starts] = steps[starts + 1]
    least = np.minimum.reduceat(steps, starts)
    span = np.maximum.reduceat(steps, starts).view(np.uint64) - least.view(np.uint64)
    widths = [_WIDTHS[place] for place in np.searchsorted(_LARGEST, span)]
    steps -= np.repeat(least, lengths)
    raw = steps.tobytes()
    for width, start, end, first, low in zip(
        widths,
        (8 * starts).tolist(),
        (8 * ends).tolist(),
        values[starts].tolist(),
        least.tolist(),
        strict=True,
    ):
        planes = (raw[start + 8 + place : end : 8] for place in range(width))
        yield _Encoded(width, first, low, b"".join(planes))


def _decode_block(raw: bytes, width: int, num_rows: int) -> Integers:
    columns = np.empty((width, num_rows), np.int64)
    at = 0
    for column in columns:
        at = _decode_column(raw, at, column)
    if at != len(raw):
        raise DamageError("a block is longer than its columns")
    return columns


def _decode_column(raw: bytes, at: int, values: Integers) -> int:
    """Fill `values` from the column at `at`, and return where the next one begins."""
    width, first, least = _COLUMN.unpack_from(raw, at)
    if width not in _WIDTHS:
        raise DamageError(f"a column has numbers of {width} bytes")
    begin = at + _COLUMN.size
    num_steps = len(values) - 1
    end: int = begin + num_steps * width
    if end > len(raw):
        raise DamageError("a column is shorter than its rows")
    if not width and not least:  # as most columns are: all its numbers are the same
        values[:] = first
        return end
    values[0] = first
    values[1:] = least
    if width and num_steps:
        planes = np.frombuffer(raw, np.uint8, num_steps * width, begin)
        narrow = np.ascontiguousarray(planes.reshape(width, num_steps).T)
        unsigned = values.view(np.uint64)
        unsigned[1:] += narrow.view(f"<u{width}").ravel()
    np.add.accumulate(values, out=values)
    return end
