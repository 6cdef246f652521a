"""Frames: how a trace file is cut into pieces that can be trusted one by one.

A file is a sequence of frames and nothing else::

    magic 8 | length u32 | crc32 u32 | type u8 | payload (length bytes)

Integers are little-endian, the checksum covers type and payload. A frame needs no
other frame to be decoded, and the file needs no footer: whoever reads it takes the
frames that are intact and says where the others were.

What payloads mean is not known here; see `definitions` and `columns`.

Each frame but the header is stamped with a number that its recording drew and with how
many frames came before it. So a frame that is missing leaves a hole, one that was put
in belongs to another recording, and one that is there twice has been seen.
"""

import enum
import itertools
import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

#: Begins every frame. No UTF-8 text contains it, and a transfer that changes line
#: ends or strips the eighth bit breaks it.
MAGIC: Final = b"\x89GVT\r\n\x1a\n"

#: A packed payload never unpacks to more than this many bytes.
MAX_UNPACKED: Final = 16 << 20

#: A longer frame is not believed. Writers stay near 1 MiB.
MAX_PAYLOAD: Final = MAX_UNPACKED + (1 << 16)

_HEAD: Final = struct.Struct("<8sIIB")
_SIZE: Final = struct.Struct("<I")
_STAMP: Final = struct.Struct("<II")

#: Holes are told one by one up to this many.
_MAX_HOLES: Final = 10

#: The field of a stamp in a payload of JSON.
_STAMP_FIELD: Final = b',"stamp":[%d,%d]}'


class FrameType(enum.IntEnum):
    """Kind of a payload. Readers skip and count types they do not know."""

    HEADER = 1
    DEFINITIONS = 2
    EVENTS = 3
    LOST = 4
    ANCHOR = 5
    CLOSED = 6


class DamageError(Exception):
    """A frame's contents do not match its type. Never leaves this package."""


class Frame(NamedTuple):
    """An intact frame.

    Attributes:
        offset: Offset of its start in the file.
        type: A `FrameType`, or a number that this version does not know.
        payload: Its bytes.
    """

    offset: int
    type: int
    payload: memoryview


class Gap(NamedTuple):
    """Bytes that belong to no intact frame.

    Attributes:
        offset: Offset of their start in the file.
        size: Number of bytes.
        is_tail: True if they are the beginning of a frame that the end of the file cuts
            off, as a killed writer leaves it.
    """

    offset: int
    size: int
    is_tail: bool


class Stamp(NamedTuple):
    """Recording and number of a frame.

    Attributes:
        recording: A random number that identifies the recording.
        number: Number of frames before it, the header included.
    """

    recording: int
    number: int

    def packed(self) -> bytes:
        """Return the bytes at the end of a packed payload."""
        return _STAMP.pack(*self)


class Budget:
    """Limits on the cost of reading a file, by its size.

    A small file cannot make a reader fill memory, or keep it busy: a file of 10 MB is
    read and inspected in less than 512 MiB. A recorder's files stay below half of each
    limit.

    Args:
        file_size: Size of the file, in bytes.
    """

    def __init__(self, file_size: int) -> None:
        self._unpacked_bytes = self._decoded_bytes = self._kept_bytes = 64 << 20
        self._events = 1 << 20
        self._lists = 1 << 19
        self.grow(file_size)

    def grow(self, num_bytes: int) -> None:
        """The file has become longer."""
        self._unpacked_bytes += 16 * num_bytes
        self._decoded_bytes += 48 * num_bytes
        self._kept_bytes += 13 * num_bytes
        self._events += num_bytes // 2
        self._lists += num_bytes // 4

    def unpack(self, size: int) -> None:
        """Take `size` bytes that something packed unpacks to.

        Raises:
            DamageError: There are not that many left; so for all that follow.
        """
        if size > self._unpacked_bytes:
            raise DamageError("it unpacks to far more than a recorder ever writes")
        self._unpacked_bytes -= size

    def decode(self, num_rows: int, size: int) -> None:
        """Take so many rows of events, which are `size` bytes of integers."""
        if num_rows > self._events:
            raise DamageError("it holds far more events than a recorder ever writes")
        if size > self._decoded_bytes:
            raise DamageError("it holds far more numbers than a recorder ever writes")
        self._events -= num_rows
        self._decoded_bytes -= size

    def define(self, num_lists: int) -> None:
        """Take so many arrays of JSON; a definition is one to three."""
        if num_lists > self._lists:
            raise DamageError("it holds far more definitions than a recorder writes")
        self._lists -= num_lists

    def keep(self, size: int) -> None:
        """Take about so many bytes of memory, for as long as the trace is there."""
        if size > self._kept_bytes:
            raise DamageError("it holds far more than a recorder ever writes")
        self._kept_bytes -= size


