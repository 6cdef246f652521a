"""Which work of a stream waited for which work of another one, through events.

A recorded event marks a point in a stream, a wait is a point in another one: what can
be seen is the work before the former, and the work after the latter.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from gradviz.analysis.executions import MAX_SHOWN
from gradviz.analysis.kernels import KernelRun
from gradviz.trace.model import Trace

#: Pairs of an event and a stream that it marks, as far as they are remembered.
_MAX_MARKED: Final = 500_000

#: Of each kind of event: the columns that are looked at.
_COLUMNS: Final = {
    "kernel_launched": ("kernel", "stream"),
    "event_recorded": ("event", "stream"),
    "stream_waited": ("event", "stream", "node", "producer"),
}


class StreamWait(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A kernel that could not begin before a kernel of another stream was done.

    Of several of one stream, which are done in order, the last is told.

    Attributes:
        stream: Which waited.
        kernel: The first one after the wait, of that stream.
        node: The node that asked for the wait, -1 if none did.
        begin_ns: When `kernel` began.
        awaited_stream: The other stream.
        awaited_kernel: The last one before the event, of that stream.
        producer: The node whose gradient is waited for, -1 if none is.
        ready_ns: When `awaited_kernel` was done.
    """

    stream: str
    kernel: int
    node: int
    begin_ns: int
    awaited_stream: str
    awaited_kernel: int
    producer: int
    ready_ns: int


def stream_waits(trace: Trace, ran: Iterable[KernelRun]) -> list[StreamWait]:
    """The waits of a trace between kernels, in the order of the waiting ones' launch.

    Of very many kernels, waits and streams only the first are looked at.

    Args:
        trace: Has the waits.
        ran: Kernels; waits for others, and of others, are left out.
    """
    known = {one.kernel: one for one in ran}
    latest: dict[int, _Awaited] = {}  # of each stream what was launched last
    # What a stream's next kernel waits for, and what an event marks, which is what its
    # stream waits for as well: of each other stream the last that was launched.
    pending: dict[int, dict[int, _Awaited]] = defaultdict(dict)
    marked: dict[int, dict[int, _Awaited]] = {}
    found = []
    num_marked = 0
    for seq, kind, (number, stream, *who) in _in_order(trace):
        if kind == "stream_waited":
            node, producer = who
            for other, one in marked.get(number, {}).items():
                if one > pending[stream].get(other, _NOTHING):
                    asked = one._replace(node=node, producer=producer)
                    pending[stream][other] = asked
        elif kind == "event_recorded":
            num_marked += 1 + len(pending[stream])
            if num_marked > _MAX_MARKED:
                break
            marked[number] = {**pending[stream]}
            if stream in latest:
                marked[number][stream] = latest[stream]
        else:
            latest[stream] = _Awaited(seq, number)
            awaited = pending.pop(stream, {})
            awaited.pop(stream, None)
            found += [
                _wait(known[number], known[one.kernel], one)
                for one in awaited.values()
                if number in known and one.kernel in known
            ]
    return found


class _Awaited(NamedTuple):
    """A kernel that is waited for, by the place of its launch among the events."""

    seq: int
    kernel: int
    node: int = -1
    producer: int = -1


_NOTHING: Final = _Awaited(-1, -1)


def _in_order(trace: Trace) -> Iterable[tuple[int, str, tuple[int, ...]]]:
    """Launches, records and waits in the order in which they happened."""
    rows = []
    for kind, names in _COLUMNS.items():
        table = trace.columns[kind].at(slice(MAX_SHOWN))
        rows += [(seq, kind, tuple(row)) for seq, *row in table.rows("seq", *names)]
    rows.sort()
    return rows


def _wait(kernel: KernelRun, awaited: KernelRun, asked: _Awaited) -> StreamWait:
    return StreamWait(
        stream=kernel.stream,
        kernel=kernel.kernel,
        node=asked.node,
        begin_ns=kernel.start_ns,
        awaited_stream=awaited.stream,
        awaited_kernel=awaited.kernel,
        producer=asked.producer,
        ready_ns=awaited.end_ns,
    )
