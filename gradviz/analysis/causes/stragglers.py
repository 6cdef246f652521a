"""Exposed collectives, the ranks that others waited for, and the nodes to blame.

A collective is exposed while no node runs in its process: only that time makes a pass
longer. It cannot end before the last rank has launched it. That rank is the straggler,
and to blame is the node, up to the launch, that took most longer than the same node did
on the rank that launched first; or whatever came before the pass, if that is more.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.tables.collectives import (
    BucketedGradient,
    Collective,
    CollectiveFacts,
    CollectivePart,
    collectives,
    outermost_pass,
)
from gradviz.analysis.tables.executions import MAX_TEXT, NodeNumbers, execution_columns
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import Column

SCHEMA: Final = "gradviz.collectives"
VERSION: Final = 1


class Straggler(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that launched a collective last, or began it if launches are unknown.

    Attributes:
        rank: The rank; None if unknown.
        late_ns: Time from the first one's launch to its own.
        cause: ``node`` if one of its nodes took longer than on the first rank,
            ``begin`` if its pass began later; None if neither is known.
        node: That node.
        index: Its place in the execution order of the pass; None if unknown.
        name: Its name.
        longer_ns: Time by which that took longer, or the pass began later.
    """

    rank: int | None
    late_ns: int
    cause: Literal["node", "begin"] | None = None
    node: int | None = None
    index: int | None = None
    name: str | None = None
    longer_ns: int | None = None


