"""Placement of the traces of several processes in one: names, numbers and times."""

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from gradviz.errors import UserError
from gradviz.trace.format.model import LOST_TEXT, Trace
from gradviz.trace.merging.common_clock import placements
from gradviz.trace.merging.compared_clocks import ClockMap, workers
from gradviz.trace.merging.identities import IDENTITIES, ends_of_identities
from gradviz.trace.reading.worker_threads import OF, worker_label

#: Numbers are signed and have 64 bits, those of threads 32.
_MAX_NUMBER: Final = 2**63 - 1
_MAX_THREAD: Final = 2**31 - 1


class Placed(NamedTuple):
    """A trace, and its numbers and names in the whole.

    Attributes:
        trace: The trace.
        label: Prefix of the names of its threads, queues and streams; empty if it is
            alone.
        first: Number from which its identities are counted, by what they are of.
        clock: Map from its times to the clock of the whole.
        doubt: Reason that its times may be wrong beside those of others, if they may.
        problems: Losses of the trace, and that doubt.
    """

    trace: Trace
    label: str
    first: dict[str, int]
    clock: ClockMap
    doubt: str
    problems: tuple[str, ...]

    def named(self, name: str) -> str:
        """Return the merged name of a thread, a queue or a stream."""
        if not self.label or not name or name.startswith(f"{self.label}{OF}"):
            return name
        return f"{self.label}{OF}{name}"

    def device(self, name: str) -> str:
        """Return the merged name of a device: one per process, but a common CPU."""
        return name if name in {"cpu", LOST_TEXT} else self.named(name)

    def numbered(self, what: str, number: int) -> int:
        """An identity in the whole; negative ones stand for nothing."""
        return number + self.first[what] if number >= 0 else number


def place(traces: Sequence[Trace]) -> list[Placed]:
    """Return the placements of traces in one, in order of start.

    Raises:
        UserError: One is given twice, two are of the same worker or of different
            runs, or one has numbers so large that no others fit beside them.
    """
    traces = sorted(traces, key=_began)
    for one, other in itertools.pairwise(traces):
        if one.header == other.header:
            raise UserError(
                f"{one.path} and {other.path} are the same recording: name it once"
            )
    _check_workers(traces)
    first = dict.fromkeys(IDENTITIES.values(), 0)
    placed = []
    where = zip(traces, _labels(traces), placements(traces), strict=True)
    for trace, label, (clock, doubt) in where:
        problems = (*trace.losses.in_words(), *([doubt] if doubt else []))
        told = tuple(f"{label}: {one}" if label else one for one in problems)
        placed.append(Placed(trace, label, first, clock, doubt, told))
        ends = ends_of_identities(trace)
        first = {what: number + ends[what] for what, number in first.items()}
        is_full = max(first.values()) > _MAX_NUMBER or first["thread"] > _MAX_THREAD
        if is_full and len(traces) > 1:
            raise UserError(
                f"{trace.path} has numbers so large that no others fit beside them"
            )
    return placed


def _check_workers(traces: Sequence[Trace]) -> None:
    """Refuse two traces of one worker, and workers of two runs."""
    of_worker: dict[int, Trace] = {}
    for trace in traces:
        ranks = workers(trace)
        if len(ranks) != 1:
            continue  # threads of one process, which may be a run by itself
        other = of_worker.setdefault(min(ranks), trace)
        if other is not trace:
            raise UserError(
                f"{other.path} and {trace.path} are both of worker {min(ranks)}: "
                f"merge one trace of each worker of one run"
            )
    for one, other in itertools.pairwise(
        trace for trace in of_worker.values() if trace.header.run_id
    ):
        if one.header.run_id != other.header.run_id:
            raise UserError(
                f"{one.path} is of run {one.header.run_id:.12}, {other.path} of run "
                f"{other.header.run_id:.12}: merge the traces of one run"
            )
    for one, other in itertools.pairwise(of_worker.values()):
        sizes, others = _world_sizes(one), _world_sizes(other)
        if sizes.isdisjoint(others):
            raise UserError(
                f"{one.path} is of a run of {min(sizes)} workers, {other.path} of one "
                f"of {min(others)}: merge the traces of one run"
            )


def _world_sizes(trace: Trace) -> set[int]:
    return {*trace.columns["worker_began"]["world_size"].tolist()}


def _began(trace: Trace) -> tuple[int, str, int, int]:
    header = trace.header
    return header.clock.wall_ns, header.host, header.pid, header.recording


def _labels(traces: Sequence[Trace]) -> list[str]:
    """Return labels for the processes of traces: ranks, ids, or else their order.

    Merged traces have labels already.
    """
    every = [process for trace in traces for process in trace.processes]
    if len(traces) == 1:
        return [""]
    for name in ("rank", "pid"):
        numbers = [getattr(process, name) for process in every]
        if min(numbers) >= 0 and len({*numbers}) == len(numbers):
            return [
                _label(trace, name) if len(trace.processes) == 1 else ""
                for trace in traces
            ]
    return [f"process {number}" for number in range(1, len(traces) + 1)]


def _label(trace: Trace, name: str) -> str:
    """A worker is called as such, for sentences and other views call it so."""
    number = getattr(trace.processes[0], name)
    is_worker = name == "rank" and workers(trace) == {number}
    return worker_label(number) if is_worker else f"{name} {number}"
