"""Memory during backward passes: how much, for what, the peak, and who held it then.

What the figures mean is told in Note [What a trace knows of memory] of `holdings`.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.curve import Points, telling, thinned
from gradviz.analysis.device_memory import DeviceMemory, device_memory
from gradviz.analysis.executions import definition
from gradviz.analysis.holdings import HoldingKind, Holdings, holdings
from gradviz.analysis.levels import EventRange, levels_of, window_of
from gradviz.analysis.passes import passes, with_descendants
from gradviz.analysis.queues import NoSuchMomentError, event_at
from gradviz.analysis.savings import Saving, made_at, savings
from gradviz.analysis.spans import times
from gradviz.trace.model import Trace
from gradviz.trace.table import Column

SCHEMA: Final = "gradviz.memory"
MOMENT_SCHEMA: Final = "gradviz.memory_moment"
VERSION: Final = 1

#: So many of those who hold most are told; all are counted.
MAX_HOLDERS: Final = 20

#: For what memory is held, in the order of `HoldingKind`.
Purpose: TypeAlias = Literal["buffers", "saved", "gradients", "results", "unclaimed"]

PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)


class HeldBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that were held at one moment.

    Attributes:
        total: All below but the unclaimed.
        buffers: Gradients that nodes were given and have not let go of.
        saved: Tensors that nodes saved.
        gradients: The ``.grad`` of leaves.
        results: Gradients that were captured, until their pass ends.
        unclaimed: Saved tensors and ``.grad`` that no later event has to do with: they
            may be there, and may be gone.
    """

    total: int
    buffers: int
    saved: int
    gradients: int
    results: int
    unclaimed: int


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was held.

    Attributes:
        purpose: For what.
        size_bytes: How much.
        node: Who held it; of a ``.grad`` its AccumulateGrad.
        task: The pass, -1 for none.
        name: The node's.
        module: The part of a model that made it, empty outside a model.
        location: The line that made it, empty if not known.
        since_ns: From when on, counted from the begin of the first pass: below zero
            if before.
        until_ns: Until when; None if the trace does not have that.
    """

    purpose: Purpose
    size_bytes: int
    node: int
    task: int
    name: str
    module: str
    location: str
    since_ns: int
    until_ns: int | None


class MemoryMoment(msgspec.Struct, frozen=True, kw_only=True):
    """What was held at one moment.

    Attributes:
        after_ns: So long after the first pass began.
        use: How much, and for what.
        holders: Those who held most; what is unclaimed comes last.
        num_holders: How many there were.
    """

    after_ns: int
    use: HeldBytes
    holders: tuple[Holder, ...]
    num_holders: int


class HeldMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What was held while some passes ran, by whomever, or in a part of that time.

    Attributes:
        tasks: The passes, those called from inside the others included.
        took_ns: How long the first of them took, by its own begin and end; None if the
            trace does not have its end.
        origin_ns: When the first began, on the trace's clock.
        duration_ns: From there to their last event.
        from_ns: Where the part begins; 0 if it is all.
        until_ns: Where it ends; `duration_ns` if it is all.
        begin: What was held when it began.
        peak: What was held when it was most for the first time.
        end: What was held when it ended.
        curves: Of the total and of each purpose the bytes over time.
        stack: When something changed, and how much was held from then on for each
            purpose, in the order of `PURPOSES`: all at the same moments.
        savings: What would lower the peak, the most first.
        devices: What allocators of devices gave, by device.
        num_unknown: Nodes that ran in these passes and were made before the recording
            began: what they have saved is not known.
        is_complete: Whether no event is missing from the trace.
    """

    tasks: tuple[int, ...]
    origin_ns: int
    duration_ns: int
    begin: HeldBytes
    peak: MemoryMoment
    end: HeldBytes
    curves: dict[str, Points]
    stack: tuple[tuple[int, ...], ...]
    from_ns: int
    until_ns: int
    savings: tuple[Saving, ...]
    devices: tuple[DeviceMemory, ...]
    num_unknown: int
    is_complete: bool
    took_ns: int | None = None


