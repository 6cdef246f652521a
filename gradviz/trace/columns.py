"""Columns: rows of integers as few bytes, and back.

An event is a row of integers. The rows of one kind that one thread reported make a
block, kept column by column: a column of times or ids has neighbours that differ by
little, so the differences fit one or two bytes where the numbers need eight.

The payload of an events frame, before it is packed (little-endian)::

    thread u32 | blocks u16 | block...
    block:  kind u16 | columns u16 | rows u32 | size u32 of what follows | column...
    column: width u8 | first i64 | least i64 | planes

Columns are those of `events`: ``t_ns``, ``task``, ``node``, then the kind's own. A
column is its first number, and for each further one by how much it differs from the one
before it, minus `least`, the least of these differences. What remains are unsigned
integers of `width` 0, 1, 2, 4 or 8 bytes, width 0 being all zeros. Planes: all lowest
bytes, then all second bytes and so on, because the high bytes of neighbours are alike
and pack well side by side. All arithmetic is modulo 2**64, so any integers survive.

Note [Few calls into NumPy]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
The writer works beside a program that keeps the interpreter busy. A call that lets go
of the interpreter's lock, as NumPy does in every operation on a long array, gets it
back only after the switch interval, five milliseconds. So all columns of a frame lie
in one long array, and a handful of operations treats them at once; whatever is done
column by column keeps the lock.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.trace.frames import MAX_UNPACKED, Budget, DamageError

#: Signed 64-bit integers, shape (rows,) or (columns, rows).
Integers = npt.NDArray[np.int64]

_FRAME: Final = struct.Struct("<IH")
_BLOCK: Final = struct.Struct("<HHII")
_COLUMN: Final = struct.Struct("<Bqq")

#: So many numbers go into one frame: two megabytes before they are packed, if each
#: needs all of its bytes.
_MAX_NUMBERS: Final = 1 << 18

#: Widths, and the largest difference that fits each but the last.
_WIDTHS: Final = (0, 1, 2, 4, 8)
_LARGEST: Final = np.array((0, 2**8 - 1, 2**16 - 1, 2**32 - 1), np.uint64)


class Rows(NamedTuple):
    """Rows of one kind of event, as they were reported.

    Attributes:
        code: The kind's code in `events.KINDS`.
        width: Numbers in a row.
        numbers: Row after row; at least one.
    """

    code: int
    width: int
    numbers: "array[int]"


class Block(NamedTuple):
    """Rows of one kind of event, as they were read.

    Attributes:
        code: The kind's code in `events.KINDS`, perhaps one not known here.
        columns: Shape (columns, rows); at least one of each.
    """

    code: int
    columns: Integers


def encode_events(thread: int, rows: Iterable[Rows]) -> Iterator[bytes]:
    """Payloads, not packed yet, that hold the rows of one thread.

    Rows too many for one frame are cut into several.
    """
    frame: list[Rows] = []
    num_numbers = 0
    for one in rows:
        step = max(1, _MAX_NUMBERS // one.width) * one.width
        for begin in range(0, len(one.numbers), step):
            part = one._replace(numbers=one.numbers[begin : begin + step])
            if frame and num_numbers + len(part.numbers) > _MAX_NUMBERS:
                yield _encode_frame(thread, frame)
                frame, num_numbers = [], 0
            frame.append(part)
            num_numbers += len(part.numbers)
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
        budget.spend(unpacked)
        blocks.append(Block(code, _decode_block(raw[begin:at], width, num_rows)))
    if at != len(raw):
        raise DamageError("something follows its events")
    return thread, blocks


def _encode_frame(thread: int, blocks: list[Rows]) -> bytes:
    columns = iter(_encode_columns(blocks))
    encoded = [_FRAME.pack(thread, len(blocks))]
    for code, width, numbers in blocks:
        block = b"".join(next(columns) for _ in range(width))
        encoded += _BLOCK.pack(code, width, len(numbers) // width, len(block)), block
    return b"".join(encoded)


def _encode_columns(blocks: list[Rows]) -> Iterator[bytes]:
    """Each column of each block. See Note [Few calls into NumPy]."""
    numbers = array("q")
    lengths: list[int] = []
    for block in blocks:
        for place in range(block.width):
            numbers.extend(block.numbers[place :: block.width])
        lengths += [len(block.numbers) // block.width] * block.width
    values = np.frombuffer(numbers, np.int64)
    ends = np.cumsum(np.array(lengths, np.int64))
    starts = ends - lengths
    steps = np.empty_like(values)
    np.subtract(values[1:], values[:-1], out=steps[1:])
    # What stands at the start of a column is no difference of it: let it not count.
    steps[starts] = np.where(starts + 1 < ends, steps[(starts + 1) % len(steps)], 0)
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
        yield _COLUMN.pack(width, first, low) + b"".join(planes)


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
    values[0] = first
    values[1:] = least
    if width:
        planes = np.frombuffer(raw, np.uint8, num_steps * width, begin)
        narrow = np.ascontiguousarray(planes.reshape(width, num_steps).T)
        unsigned = values.view(np.uint64)
        unsigned[1:] += narrow.view(f"<u{width}").ravel()
    np.cumsum(values, out=values)
    return end
