"""Waits of streams that the program asked for and that nothing needed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from gradviz.analysis.memory.finding import CostlyFinding
from gradviz.analysis.memory.kept_graphs import line_of
from gradviz.analysis.races.race_reports import Findings
from gradviz.analysis.tables.kernels import KernelRun, kernels
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened

#: Maximum number of waits examined: each needs a look at all accesses to memory.
MAX_WAITS: Final = 200

_MAX_STREAM: Final = 100


def needless_wait(trace: Trace, streams: Findings) -> Iterator[CostlyFinding]:
    """Yield waits for work that was already ordered, and waits without an effect.

    Of the latter: nothing that was launched on another stream after the wait, and
    nothing that the host did, used memory that the awaited stream had used before it.
    A program may have had a reason that its memory does not show.

    Args:
        trace: The trace.
        streams: Findings about the order of its streams.
    """
    told = set()
    for wait, times in streams.needless_waits:
        if wait.task < 0:
            told.add((wait.stream, wait.producer, wait.location))
            yield CostlyFinding(
                rule="needless_wait",
                certainty="certain",
                location=wait.location,
                times=times,
                detail=f"{wait.stream} for {wait.producer}",
            )
    for one in _without_effect(trace):
        waiting, _, awaited = one.detail.partition(" for ")
        if (waiting, awaited, one.location) not in told:
            yield one


def _without_effect(trace: Trace) -> Iterator[CostlyFinding]:
    columns = trace.columns
    waits = columns["stream_waited"]
    waits = waits.at((waits.narrow("task") < 0) & (waits.narrow("node") < 0))
    # Where a kernel was launched the op has asked for the wait, such as a copy.
    kernels_at = columns["kernel_launched"].narrow("location")
    waits = waits.at(~np.isin(waits.narrow("location"), kernels_at))
    waits = waits.at(waits.narrow("location") >= 0).at(slice(MAX_WAITS))
    marks = columns["event_recorded"].rows("event", "stream", "seq")
    marked = {event: (stream, seq) for event, stream, seq in marks}
    accesses, host = columns["array_accessed"], columns["host_accessed"]
    launched = columns["kernel_launched"].rows("kernel", "stream")
    stream_of = {kernel: stream for kernel, stream in launched}  # noqa: C416 - typed so
    stream = np.array(
        [stream_of.get(one, -1) for one in accesses["kernel"].tolist()], np.int64
    )
    groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    needed = set()
    rows = waits.rows("seq", "t_ns", "stream", "event", "location")
    for seq, t_ns, waiting, event, line in rows:
        if event not in marked:
            continue
        awaited, until = marked[event]
        used = accesses["memory"][(stream == awaited) & (accesses["seq"] < until)]
        later = accesses["memory"][(stream != awaited) & (accesses["seq"] > seq)]
        by_host = host["memory"][host["seq"] > seq]
        group = waiting, awaited, line
        groups[group].append(t_ns)
        if np.isin(used, np.concatenate((later, by_host))).any():
            needed.add(group)
    by_stream: dict[str, list[KernelRun]] = defaultdict(list)
    for kernel in kernels(trace):
        by_stream[kernel.stream].append(kernel)
    for group, moments in groups.items():
        waiting, awaited, line = group
        if group in needed or not line_of(trace, line):
            continue
        names = [
            shortened(trace.strings[one], _MAX_STREAM) for one in (waiting, awaited)
        ]
        yield CostlyFinding(
            rule="needless_wait",
            certainty="likely",
            location=line_of(trace, line),
            cost_ns=sum(_stood_still(by_stream, names[0], t_ns) for t_ns in moments),
            times=len(moments),
            detail=" for ".join(names),
        )


def _stood_still(
    by_stream: Mapping[str, Sequence[KernelRun]], stream: str, t_ns: int
) -> int:
    """Return the maximum time that the first kernel after a wait lost to it."""
    mine = by_stream.get(stream, ())
    after = [one for one in mine if one.launched_ns > t_ns]
    if not after:
        return 0
    first = min(after, key=lambda one: one.launched_ns)
    done = max((one.end_ns for one in mine if one.launched_ns < t_ns), default=0)
    return max(first.start_ns - max(done, first.launched_ns), 0)
