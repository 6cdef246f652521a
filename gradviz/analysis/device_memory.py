"""What allocators of devices gave to arrays, over time."""

from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.curve import Points, thinned
from gradviz.analysis.executions import MAX_TEXT
from gradviz.analysis.holdings import Holdings, allocations
from gradviz.analysis.levels import EventRange, levels_of
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import Column

#: So many devices are told.
MAX_DEVICES: Final = 64


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the allocator of a device gave to arrays, as far as it was recorded.

    Attributes:
        device: Such as ``sim:0``.
        begin_bytes: When the first pass began.
        peak_bytes: The most.
        peak_ns: When that was first, after the first pass began.
        end_bytes: When the last pass ended.
        curve: Bytes over time.
    """

    device: str
    begin_bytes: int
    peak_bytes: int
    peak_ns: int
    end_bytes: int
    curve: Points


def device_memory(
    trace: Trace, t_ns: Column, window: EventRange
) -> tuple[DeviceMemory, ...]:
    """What allocators gave, of each device."""
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
