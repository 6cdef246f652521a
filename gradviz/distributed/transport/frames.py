"""Frames: a connection between two workers carries one after another.

Note [Frames]
~~~~~~~~~~~~~
A frame is 24 bytes of prefix (``gvw1``, the length of the header, the number of the
frame and the length of the body, big-endian), then the header, which is JSON, then the
body, which is the bytes of the arrays, one after another, in C order.

The header has the kind of the frame and the dtype and shape of each array. The reader
trusts nothing: lengths have limits, dtypes are those of numbers and texts, and the size
of the arrays is compared with the body before any memory is allocated. Frames of a
connection are numbered from 0, so that a recorded frame sent again is refused. An
invalid frame is a `FrameError`, and the end of its connection: nobody knows where the
next one would start.
"""

import functools
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from gradviz.backends.base import Array
from gradviz.distributed.messaging.failures import RpcError

MAGIC: Final = b"gvw1"

PREFIX: Final = struct.Struct("!4sIQQ")

#: JSON of that size may need some thirty times its memory when it is read.
MAX_HEADER_BYTES: Final = 2**22

MAX_BODY_BYTES: Final = 2**32

#: Each of them costs memory beside its bytes.
MAX_ARRAYS: Final = 2**16

#: Maximum length of each text of an error.
MAX_TEXT_BYTES: Final = 2**17

#: Signed and unsigned, floats, complex, booleans, bytes, texts, times; never objects.
_DTYPE: Final = re.compile(r"[<>|][biufcSUmM][1-9][0-9]{0,6}(\[[0-9]*[a-zA-Z]{1,2}\])?")

_MAX_DIMENSIONS: Final = 32


class FrameError(RpcError, ValueError):
    """Error of data that is no frame, or that cannot become one."""


class WireFrame(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all frames."""


class Hello(WireFrame, frozen=True):
    """The first frame of either side: its identity.

    Attributes:
        rank: Rank of the worker.
        world_size: Number of workers that it expects.
        pid: Its process; 0 if it does not say.
    """

    rank: int
    world_size: int
    pid: int = 0


class Ask(WireFrame, frozen=True):
    """A request, which has a number for its answer."""

    request: int
    meta: dict[str, Any]


class Reply(WireFrame, frozen=True):
    """A handler's reply to a request."""

    request: int
    meta: dict[str, Any]


class Failure(WireFrame, frozen=True):
    """A handler's exception, in place of a reply."""

    request: int
    kind: str
    text: str
    traceback: str


class Bye(WireFrame, frozen=True):
    """The last one, and why."""

    reason: str


AnyFrame: TypeAlias = Hello | Ask | Reply | Failure | Bye

#: The header and the arrays of a frame that is ready to go.
Encoded: TypeAlias = tuple[bytes, list[Array]]


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    frame: AnyFrame
    arrays: list[tuple[str, list[int]]] = []


_DECODER: Final = msgspec.json.Decoder(_Header)


def encode(frame: AnyFrame, arrays: Sequence[Array] = ()) -> Encoded:
    """Make a frame ready to go; its arrays stay where they are.

    Raises:
        FrameError: It is too large, or has what cannot be sent.
    """
    _check_number(len(arrays))
    for one in arrays:
        _check_dtype(one.dtype.str)
        if one.ndim > _MAX_DIMENSIONS:
            raise FrameError(f"an array of {one.ndim} dimensions cannot be sent")
    num_bytes = sum(one.nbytes for one in arrays)
    if num_bytes > MAX_BODY_BYTES:
        raise FrameError(
            f"arrays of {num_bytes:,} bytes cannot be sent at once: expected at most "
            f"{MAX_BODY_BYTES:,}; send them in several calls"
        )
    ready = [np.asarray(one, order="C") for one in arrays]
    shapes = [(one.dtype.str, list(one.shape)) for one in ready]
    try:
        header = msgspec.json.encode(_Header(frame, shapes))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FrameError(f"a message cannot be sent: {error}") from None
    if len(header) > MAX_HEADER_BYTES:
        raise FrameError(
            f"a message of {len(header):,} bytes beside its arrays cannot be sent: "
            f"expected at most {MAX_HEADER_BYTES:,}; send long texts and lists of "
            f"numbers as arrays"
        )
    return header, ready


def pieces(number: int, encoded: Encoded) -> list[memoryview]:
    """The bytes of a frame, in order."""
    header, arrays = encoded
    num_bytes = sum(one.nbytes for one in arrays)
    prefix = PREFIX.pack(MAGIC, len(header), number, num_bytes)
    return [memoryview(prefix + header), *(bytes_of(one) for one in arrays if one.size)]


def read_frame(
    fill: Callable[[memoryview], object], number: int
) -> tuple[AnyFrame, list[Array]]:
    """Take the next frame from a connection.

    Args:
        fill: Fills a piece of memory with what comes next.
        number: Number of frames that came before it.

    Raises:
        FrameError: The next data is no frame.
        Exception: Whatever `fill` raises.
    """
    prefix = bytearray(PREFIX.size)
    fill(memoryview(prefix))
    magic, header_bytes, found, body_bytes = PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise FrameError(f"a message begins with {magic!r}, expected {MAGIC!r}")
    if found != number:
        raise FrameError(f"message {found} came where number {number} was due")
    if header_bytes > MAX_HEADER_BYTES or body_bytes > MAX_BODY_BYTES:
        raise FrameError(
            f"a message has {header_bytes:,} bytes and arrays of {body_bytes:,}, "
            f"expected at most {MAX_HEADER_BYTES:,} and {MAX_BODY_BYTES:,}"
        )
    text = bytearray(header_bytes)
    fill(memoryview(text))
    try:
        header = _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"a message is none: {error}") from None
    arrays = _allocate(header.arrays, body_bytes)
    for array in arrays:
        if array.size:
            fill(bytes_of(array))
            if array.dtype.kind == "b" and array.view(np.uint8).max() > 1:
                raise FrameError("an array of booleans has others than 0 and 1")
    return header.frame, arrays