def build_memory(
    trace: Trace,
    tasks: Sequence[int],
    from_ns: int = 0,
    until_ns: int | None = None,
    *,
    held: Holdings | None = None,
    has_savings: bool = True,
) -> HeldMemory:
    """What was held during these passes and all called from inside them.

    Args:
        trace: The trace.
        tasks: The passes.
        from_ns: Not before: so long after the first of them began.
        until_ns: Not after; None for their end.
        held: The `holdings` of the trace, for who asks about several passes.
        has_savings: Whether to look for what would lower the peak, which takes long.

    Raises:
        NoSuchMomentError: All of it ends before.
    """
    tasks = with_descendants(trace, tasks)
    t_ns = times(trace)
    window = window_of(trace, tasks)
    origin = int(t_ns[window.first])
    duration_ns = int(t_ns[window.last]) - origin
    until_ns = duration_ns if until_ns is None else min(until_ns, duration_ns)
    shown = _part(t_ns, window, origin, tasks[0], from_ns, until_ns)
    held = holdings(trace) if held is None else held
    seqs, levels = levels_of(held, shown)
    totals = levels[:, : HoldingKind.UNCLAIMED].sum(axis=1)
    highest = int(totals.argmax())
    after = np.maximum(t_ns[seqs] - origin, from_ns)
    heights = {"total": totals, **dict(zip(PURPOSES, levels.T, strict=True))}
    moments = telling(after, totals)
    peak = _moment(trace, held, t_ns, int(seqs[highest]), origin, levels[highest])
    return HeldMemory(
        tasks=tasks,
        took_ns=passes(trace, tasks=tasks[:1])[0].duration_ns,
        origin_ns=origin,
        duration_ns=duration_ns,
        from_ns=from_ns,
        until_ns=until_ns,
        begin=_use(levels[0]),
        peak=msgspec.structs.replace(peak, after_ns=int(after[highest])),
        end=_use(levels[-1]),
        curves={name: thinned(after, height) for name, height in heights.items()},
        stack=tuple(
            (when, *sizes)
            for when, sizes in zip(
                after[moments].tolist(), levels[moments].tolist(), strict=True
            )
        ),
        savings=(savings(trace, held, t_ns, int(seqs[highest])) if has_savings else ()),
        devices=device_memory(trace, t_ns, shown),
        num_unknown=_num_unknown(trace, tasks),
        is_complete=trace.losses.is_complete and trace.header.scope.has_whole_passes,
    )


def _part(
    t_ns: Column,
    window: EventRange,
    origin: int,
    task: int,
    from_ns: int,
    until_ns: int,
) -> EventRange:
    """The events of a part of a window, the last one before it included.

    Raises:
        NoSuchMomentError: There is none.
    """
    last = int(t_ns[window.last]) - origin
    if not 0 <= from_ns <= last:
        raise NoSuchMomentError(
            f"there is nothing {from_ns:,} ns after the begin of pass {task}: it ends "
            f"after {last:,} ns"
        )
    first, end = np.searchsorted(t_ns, (origin + from_ns, origin + until_ns), "right")
    begin = max(int(first) - 1, window.first) if from_ns else window.first
    return EventRange(begin, max(min(int(end) - 1, window.last), begin))


def memory_at(trace: Trace, tasks: Sequence[int], after_ns: int) -> MemoryMoment:
    """What was held so long after the first of these passes began.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    tasks = with_descendants(trace, tasks)
    t_ns = times(trace)
    origin = int(t_ns[window_of(trace, tasks).first])
    seq = event_at(t_ns, origin, after_ns, tasks[0])
    held = holdings(trace)
    _, levels = levels_of(held, EventRange(seq, seq))
    moment = _moment(trace, held, t_ns, seq, origin, levels[0])
    return msgspec.structs.replace(moment, after_ns=after_ns)


def document_of(memory: HeldMemory | MemoryMoment) -> dict[str, Any]:
    """What ``gradviz show memory --json`` prints, with or without ``--at``."""
    schema = SCHEMA if isinstance(memory, HeldMemory) else MOMENT_SCHEMA
    return {"schema": schema, "version": VERSION, **msgspec.to_builtins(memory)}


def _use(level: Column) -> HeldBytes:
    sizes = dict(zip(PURPOSES, level.tolist(), strict=True))
    return HeldBytes(total=sum(level[: HoldingKind.UNCLAIMED].tolist()), **sizes)


def _moment(
    trace: Trace, held: Holdings, t_ns: Column, seq: int, origin: int, level: Column
) -> MemoryMoment:
    places = np.flatnonzero((held.begin <= seq) & (held.end > seq))
    is_unsure = held.kind[places] == HoldingKind.UNCLAIMED
    places = places[np.lexsort((-held.size_bytes[places], is_unsure))]
    found = held.at(places[:MAX_HOLDERS])
    return MemoryMoment(
        after_ns=int(t_ns[seq]) - origin,
        use=_use(level),
        holders=tuple(
            _holder(trace, t_ns, origin, *row)
            for row in zip(*(column.tolist() for column in found), strict=True)
        ),
        num_holders=len(places),
    )


def _holder(  # noqa: PLR0913, PLR0917 - what `Holdings` has, and where times are from
    trace: Trace,
    t_ns: Column,
    origin: int,
    kind: int,
    begin: int,
    end: int,
    size_bytes: int,
    task: int,
    node: int,
) -> Holder:
    known = definition(trace, node)
    return Holder(
        purpose=PURPOSES[kind],
        size_bytes=size_bytes,
        node=node,
        task=task,
        name=known.name,
        module=known.module,
        location=made_at(trace, known),
        since_ns=int(t_ns[begin]) - origin,
        until_ns=int(t_ns[end]) - origin if end < len(t_ns) else None,
    )


def _num_unknown(trace: Trace, tasks: Sequence[int]) -> int:
    """How many nodes ran whose making is not in the trace; leaves save nothing."""
    started = trace.columns["node_started"]
    mine = np.isin(started.narrow("task"), np.array(tasks, np.int64))
    ran = np.unique(started["node"][mine])
    unknown = ran[~np.isin(ran, trace.columns["node_created"]["node"])]
    names, place = trace.nodes.names(unknown)
    saves = [name not in {"AccumulateGrad", "GraphRoot"} for name in names]
    return int(np.array(saves, np.bool_)[place].sum())