class Numbering:
    """Numbers of a file's frames, as far as they are known.

    Args:
        recording: Recording that the header names; -1 for an older trace, whose frames
            have no numbers.
    """

    def __init__(self, recording: int) -> None:
        self._recording = recording
        self._seen = {0}  # the header
        self._last = 0

    def take(self, stamp: Stamp | None) -> str:
        """Take the next frame's stamp; return the error of its place, if any.

        Raises:
            DamageError: The frame does not belong here.
        """
        if self._recording < 0:
            return ""
        if stamp is None or stamp.recording != self._recording:
            raise DamageError("it belongs to another recording")
        if stamp.number in self._seen:
            raise DamageError(f"it is frame {stamp.number} once more")
        self._seen.add(stamp.number)
        is_late = stamp.number < self._last
        self._last = max(self._last, stamp.number)
        return f"frame {stamp.number} is not in its place" if is_late else ""

    def missing(self) -> Iterator[str]:
        """Yield descriptions of the frames missing before the last one.

        A recorder that is done says so in its last frame: then nothing is missing
        after it.
        """
        if self._recording < 0:
            return
        numbers = sorted(self._seen)
        holes = [
            (number + 1, end)
            for number, end in itertools.pairwise(numbers)
            if number + 1 < end
        ]
        for begin, end in holes[:_MAX_HOLES]:
            yield (
                f"frame {begin} is missing"
                if end - begin == 1
                else f"frames {begin} to {end - 1} are missing"
            )
        more = sum(end - begin for begin, end in holes[_MAX_HOLES:])
        if more:
            yield f"{more} more frames are missing"


def encode_frame(kind: FrameType, payload: bytes) -> bytes:
    """The bytes of one frame."""
    crc = zlib.crc32(payload, zlib.crc32(bytes((kind,))))
    return _HEAD.pack(MAGIC, len(payload), crc, kind) + payload


def scan(data: bytes) -> Iterator[Frame | Gap]:
    """The frames of a file in their order, and the gaps between them.

    After damage it goes on at the next magic. Every byte is in exactly one piece.
    """
    view = memoryview(data)
    # Each false start costs a checksum. An attacker's file may consist of nothing
    # else, so they are allowed this many bytes in all.
    doubt = 8 * len(data) + MAX_PAYLOAD
    start = at = 0
    while at < len(data):
        frame = _frame_at(view, at) if doubt > 0 else None
        if frame is not None:
            if start < at:
                yield Gap(start, at - start, is_tail=False)
            yield frame
            start = at = at + _HEAD.size + len(frame.payload)
            continue
        doubt -= min(_claimed_length(view, at), len(data) - at)
        found = data.find(MAGIC, at + 1)
        at = len(data) if found < 0 else found
    if start < len(data):
        yield Gap(start, len(data) - start, is_tail=_is_cut(view, start))


def pack(raw: bytes, stamp: Stamp | None = None) -> bytes:
    """A compressed payload; its unpacked size comes first, its stamp last."""
    packed = _SIZE.pack(len(raw)) + zlib.compress(raw, 1)
    return packed if stamp is None else packed + stamp.packed()


def unpack(payload: memoryview, budget: Budget) -> tuple[bytes, Stamp | None]:
    """Return the argument of `pack`; at most `MAX_UNPACKED` bytes.

    Raises:
        DamageError: The payload is not packed, or unpacks to more than it says.
    """
    if len(payload) < _SIZE.size:
        raise DamageError("it is too short to hold its own size")
    (size,) = _SIZE.unpack_from(payload)
    if size > MAX_UNPACKED:
        raise DamageError(f"it claims to unpack to {size} bytes")
    budget.unpack(size)
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(payload[_SIZE.size :], size + 1)
    except zlib.error as error:
        raise DamageError(f"it cannot be unpacked ({error})") from None
    if len(raw) != size or not inflater.eof:
        raise DamageError(f"it does not unpack to the {size} bytes it claims")
    rest = inflater.unused_data
    is_stamped = len(rest) >= _STAMP.size
    return raw, Stamp(*_STAMP.unpack_from(rest)) if is_stamped else None


def stamped(json: bytes, stamp: Stamp) -> bytes:
    """The JSON of an object that has fields, with the stamp as one more."""
    return json[:-1] + _STAMP_FIELD % stamp


def _frame_at(view: memoryview, at: int) -> Frame | None:
    """The intact frame at `at`, if there is one."""
    if len(view) - at < _HEAD.size:
        return None
    magic, length, crc, kind = _HEAD.unpack_from(view, at)
    begin = at + _HEAD.size
    if magic != MAGIC or length > min(MAX_PAYLOAD, len(view) - begin):
        return None
    if zlib.crc32(view[begin - 1 : begin + length]) != crc:
        return None
    return Frame(at, kind, view[begin : begin + length])


def _claimed_length(view: memoryview, at: int) -> int:
    """Return how many bytes `_frame_at` may have read in vain."""
    if len(view) - at < _HEAD.size:
        return 0
    magic, length, _, _ = _HEAD.unpack_from(view, at)
    return int(length) if magic == MAGIC and length <= MAX_PAYLOAD else 0


def _is_cut(view: memoryview, at: int) -> bool:
    """Return whether the rest of the file could begin one longer frame."""
    head = bytes(view[at : at + _HEAD.size])
    if len(head) < _HEAD.size:
        return head[: len(MAGIC)] == MAGIC[: len(head)]
    magic, length, _, _ = _HEAD.unpack(head)
    left = len(view) - at - _HEAD.size
    return bool(magic == MAGIC and left < length <= MAX_PAYLOAD)