def bytes_of(array: Array) -> memoryview:
    """The memory of a contiguous array that is not empty."""
    return memoryview(array.reshape(-1).view(np.uint8))


def sendable(text: str) -> str:
    """Return a text without the parts that cannot be sent."""
    encoded = text.encode(errors="backslashreplace")[:MAX_TEXT_BYTES]
    return encoded.decode(errors="ignore")


def _allocate(shapes: Sequence[tuple[str, list[int]]], body_bytes: int) -> list[Array]:
    _check_number(len(shapes))
    dtypes = [_check_dtype(text) for text, _ in shapes]
    for _, shape in shapes:
        if len(shape) > _MAX_DIMENSIONS or any(size < 0 for size in shape):
            raise FrameError(f"an array cannot have the shape {shape!r:.80}")
    needed = sum(
        dtype.itemsize * math.prod(shape)
        for dtype, (_, shape) in zip(dtypes, shapes, strict=True)
    )
    if needed != body_bytes:
        raise FrameError(
            f"the arrays of a message need {needed:,} bytes, and it has {body_bytes:,}"
        )
    try:
        return [
            np.empty(shape, dtype)
            for dtype, (_, shape) in zip(dtypes, shapes, strict=True)
        ]
    except (ValueError, OverflowError, MemoryError) as error:
        raise FrameError(f"an array cannot be made: {error}") from None


def _check_number(num_arrays: int) -> None:
    if num_arrays > MAX_ARRAYS:
        raise FrameError(
            f"{num_arrays:,} arrays cannot be sent at once: expected at most "
            f"{MAX_ARRAYS:,}; send them in several calls"
        )


@functools.lru_cache(256)
def _check_dtype(text: str) -> np.dtype[Any]:
    if _DTYPE.fullmatch(text):
        try:
            dtype = np.dtype(text)
        except (TypeError, ValueError):
            pass
        else:
            if dtype.str == text and not dtype.hasobject:
                return dtype
    raise FrameError(f"an array of dtype {text!r:.40} cannot be sent: expected numbers")
