"""Columns: rows of integers as few bytes, and back.

An event is a row of integers. The rows of one kind that one thread reported make a
block, kept column by column: a column of times or ids has neighbours that differ by
little, so the differences fit one or two bytes where the numbers need eight.

The payload of an events frame, before it is packed (little-endian)::

    thread u32 | blocks u16 | block...
    block:  kind u16 | columns u16 | rows u32 | size u32 of what follows | column...
    column: coding u8 | width u8 | first i64 | least u64 | planes

Columns are those of `events`: ``t_ns``, ``task``, ``node``, then the kind's own. All
arithmetic is modulo 2**64, so any 64-bit integer survives.

* coding 0: each number minus `least`; `first` repeats the first number.
* coding 1: `first`, then each number minus the one before it minus `least`.

What remains are unsigned integers of `width` 0, 1, 2, 4 or 8 bytes, width 0 being all
zeros. Planes: all lowest bytes, then all second bytes and so on, because the high
bytes of neighbours are alike and pack well side by side.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.trace.frames import MAX_UNPACKED, Budget, DamageError

#: Signed 64-bit integers, shape (rows,) or (columns, rows).
Integers = npt.NDArray[np.int64]

_FRAME: Final = struct.Struct("<IH")
_BLOCK: Final = struct.Struct("<HHII")
_COLUMN: Final = struct.Struct("<BBqQ")

_VALUES: Final = 0
_DIFFERENCES: Final = 1

#: So many numbers go into one frame: half a megabyte if each needs all of its bytes.
_MAX_NUMBERS: Final = 1 << 16


class Block(NamedTuple):
    """Rows of one kind of event.

    Attributes:
        code: The kind's code in `events.KINDS`, perhaps one not known here.
        columns: Shape (columns, rows); at least one of each.
    """

    code: int
    columns: Integers


def encode_events(thread: int, blocks: Iterable[Block]) -> Iterator[bytes]:
    """Payloads, not packed yet, that hold the blocks of one thread.

    A block too long for one frame is cut into several.
    """
    encoded: list[bytes] = []
    num_numbers = 0
    for code, columns in blocks:
        width, num_rows = columns.shape
        step = max(1, _MAX_NUMBERS // width)
        for begin in range(0, num_rows, step):
            part = columns[:, begin : begin + step]
            if encoded and num_numbers + part.size > _MAX_NUMBERS:
                yield _FRAME.pack(thread, len(encoded)) + b"".join(encoded)
                encoded, num_numbers = [], 0
            encoded.append(_encode_block(code, part))
            num_numbers += part.size
    if encoded:
        yield _FRAME.pack(thread, len(encoded)) + b"".join(encoded)


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
        budget.spend(unpacked)
        blocks.append(Block(code, _decode_block(raw[begin:at], width, num_rows)))
    if at != len(raw):
        raise DamageError("something follows its events")
    return thread, blocks


def _encode_block(code: int, columns: Integers) -> bytes:
    encoded = b"".join(map(_encode_column, columns))
    width, num_rows = columns.shape
    return _BLOCK.pack(code, width, num_rows, len(encoded)) + encoded


def _decode_block(raw: bytes, width: int, num_rows: int) -> Integers:
    columns = np.empty((width, num_rows), np.int64)
    at = 0
    for column in columns:
        at = _decode_column(raw, at, column)
    if at != len(raw):
        raise DamageError("a block is longer than its columns")
    return columns


def _encode_column(values: Integers) -> bytes:
    first = int(values[0])
    coding, rest, (least, span) = _VALUES, values, _range(values)
    if span:
        differences = np.diff(values)
        least_difference, span_of_differences = _range(differences)
        if span_of_differences < span:
            coding, rest = _DIFFERENCES, differences
            least, span = least_difference, span_of_differences
    width = _width(span)
    head = _COLUMN.pack(coding, width, first, least % 2**64)
    if not width:
        return head
    offsets = rest.view(np.uint64) - np.uint64(least % 2**64)
    narrow = offsets.astype(f"<u{width}")
    return head + narrow.view(np.uint8).reshape(-1, width).T.tobytes()


def _decode_column(raw: bytes, at: int, values: Integers) -> int:
    """Fill `values` from the column at `at`, and return where the next one begins."""
    coding, width, first, least = _COLUMN.unpack_from(raw, at)
    if coding not in (_VALUES, _DIFFERENCES) or width not in (0, 1, 2, 4, 8):
        raise DamageError(f"a column has coding {coding} and width {width}")
    at += _COLUMN.size
    num_offsets = len(values) - coding
    end: int = at + num_offsets * width
    if end > len(raw):
        raise DamageError("a column is shorter than its rows")
    offsets = np.zeros(num_offsets, np.uint64)
    if width:
        planes = np.frombuffer(raw, np.uint8, num_offsets * width, at)
        narrow = np.ascontiguousarray(planes.reshape(width, num_offsets).T)
        offsets += narrow.view(f"<u{width}").ravel()
    offsets += np.uint64(least)
    unsigned = values.view(np.uint64)
    if coding == _DIFFERENCES:
        unsigned[0] = first % 2**64
        unsigned[1:] = offsets
        np.cumsum(unsigned, out=unsigned)
    else:
        unsigned[:] = offsets
    return end


def _range(values: Integers) -> tuple[int, int]:
    """The least of some numbers, and how far the greatest is above it."""
    least = int(values.min())
    return least, int(values.max()) - least


def _width(span: int) -> int:
    """Bytes of an unsigned integer that holds numbers from 0 to `span`."""
    if not span:
        return 0
    size = (span.bit_length() + 7) // 8
    return next(width for width in (1, 2, 4, 8) if width >= size)
