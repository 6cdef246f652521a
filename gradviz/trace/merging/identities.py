"""The meaning of numbers in columns: an identity, a moment, or a quantity.

Identities are unique in one process, save those of distributed programs, which are
unique in all of them and count as quantities here. Whoever puts the traces of several
into one gives them others, and may have to move moments; quantities stay.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Narrow

#: Column -> what its numbers tell apart. Negative ones stand for nothing.
IDENTITIES: Final = {
    "task": "task",
    "parent": "task",
    "node": "node",
    "pushed_by": "node",
    "producer": "node",
    "thread": "thread",
    "queue": "queue",
    "memory": "memory",
    "event": "event",
    "kernel": "kernel",
    "collective": "collective",
    "key": "key",
    "call": "call",
}

#: Columns of moments on the clock of the trace.
MOMENTS: Final = frozenset({"t_ns", "began_ns", "ended_ns"})

#: Columns of texts that name a stream or a device, of which each process has its own.
PLACES: Final = frozenset({"stream", "caller_stream", "device"})


def ends_of_identities(trace: Trace) -> dict[str, int]:
    """Return, for each kind of identity, the least number larger than all."""
    ends = dict.fromkeys(IDENTITIES.values(), 0)
    for what, number in _largest(trace):
        ends[what] = max(ends[what], number + 1)
    return ends


def _largest(trace: Trace) -> Iterator[tuple[str, int]]:
    def largest(numbers: Narrow) -> int:
        return int(numbers.max(initial=-1))

    for table in trace.columns.values():
        for name in IDENTITIES.keys() & table.keys():
            yield IDENTITIES[name], largest(table.narrow(name))
    yield "thread", max(trace.threads, default=-1)
    yield "queue", max(trace.queues, default=-1)
    nodes = np.array(list(trace.nodes), np.int64)
    yield "node", largest(nodes)
    yield "node", largest(trace.nodes.edges(nodes).consumer)
