"""Levels: how much was held after each event that changed it, and on each device."""

from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.memory.allocations import HoldingKind, Holdings, allocations
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.analysis.tables.spans import NEVER, Points, thinned
from gradviz.analysis.tables.window import EventRange
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column

#: Maximum number of devices told.
MAX_DEVICES: Final = 64


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory that the allocator of a device gave to arrays, as far as it was recorded.

    Attributes:
        device: Such as ``sim:0``.
        begin_bytes: Bytes at the start of the first pass.
        peak_bytes: The most.
        peak_ns: First time of that peak, from the start of the first pass.
        end_bytes: Bytes at the end of the last pass.
        curve: Bytes over time.
    """

    device: str
    begin_bytes: int
    peak_bytes: int
    peak_ns: int
    end_bytes: int
    curve: Points


def levels_of(held: Holdings, window: EventRange) -> tuple[Column, Column]:
    """The events of a window at which something changed, and its first and last one.

    And the bytes held right after each, a column for each `HoldingKind`.
    """
    is_there = (held.begin <= window.last) & (held.end > window.first)
    held = held.at(np.flatnonzero(is_there))
    ends = held.end != NEVER
    seqs = np.concatenate((held.begin, held.end[ends], window))
    order = np.argsort(seqs, kind="stable")
    seqs = seqs[order]
    steps = np.concatenate((held.size_bytes, -held.size_bytes[ends], (0, 0)))[order]
    kinds = np.concatenate((held.kind, held.kind[ends], (0, 0)))[order]
    is_last = np.append(seqs[1:] != seqs[:-1], True)
    is_meant = is_last & (seqs >= window.first) & (seqs <= window.last)
    seqs = seqs[is_meant]
    levels = np.empty((len(seqs), len(HoldingKind)), np.int64)
    # One kind after the other: all at once would take five times the memory.
    for kind in HoldingKind:
        levels[:, kind] = np.cumsum(np.where(kinds == kind, steps, 0))[is_meant]
    return seqs, levels


def device_memory(
    trace: Trace, t_ns: Column, window: EventRange
) -> tuple[DeviceMemory, ...]:
    """Return the memory that allocators gave, of each device."""
    given = allocations(trace)
    streams, place = np.unique(given.rows["stream"], return_inverse=True)
    names = [trace.strings[one].partition("/")[0] for one in streams.tolist()]
    number = {name: n for n, name in enumerate(sorted(set(names)))}
    of_stream = np.array([number[name] for name in names], np.int64)
    size_bytes = given.rows["size_bytes"]
    origin = t_ns[window.first]
    found = []
    for name in list(number)[:MAX_DEVICES]:
        mine = np.flatnonzero(of_stream[place] == number[name])
        zeros = np.zeros(len(mine), np.int64)
        held = Holdings(
            zeros, given.begin[mine], given.end[mine], size_bytes[mine], zeros, zeros
        )
        seqs, levels = levels_of(held, window)
        heights, after = levels[:, 0], t_ns[seqs] - origin
        highest = int(heights.argmax())
        found.append(
            DeviceMemory(
                device=shortened(name, MAX_TEXT),
                begin_bytes=int(heights[0]),
                peak_bytes=int(heights[highest]),
                peak_ns=int(after[highest]),
                end_bytes=int(heights[-1]),
                curve=thinned(after, heights),
            )
        )
    return tuple(found)