class RankRow(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's part of a collective, with times after the first event.

    Attributes:
        rank: The rank; None if unknown.
        task: The pass that launched it; None if unknown.
        node: The node that launched it; None if unknown.
        index: Its place in the execution order of the pass; None if unknown.
        name: The name of that.
        module: The module that made it.
        launched_ns: Time at which that accumulated the gradient which filled the
            bucket; None if unknown.
        began_ns: Time of its start.
        ended_ns: Time of its end; None if the trace lacks that.
        exposed_ns: Part of its duration in which no node ran; None if unknown.
        gradients: Gradients that filled its bucket, in that order.
    """

    rank: int | None
    task: int | None
    node: int | None
    index: int | None
    name: str | None
    module: str | None
    launched_ns: int | None
    began_ns: int
    ended_ns: int | None
    exposed_ns: int | None
    gradients: tuple[BucketedGradient, ...]


class CollectiveRow(CollectiveFacts, frozen=True, kw_only=True):
    """A collective with each rank's part.

    Attributes:
        ranks: Parts of the ranks, by their numbers.
        straggler: The rank that launched last; None if the trace has only one.
    """

    ranks: tuple[RankRow, ...]
    straggler: Straggler | None


class RankTotal(msgspec.Struct, frozen=True, kw_only=True):
    """All collectives of one rank.

    Attributes:
        rank: The rank; None if unknown.
        num_collectives: Number of those that ended.
        took_ns: Time that at least one of them ran.
        exposed_ns: Part of that time in which no node ran; None if unknown.
        num_last: Number of those that it was the last to launch,
        late_ns: and its delays after the first rank, together.
    """

    rank: int | None
    num_collectives: int
    took_ns: int
    exposed_ns: int | None
    num_last: int
    late_ns: int


class CollectiveUse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``gradviz show collectives``."""

    collectives: tuple[CollectiveRow, ...]
    ranks: tuple[RankTotal, ...]


def find_collectives(trace: Trace) -> CollectiveUse:
    """Return the collectives of a trace, their costs, and the stragglers."""
    found = collectives(trace)
    if not found:
        return CollectiveUse(collectives=(), ranks=())
    busy = _BusyTimes(trace)
    runs = _PassRuns(trace)
    numbers = NodeNumbers(trace)
    origin_ns = _first_ns(trace)
    rows = [
        CollectiveRow(
            **{name: getattr(one, name) for name in CollectiveFacts.__struct_fields__},
            ranks=tuple(
                _rank_row(trace, busy, numbers, part, origin_ns) for part in one.parts
            ),
            straggler=_straggler(trace, runs, numbers, one),
        )
        for one in found
    ]
    return CollectiveUse(
        collectives=tuple(rows), ranks=tuple(_totals(found, rows, busy))
    )


def document_of(use: CollectiveUse) -> dict[str, Any]:
    """Return the output of ``gradviz show collectives --json``."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(use)}


def _rank_row(
    trace: Trace,
    busy: "_BusyTimes",
    numbers: NodeNumbers,
    part: CollectivePart,
    origin_ns: int,
) -> RankRow:
    node = None if part.node is None else trace.nodes.get(part.node)
    exposed_ns = None
    if part.ended_ns is not None:
        exposed_ns = busy.idle_ns(part.process, [(part.began_ns, part.ended_ns)])
    return RankRow(
        rank=part.rank,
        task=part.task,
        node=part.node,
        index=_index(numbers, part.task, part.node),
        name=None if node is None else shortened(node.name, MAX_TEXT),
        module=shortened(node.module, MAX_TEXT) if node and node.module else None,
        launched_ns=None if part.launched_ns is None else part.launched_ns - origin_ns,
        began_ns=part.began_ns - origin_ns,
        ended_ns=None if part.ended_ns is None else part.ended_ns - origin_ns,
        exposed_ns=exposed_ns,
        gradients=tuple(
            msgspec.structs.replace(one, ready_ns=one.ready_ns - origin_ns)
            for one in part.gradients
        ),
    )


def _index(numbers: NodeNumbers, task: int | None, node: int | None) -> int | None:
    return None if task is None or node is None else numbers.of(task, node)


def _totals(
    found: Sequence[Collective], rows: Sequence[CollectiveRow], busy: "_BusyTimes"
) -> list[RankTotal]:
    parts: dict[tuple[int, int], list[CollectivePart]] = {}
    for one in found:
        for part in one.parts:
            rank = -1 if part.rank is None else part.rank
            parts.setdefault((rank, part.process), []).append(part)
    late: dict[int | None, list[int]] = {}
    for row in rows:
        if row.straggler is not None and row.straggler.late_ns:
            late.setdefault(row.straggler.rank, []).append(row.straggler.late_ns)
    totals = []
    for (rank, process), own in sorted(parts.items()):
        spans = [
            (one.began_ns, one.ended_ns) for one in own if one.ended_ns is not None
        ]
        number = None if rank < 0 else rank
        totals.append(
            RankTotal(
                rank=number,
                num_collectives=len(spans),
                took_ns=sum(end - begin for begin, end in _united(spans)),
                exposed_ns=busy.idle_ns(process, spans),
                num_last=len(late.get(number, ())),
                late_ns=sum(late.get(number, ())),
            )
        )
    return totals


# --- busy and idle --------------------------------------------------------------------


class _BusyTimes:
    """Times at which at least one node ran, by process."""

    def __init__(self, trace: Trace) -> None:
        self._busy: dict[int, list[tuple[int, int]]] = {}
        runs = execution_columns(trace)
        for place, process in enumerate(trace.processes):
            is_own = np.isin(runs.thread, list(process.threads)) & runs.has_ended
            begins, ends = runs.start_ns[is_own].tolist(), runs.end_ns[is_own].tolist()
            self._busy[place] = _united(zip(begins, ends, strict=True))

    def idle_ns(self, process: int, spans: Sequence[tuple[int, int]]) -> int | None:
        """Return for how long of some spans no node ran; None if no node is known."""
        busy = self._busy.get(process)
        if not busy:
            return None
        begins, ends = np.array(busy, np.int64).T
        lengths = np.concatenate(([0], np.cumsum(ends - begins)))
        idle_ns = 0
        for begin, end in _united(spans):
            before, until = (
                _busy_before(moment, begins, ends, lengths) for moment in (begin, end)
            )
            idle_ns += end - begin - (until - before)
        return idle_ns


def _busy_before(moment: int, begins: Column, ends: Column, lengths: Column) -> int:
    """Return for how long nodes had run before a moment."""
    place = int(np.searchsorted(begins, moment, side="right"))
    over = max(int(ends[place - 1]) - moment, 0) if place else 0
    return int(lengths[place]) - over


def _united(spans: Any) -> list[tuple[int, int]]:  # noqa: ANN401 - of pairs
    """Return spans of time in order, each moment in one at most."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


# --- who was late, and why ------------------------------------------------------------


class _Steps(NamedTuple):
    """The nodes of a pass, in the order they began, passes inside of it included.

    Attributes:
        begun_ns: Start of the pass.
        nodes: The nodes.
        took_ns: Time to the end of each from the end of the node before, or from the
            start of the pass.
    """

    begun_ns: int
    nodes: list[int]
    took_ns: list[int]


class _PassRuns:
    """The nodes of passes, with the passes inside of each."""

    def __init__(self, trace: Trace) -> None:
        begun = trace.columns["task_begun"]
        tasks = begun["task"].tolist()
        self._parent = dict(zip(tasks, begun["parent"].tolist(), strict=True))
        self._begun_ns = dict(zip(tasks, begun["t_ns"].tolist(), strict=True))
        self._runs = execution_columns(trace)
        self._outermost = {
            task: outermost_pass(task, self._parent) for task in self._parent
        }
        outer = [self._outermost.get(task, -1) for task in self._runs.task.tolist()]
        self._outer = np.array(outer, np.int64)
        self._found: dict[int, _Steps | None] = {}

    def of(self, task: int | None) -> _Steps | None:
        """Return what the outermost pass around a pass did; None if unknown."""
        outermost = -1 if task is None else self._outermost.get(task, -1)
        if outermost not in self._found:
            self._found[outermost] = self._steps(outermost)
        return self._found[outermost]

    def _steps(self, outermost: int) -> _Steps | None:
        if outermost not in self._begun_ns:
            return None
        own = self._runs.at(np.flatnonzero(self._outer == outermost))
        begun_ns = self._begun_ns[outermost]
        ends = np.maximum.accumulate(np.concatenate(([begun_ns], own.end_ns)))
        return _Steps(begun_ns, own.node.tolist(), np.diff(ends).tolist())


def _straggler(
    trace: Trace, runs: _PassRuns, numbers: NodeNumbers, one: Collective
) -> Straggler | None:
    if len(one.parts) < 2:
        return None
    # A thread of the backend begins a collective, and may wake up late for that: the
    # launch is the rank's own doing.
    times = [part.launched_ns for part in one.parts if part.launched_ns is not None]
    if len(times) < len(one.parts):
        times = [part.began_ns for part in one.parts]
    late_ns = max(times) - min(times)
    first, last = (one.parts[times.index(limit(times))] for limit in (min, max))
    late = Straggler(rank=last.rank, late_ns=late_ns)
    slow, quick = runs.of(last.task), runs.of(first.task)
    if not late.late_ns or slow is None or quick is None or last.node not in slow.nodes:
        return late
    begin_ns = slow.begun_ns - quick.begun_ns
    until = slow.nodes.index(last.node) + 1
    longer = _longer(trace, slow, quick, until)
    most_ns = max(longer, default=0)
    if begin_ns > most_ns:
        return msgspec.structs.replace(late, cause="begin", longer_ns=begin_ns)
    if most_ns <= 0:
        return late
    node = slow.nodes[longer.index(most_ns)]
    return msgspec.structs.replace(
        late,
        cause="node",
        node=node,
        index=_index(numbers, last.task, node),
        name=shortened(trace.nodes[node].name, MAX_TEXT),
        longer_ns=most_ns,
    )


def _longer(trace: Trace, slow: _Steps, quick: _Steps, until: int) -> list[int]:
    """Return how much longer each node took, as far as both passes ran the same."""
    found = []
    for node, other, took, usual in zip(
        slow.nodes[:until], quick.nodes, slow.took_ns, quick.took_ns, strict=False
    ):
        if _name(trace, node) != _name(trace, other):
            break
        found.append(took - usual)
    return found


def _name(trace: Trace, node: int) -> str:
    known = trace.nodes.get(node)
    return "" if known is None else known.name


def _first_ns(trace: Trace) -> int:
    """Return when the first event of a trace happened; 0 if there is none."""
    firsts = [
        int(table["t_ns"].min()) for table in trace.columns.values() if table.num_rows
    ]
    return min(firsts, default=0)
