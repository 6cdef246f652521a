"""Idle spans: a lane could not go on, or its pass ran no node yet, or no more.

Note [Waits of streams]
~~~~~~~~~~~~~~~~~~~~~~~
A recorded event marks a point in a stream, a wait is a point in another one: what can
be seen is the work before the former, and the work after the latter.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from gradviz.analysis.tables.executions import MAX_SHOWN
from gradviz.analysis.tables.kernels import KernelRun
from gradviz.analysis.tables.passes import PassPart
from gradviz.analysis.timelines.timeline_spans import Period, Span, cut_span
from gradviz.trace.format.model import Trace

#: After these a pass runs no node any more.
_LAST: Final = ("node_completed", "node_failed", "node_skipped", "capture_taken")

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
        stream: Stream that waited.
        kernel: The first one after the wait, of that stream.
        node: The node that asked for the wait, -1 if none did.
        begin_ns: Start of `kernel`.
        awaited_stream: The other stream.
        awaited_kernel: The last one before the event, of that stream.
        producer: The node whose gradient is waited for, -1 if none is.
        ready_ns: End of `awaited_kernel`.
    """

    stream: str
    kernel: int
    node: int
    begin_ns: int
    awaited_stream: str
    awaited_kernel: int
    producer: int
    ready_ns: int


def blocked_spans(
    ran: Sequence[KernelRun], waits: Iterable[StreamWait], period: Period
) -> Iterator[tuple[str, Span]]:
    """Yield spans in which a stream had a kernel and waited for another stream.

    Args:
        ran: Kernels.
        waits: Waits of these.
        period: The period of the timeline.
    """
    last: dict[int, StreamWait] = {}  # of each kernel what it waited for longest
    for wait in waits:
        if wait.kernel not in last or wait.ready_ns > last[wait.kernel].ready_ns:
            last[wait.kernel] = wait
    reached: dict[str, int] = defaultdict(int)
    for one in sorted(ran, key=lambda one: one.start_ns):
        begin = max(one.launched_ns, reached[one.stream])
        reached[one.stream] = max(reached[one.stream], one.end_ns)
        if one.kernel in last:
            wait = last[one.kernel]
            end = min(wait.ready_ns, one.start_ns)
            if _is_within(begin, end, period):
                yield (
                    one.stream,
                    cut_span("blocked", wait.awaited_stream, begin, end, period),
                )


def sleeps(
    trace: Trace, period: Period, limit: int
) -> tuple[list[tuple[int, Span]], int]:
    """Return sleeps of threads on empty queues, of no pass, and the number left out."""
    table = trace.columns["queue_waited"]
    until, since = table["t_ns"], table["t_ns"] - table["waited_ns"]
    is_meant = np.maximum(since, period.begin_ns) < np.minimum(until, period.end_ns)
    meanwhile = table.at(is_meant)
    rows = meanwhile.at(slice(limit)).rows("thread", "t_ns", "waited_ns")
    found = [
        (thread, cut_span("wait", "waiting", t_ns - waited_ns, t_ns, period))
        for thread, t_ns, waited_ns in rows
    ]
    return found, meanwhile.num_rows - len(found)


def pass_ends(
    trace: Trace, chosen: Sequence[PassPart], period: Period
) -> Iterator[tuple[int, Span]]:
    """Yield the start and the end of each part of a pass, without its nodes."""
    first = _firsts(trace, ("task_pushed", "node_started", "capture_taken"))
    last = _lasts(trace, _LAST)
    table = trace.columns["queue_waited"]
    slept = {}
    for thread in {one.thread for one in chosen}:
        own = table.at(table.narrow("thread") == thread)
        slept[thread] = (own["t_ns"] - own["waited_ns"], own["t_ns"])
    for one in chosen:
        ready = first.get(one.task, one.end_ns)
        if ready is not None and _is_within(one.begin_ns, ready, period):
            span = cut_span("setup", "set-up", one.begin_ns, ready, period)
            yield one.thread, replace(span, task=one.whole)
        if one.end_ns is None or one.status != "completed" or one.task not in last:
            continue
        begin = last[one.task]
        # A thread that fell asleep before the end may have heard of it later.
        fell_ns, woke_ns = slept[one.thread]
        before = int(np.searchsorted(fell_ns, one.end_ns)) - 1
        if before >= 0:
            begin = max(begin, int(woke_ns[before]))
        if _is_within(begin, one.end_ns, period):
            span = cut_span("finish", "end", begin, one.end_ns, period)
            yield one.thread, replace(span, task=one.whole)


def _is_within(begin_ns: int, end_ns: int, period: Period) -> bool:
    """Return whether a part of it is in the timeline."""
    return max(begin_ns, period.begin_ns) < min(end_ns, period.end_ns)


def _firsts(trace: Trace, kinds: Sequence[str]) -> dict[int, int]:
    """Of each pass when the first event of some kinds happened."""
    found: dict[int, int] = {}
    for kind in kinds:
        table = trace.columns[kind]
        tasks, place = np.unique(table.narrow("task"), return_index=True)
        t_ns = table["t_ns"][place]
        for task, ns in zip(tasks.tolist(), t_ns.tolist(), strict=True):
            found[task] = min(found.get(task, ns), ns)
    return found


def _lasts(trace: Trace, kinds: Sequence[str]) -> dict[int, int]:
    """The same of the last."""
    found: dict[int, int] = {}
    for kind in kinds:
        table = trace.columns[kind]
        tasks, place = np.unique(table.narrow("task")[::-1], return_index=True)
        t_ns = table["t_ns"][::-1][place]
        for task, ns in zip(tasks.tolist(), t_ns.tolist(), strict=True):
            found[task] = max(found.get(task, ns), ns)
    return found


def stream_waits(trace: Trace, ran: Iterable[KernelRun]) -> list[StreamWait]:
    """The waits of a trace between kernels, in the order of the waiting ones' launch.

    Of very many kernels, waits and streams only the first are looked at.

    Args:
        trace: Has the waits.
        ran: Kernels; waits for others, and of others, are left out.
    """
    known = {one.kernel: one for one in ran}
    latest: dict[int, _Awaited] = {}  # of each stream what was launched last
    # The kernels that a stream's next one waits for, and those that an event marks, for
    # which its stream waits as well: of each other stream the last one launched.
    pending: dict[int, dict[int, _Awaited]] = defaultdict(dict)
    marked: dict[int, dict[int, _Awaited]] = {}
    found = []
    num_marked = 0
    for seq, kind, (number, stream, *who) in _stream_events(trace):
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


def _stream_events(trace: Trace) -> Iterable[tuple[int, str, tuple[int, ...]]]:
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
