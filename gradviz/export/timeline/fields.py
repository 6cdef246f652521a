"""Fields of many messages at once: columns of bytes, joined row by row at the end.

A column is made by one of the functions in `protobuf`, which sees each text of a batch
once and a number of each size. So it is called seldom however many events there are.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.trace.format.table import Column

_Bytes: TypeAlias = npt.NDArray[np.uint8]

#: The lowest number of each size, which has that many groups of seven bits.
_LOWEST: Final = np.array([0, *(1 << 7 * size for size in range(1, 10))], np.uint64)


class Fields(NamedTuple):
    """A part of each of many messages, such as one field.

    Attributes:
        data: The bytes of all parts, in any order.
        begins: Place in them at which each part begins.
        sizes: Number of its bytes, 0 where a message lacks it.
    """

    data: _Bytes
    begins: Column
    sizes: Column


def numbers(encode: Callable[[int], bytes], values: Column) -> Fields:
    """Return parts that end in a number.

    Args:
        encode: Encodes one: it ends in the number as a varint, and what is before that
            depends on the size of the varint alone, but has always one length.
        values: The numbers.
    """
    unsigned = values.astype(np.int64).view(np.uint64)
    most = int(np.searchsorted(_LOWEST, unsigned.max(initial=0), side="right"))
    sizes = np.ones(len(values), np.int64)
    for lowest in _LOWEST[1:most]:
        sizes += unsigned >= lowest
    beginnings = [
        encode(int(lowest))[:-size] for size, lowest in enumerate(_LOWEST[:most], 1)
    ]
    before = len(beginnings[0])
    rows = np.empty((len(values), before + most), np.uint8)
    rows[:, :before] = _bytes(b"".join(beginnings)).reshape(most, before)[sizes - 1]
    for group in range(most):
        has_more = (sizes > group + 1).astype(np.uint8) << 7
        bits = (unsigned >> np.uint64(7 * group)).astype(np.uint8) & 0x7F
        rows[:, before + group] = bits | has_more
    return _of_rows(rows, sizes + before)


def repeated(encode: Callable[[int], bytes], values: Column, many: Column) -> Fields:
    """Return so many numbers of each message, one after the other.

    Args:
        encode: Encodes one, as a fixed64.
        values: The numbers.
        many: The count of each message.
    """
    key = encode(0)[:-8]
    size = len(key) + 8
    rows = np.empty((len(values), size), np.uint8)
    rows[:, : len(key)] = _bytes(key)
    rows[:, len(key) :] = values.astype("<i8").view(np.uint8).reshape(-1, 8)
    return Fields(rows.ravel(), size * (np.cumsum(many) - many), size * many)


def texts(
    encode: Callable[[str], bytes], known: Sequence[str], places: Column
) -> Fields:
    """Return parts with a text, each encoded once.

    Args:
        encode: Encodes one.
        known: The texts.
        places: The place of each among them.
    """
    different, own = np.unique(places, return_inverse=True)
    encoded = [encode(known[place]) for place in different.tolist()]
    sizes = np.array([*map(len, encoded)], np.int64)
    begins = np.cumsum(sizes) - sizes
    return Fields(_bytes(b"".join(encoded)), begins[own], sizes[own])


def where(has: npt.NDArray[np.bool_], fields: Fields) -> Fields:
    """The same for some messages only."""
    return fields._replace(sizes=np.where(has, fields.sizes, 0))


def sizes(parts: Sequence[Fields]) -> Column:
    """Return the bytes that each message has of all parts together."""
    total: Column = np.sum([one.sizes for one in parts], axis=0)
    return total


def joined(parts: Sequence[Fields]) -> list[bytes]:
    """Return each message: its parts, one after the other."""
    data = np.concatenate([one.data for one in parts])
    shifts = itertools.accumulate((len(one.data) for one in parts[:-1]), initial=0)
    begins = np.stack(
        [one.begins + shift for one, shift in zip(parts, shifts, strict=True)], axis=1
    ).ravel()
    sizes = np.stack([one.sizes for one in parts], axis=1).ravel()
    ends = np.cumsum(sizes)
    # Each byte's place in `data`. Half the width takes half the time, and suffices for
    # a batch of messages whose texts are cut.
    places = np.repeat((begins - ends + sizes).astype(np.int32), sizes)
    places += np.arange(len(places), dtype=np.int32)
    every = data[places].tobytes()
    bounds = [0, *ends[len(parts) - 1 :: len(parts)].tolist()]
    return [every[begin:end] for begin, end in itertools.pairwise(bounds)]


def _of_rows(rows: _Bytes, sizes: Column) -> Fields:
    num, width = rows.shape
    return Fields(rows.ravel(), np.arange(num) * width, sizes)


def _bytes(data: bytes) -> _Bytes:
    return np.frombuffer(data, np.uint8)
