"""Time in which a lane could not go on, or its pass ran no node yet, or no more."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from gradviz.analysis.kernels import KernelRun
from gradviz.analysis.passes import Pass
from gradviz.analysis.stream_waits import StreamWait
from gradviz.analysis.timeline_spans import Period, Span, cut_span
from gradviz.trace.model import Trace

#: After these a pass runs no node any more.
_LAST: Final = ("node_completed", "node_failed", "node_skipped", "capture_taken")


def blocked_spans(
    ran: Sequence[KernelRun], waits: Iterable[StreamWait], period: Period
) -> Iterator[tuple[str, Span]]:
    """When a stream had a kernel, was done with all before, and waited for another.

    Args:
        ran: Kernels.
        waits: Of these.
        period: That of the timeline.
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
    """When threads slept on empty queues, of no pass, and how many are left out."""
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
    trace: Trace, chosen: Sequence[Pass], period: Period
) -> Iterator[tuple[int, Span]]:
    """The begin and the end of each pass, in which it ran no node."""
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
            yield one.thread, replace(span, task=one.task)
        if one.end_ns is None or one.status != "completed" or one.task not in last:
            continue
        begin = last[one.task]
        # Who fell asleep before the end may have been told of it later.
        fell_ns, woke_ns = slept[one.thread]
        before = int(np.searchsorted(fell_ns, one.end_ns)) - 1
        if before >= 0:
            begin = max(begin, int(woke_ns[before]))
        if _is_within(begin, one.end_ns, period):
            span = cut_span("finish", "end", begin, one.end_ns, period)
            yield one.thread, replace(span, task=one.task)


def _is_within(begin_ns: int, end_ns: int, period: Period) -> bool:
    """Whether any of it is in the timeline."""
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
