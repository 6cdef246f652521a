"""Kernels of a period, and the waits for them.

A kernel waits for those that events made its stream wait for; a thread that asks for
the end of a stream, an event or a device waits for the last kernels before it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.trace.format.table import Column, Table

#: Kinds of events by which a thread waits for a device.
SYNCHRONIZED: Final = (
    "event_synchronized",
    "stream_synchronized",
    "device_synchronized",
)

#: Kernels, streams and events that are looked at: what is more is left out.
_MAX_STEPS: Final = 500_000

_COLUMNS: Final = {
    "kernel_launched": ("kernel", "stream"),
    "event_recorded": ("event", "stream"),
    "stream_waited": ("event", "stream"),
    "event_synchronized": ("event", "event"),
    "stream_synchronized": ("stream", "stream"),
    "device_synchronized": ("device", "device"),
}


class KernelCauses(NamedTuple):
    """Kernels of which it is known when they ran, in the order of their launch.

    Attributes:
        launch: The `seq` of each launch.
        stream: The stream of each, a place in the trace's strings.
        began_ns: Start of each.
        ended_ns: End of each.
        pairs: Kernels, and others that had to wait for them, by their places here.
        waits: Kernels by their places here, and the `seq` of a thread's wait for them.
    """

    launch: Column
    stream: Column
    began_ns: Column
    ended_ns: Column
    pairs: Sequence[tuple[int, int]]
    waits: Sequence[tuple[int, int]]


def kernel_causes(tables: Mapping[str, Table], strings: Sequence[str]) -> KernelCauses:
    """Return the kernels of these events, and the waits for them."""
    launched = tables["kernel_launched"].at(slice(_MAX_STEPS))
    ran = tables["kernel_ran"].rows("kernel", "began_ns", "ended_ns")
    times = {kernel: (began, ended) for kernel, began, ended in ran if began < ended}
    first: dict[int, int] = {}  # a damaged trace may launch a kernel again
    for at, kernel in enumerate(launched["kernel"].tolist()):
        if kernel in times:
            first.setdefault(kernel, at)
    launched = launched.at(np.array([*first.values()], np.int64))
    place = {kernel: at for at, kernel in enumerate(first)}
    both = np.array([times[kernel] for kernel in place], np.int64).reshape(-1, 2)
    pairs: list[tuple[int, int]] = []
    waits: list[tuple[int, int]] = []
    last: dict[int, int] = {}  # of each stream the last kernel
    # Of each stream, and of each event: streams with the last kernel that it waits for.
    pending: dict[int, dict[int, int]] = defaultdict(dict)
    marked: dict[int, dict[int, int]] = {}
    for num_steps, (seq, kind, number, stream) in enumerate(_in_order(tables, place)):
        if num_steps + len(pairs) + len(waits) > _MAX_STEPS:
            break
        match kind:
            case "kernel_launched":
                pairs += [
                    (one, place[number]) for one in pending.pop(stream, {}).values()
                ]
                last[stream] = place[number]
            case "event_recorded":
                marked[number] = _awaited(stream, last, pending)
            case "stream_waited":
                pending[stream].update(marked.get(number, {}))
            case "event_synchronized":
                waits += [(one, seq) for one in marked.get(number, {}).values()]
            case _:
                own = strings[stream]
                waits += [
                    (one, seq)
                    for other in list(last)
                    if strings[other] == own or strings[other].startswith(f"{own}/")
                    for one in _awaited(other, last, pending).values()
                ]
    return KernelCauses(
        launch=launched["seq"],
        stream=launched["stream"],
        began_ns=both[:, 0],
        ended_ns=both[:, 1],
        pairs=pairs,
        waits=waits,
    )


def _awaited(
    stream: int, last: Mapping[int, int], pending: Mapping[int, Mapping[int, int]]
) -> dict[int, int]:
    """Return the work that completes all work of a stream so far."""
    awaited = dict(pending.get(stream, {}))
    if stream in last:
        awaited[stream] = last[stream]
    return awaited


def _in_order(
    tables: Mapping[str, Table], known: Mapping[int, int]
) -> Iterator[tuple[int, str, int, int]]:
    rows = []
    for kind, names in _COLUMNS.items():
        table = tables[kind].at(slice(_MAX_STEPS))
        rows += [(seq, kind, one, two) for seq, one, two in table.rows("seq", *names)]
    rows.sort()
    for seq, kind, one, two in rows:
        if kind != "kernel_launched" or one in known:
            yield seq, kind, one, two
