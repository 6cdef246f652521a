"""Protocol buffers, as far as it takes to write them: a field is its key and its value.

Source: protobuf.dev, Encoding.
"""

import functools
import struct

_VARINT, _FIXED_64, _LENGTH = 0, 1, 2


def integer(field: int, value: int) -> bytes:
    """A field of type ``int32``, ``int64``, ``uint64``, ``bool`` or an enum."""
    return _key(field, _VARINT) + _varint(value)


def fixed64(field: int, value: int) -> bytes:
    """A field of type ``fixed64``."""
    return _key(field, _FIXED_64) + struct.pack("<Q", value)


def text(field: int, value: str) -> bytes:
    """A field of type ``string``."""
    return message(field, value.encode())


def message(field: int, *parts: bytes) -> bytes:
    """A field that is a message of these fields."""
    body = b"".join(parts)
    return header(field, len(body)) + body


def header(field: int, size: int) -> bytes:
    """Return the beginning of a message whose fields have so many bytes together."""
    return _key(field, _LENGTH) + _varint(size)


@functools.cache
def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative ones as 64 bits."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= 2**64 - 1
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
