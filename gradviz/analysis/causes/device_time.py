"""The time of devices: kernels, waits between streams, nothing to do."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.causes.kernel_causes import KernelCauses, kernel_causes
from gradviz.analysis.tables.executions import MAX_TEXT
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column, different

MAX_DEVICES: Final = 250

_READ: Final = (
    *("kernel_launched", "kernel_ran", "event_recorded", "stream_waited"),
    *("event_synchronized", "stream_synchronized", "device_synchronized"),
)


class DeviceTime(msgspec.Struct, frozen=True, kw_only=True):
    """One device in some time, of which its parts are all.

    Attributes:
        device: Such as ``sim:0``.
        num_kernels: Number of kernels that it ran then.
        busy_ns: At least one of its streams ran a kernel.
        stream_ns: None did, and what had been launched waited for another stream.
        starting_ns: None did, and what had been launched waited for nothing else.
        idle_ns: There was nothing for it to do.
    """

    device: str
    num_kernels: int
    busy_ns: int
    stream_ns: int
    starting_ns: int
    idle_ns: int


def device_times(trace: Trace, begin_ns: int, end_ns: int) -> tuple[DeviceTime, ...]:
    """Return the times of devices that ran a kernel within a window, by name."""
    kernels = kernel_causes(
        {kind: trace.columns[kind] for kind in _READ}, trace.strings
    )
    launch = trace.columns["kernel_launched"]
    launched_ns = launch["t_ns"][np.searchsorted(launch["seq"], kernels.launch)]
    awaited_ns = _awaited(kernels)
    devices = np.array([_device(trace, one) for one in kernels.stream.tolist()], str)
    found = []
    for device in different(devices)[:MAX_DEVICES].tolist():
        own = np.flatnonzero(devices == device)
        began, ended = kernels.began_ns[own], kernels.ended_ns[own]
        launched = np.minimum(launched_ns[own], began)
        waited = np.clip(awaited_ns[own], launched, began)
        totals = [
            _covered(spans, begin_ns, end_ns)
            for spans in (
                [(began, ended)],
                [(began, ended), (launched, waited)],
                [(launched, ended)],
            )
        ]
        has_run = np.count_nonzero((began < end_ns) & (ended > begin_ns))
        if totals[-1]:
            found.append(
                DeviceTime(
                    device=device,
                    num_kernels=int(has_run),
                    busy_ns=totals[0],
                    stream_ns=totals[1] - totals[0],
                    starting_ns=totals[2] - totals[1],
                    idle_ns=end_ns - begin_ns - totals[2],
                )
            )
    return tuple(found)


def _device(trace: Trace, stream: int) -> str:
    return shortened(trace.strings[stream].rpartition("/")[0], MAX_TEXT)


def _awaited(kernels: KernelCauses) -> Column:
    """Return when each kernel's dependencies on other streams were all done."""
    awaited_ns = np.full(len(kernels.launch), np.iinfo(np.int64).min)
    pairs = np.array(kernels.pairs, np.int64).reshape(-1, 2)
    np.maximum.at(awaited_ns, pairs[:, 1], kernels.ended_ns[pairs[:, 0]])
    return awaited_ns


def _covered(some: Sequence[tuple[Column, Column]], begin_ns: int, end_ns: int) -> int:
    """Return the length of the union of some spans, within a window."""
    begin = np.clip(np.concatenate([one for one, _ in some]), begin_ns, end_ns)
    end = np.clip(np.concatenate([one for _, one in some]), begin_ns, end_ns)
    if not len(begin):
        return 0
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], end[order]
    reached = np.maximum.accumulate(np.concatenate(([begin_ns], end[:-1])))
    return int(np.maximum(end - np.maximum(begin, reached), 0).sum())
