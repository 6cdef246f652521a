"""Memory during backward passes: its size, purposes, peak, and holders.

What the figures mean is told in Note [What a trace knows of memory] of `holdings`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.memory.allocations import HoldingKind, Holdings, holdings
from gradviz.analysis.memory.levels import DeviceMemory, device_memory, levels_of
from gradviz.analysis.memory.saved_shares import (
    SavedTensors,
    saved_tensors,
    unknown_purposes,
)
from gradviz.analysis.memory.savings import Saving, made_at, savings
from gradviz.analysis.tables.executions import (
    definition,
    execution_columns,
    places_in_order,
)
from gradviz.analysis.tables.passes import the_pass, with_descendants
from gradviz.analysis.tables.spans import Points, telling, thinned, times
from gradviz.analysis.tables.window import (
    EventRange,
    NoSuchMomentError,
    event_at,
    window_of,
)
from gradviz.analysis.tables.worker_parts import numbers_of, whole_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

SCHEMA: Final = "gradviz.memory"
MOMENT_SCHEMA: Final = "gradviz.memory_moment"
VERSION: Final = 1

#: Maximum number of the largest holders told; all are counted.
MAX_HOLDERS: Final = 20

#: Purposes of held memory, in the order of `HoldingKind`.
Purpose: TypeAlias = Literal["buffers", "saved", "gradients", "results", "unclaimed"]

PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)


class HeldBytes(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that were held at one moment.

    Each is None if nothing is known of it; see Note [What is unknown of memory].

    Attributes:
        total: All below that is known, but the unclaimed; None if nothing is.
        buffers: Gradients that nodes were given and have not let go of.
        saved: Tensors that nodes saved.
        gradients: The ``.grad`` of leaves.
        results: Gradients that were captured, until their pass ends.
        unclaimed: Saved tensors and ``.grad`` that no later event has to do with: they
            may be there, and may be gone.
    """

    total: int | None
    buffers: int | None
    saved: int | None
    gradients: int | None
    results: int | None
    unclaimed: int

    @property
    def unknown(self) -> tuple[Purpose, ...]:
        """Purposes of which nothing is known."""
        return tuple(one for one in PURPOSES if getattr(self, one) is None)


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was held.

    Attributes:
        purpose: Purpose that it is held for.
        size_bytes: Its size.
        node: Node that held it; of a ``.grad`` its AccumulateGrad.
        task: The pass, -1 for none.
        name: The node's.
        index: Its place in the execution order, as pictures number nodes; None if none
            of the passes asked for ran it.
        module: The part of a model that made it, empty outside a model.
        location: The line that made it, empty if not known.
        since_ns: Time of its start, counted from the start of the first pass: below
            zero if before.
        until_ns: Time of its end; None if the trace does not have that.
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
    index: int | None = None


class MemoryMoment(msgspec.Struct, frozen=True, kw_only=True):
    """Held memory at one moment.

    Attributes:
        after_ns: Time since the first pass began.
        use: Bytes held, by purpose.
        holders: The largest holders; unclaimed memory comes last.
        num_holders: Number of holders.
    """

    after_ns: int
    use: HeldBytes
    holders: tuple[Holder, ...]
    num_holders: int


class HeldMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory held while some passes ran, by any holder, or in a part of that time.

    Attributes:
        tasks: The passes, nested ones included.
        took_ns: Duration of the first of them; None if the trace does not have its end.
        origin_ns: Start of the first, on the trace's clock.
        duration_ns: Time from there to their last event.
        from_ns: Start of the part; 0 if it is all.
        until_ns: End of the part; `duration_ns` if it is all.
        begin: Held memory at its start.
        peak: Held memory at its first maximum.
        end: Held memory at its end.
        curves: Bytes over time, of the total and of each purpose; none for a purpose of
            which nothing is known.
        stack: Times of changes, and the bytes held from then on for each purpose, in
            the order of `PURPOSES`: all at the same moments; None for one of which
            nothing is known.
        savings: Ways to lower the peak, the largest first.
        devices: Bytes given by allocators of devices, by device.
        saved: Saved bytes, by the node that saved them.
        num_unknown: Nodes that ran in these passes and whose saved bytes are not known.
        is_complete: True if no event is missing from the trace.
    """

    tasks: tuple[int, ...]
    origin_ns: int
    duration_ns: int
    begin: HeldBytes
    peak: MemoryMoment
    end: HeldBytes
    curves: dict[str, Points]
    stack: tuple[tuple[int | None, ...], ...]
    from_ns: int
    until_ns: int
    savings: tuple[Saving, ...]
    devices: tuple[DeviceMemory, ...]
    num_unknown: int
    is_complete: bool
    took_ns: int | None = None
    saved: SavedTensors | None = None

    @property
    def is_partial(self) -> bool:
        """True if more may have been held at the peak than is known."""
        return bool(self.num_unknown or self.peak.use.unknown)


def build_memory(
    trace: Trace,
    tasks: Sequence[int],
    from_ns: int = 0,
    until_ns: int | None = None,
    *,
    held: Holdings | None = None,
    has_savings: bool = True,
) -> HeldMemory:
    """Return the memory held during these passes and the passes nested in them.

    Args:
        trace: The trace.
        tasks: The passes.
        from_ns: Start of the part, after the start of the first of them.
        until_ns: End of the part; None for their end.
        held: The `holdings` of the trace, for callers that ask about several passes.
        has_savings: True if ways to lower the peak are looked for, which takes long.

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
    unknown = unknown_purposes(trace, held, tasks, shown)
    saved = saved_tensors(trace, held, tasks, shown)
    seqs, levels = levels_of(held, shown)
    totals = levels[:, : HoldingKind.UNCLAIMED].sum(axis=1)
    highest = int(totals.argmax())
    after = np.maximum(t_ns[seqs] - origin, from_ns)
    heights = {"total": totals, **dict(zip(PURPOSES, levels.T, strict=True))}
    hidden = {PURPOSES[kind] for kind in unknown}
    moments = telling(after, totals)
    index = _indices(trace, tasks)
    peak = _moment(
        trace, held, t_ns, int(seqs[highest]), origin, levels[highest], index, unknown
    )
    return HeldMemory(
        tasks=numbers_of(trace, tasks),
        took_ns=the_pass(trace, tasks[0]).duration_ns,
        origin_ns=origin,
        duration_ns=duration_ns,
        from_ns=from_ns,
        until_ns=until_ns,
        begin=_use(levels[0], unknown),
        peak=msgspec.structs.replace(peak, after_ns=int(after[highest])),
        end=_use(levels[-1], unknown),
        curves={
            name: () if name in hidden else thinned(after, height)
            for name, height in heights.items()
        },
        stack=tuple(
            (
                when,
                *(None if kind in unknown else size for kind, size in enumerate(sizes)),
            )
            for when, sizes in zip(
                after[moments].tolist(), levels[moments].tolist(), strict=True
            )
        ),
        savings=(
            savings(trace, held, t_ns, int(seqs[highest]), index) if has_savings else ()
        ),
        devices=device_memory(trace, t_ns, shown),
        saved=saved,
        num_unknown=saved.num_unknown,
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
            f"there is nothing {from_ns:,} ns after the start of pass {task}: it ends "
            f"after {last:,} ns"
        )
    first, end = np.searchsorted(t_ns, (origin + from_ns, origin + until_ns), "right")
    begin = max(int(first) - 1, window.first) if from_ns else window.first
    return EventRange(begin, max(min(int(end) - 1, window.last), begin))


def memory_at(trace: Trace, tasks: Sequence[int], after_ns: int) -> MemoryMoment:
    """Return the memory held at a time after the start of the first pass.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    tasks = with_descendants(trace, tasks)
    t_ns = times(trace)
    origin = int(t_ns[window_of(trace, tasks).first])
    seq = event_at(t_ns, origin, after_ns, tasks[0])
    held = holdings(trace)
    _, levels = levels_of(held, EventRange(seq, seq))
    index = _indices(trace, tasks)
    window = window_of(trace, tasks)
    unknown = unknown_purposes(trace, held, tasks, window)
    moment = _moment(trace, held, t_ns, seq, origin, levels[0], index, unknown)
    return msgspec.structs.replace(moment, after_ns=after_ns)


def document_of(memory: HeldMemory | MemoryMoment) -> dict[str, Any]:
    """Return the output of ``gradviz show memory --json``, with or without ``--at``."""
    schema = SCHEMA if isinstance(memory, HeldMemory) else MOMENT_SCHEMA
    return {"schema": schema, "version": VERSION, **msgspec.to_builtins(memory)}


def _use(level: Column, unknown: Collection[HoldingKind]) -> HeldBytes:
    sizes: dict[str, Any] = dict(zip(PURPOSES, level.tolist(), strict=True))
    total = sum(level[: HoldingKind.UNCLAIMED].tolist())
    is_any_known = len(unknown) < HoldingKind.UNCLAIMED
    sizes |= {PURPOSES[kind]: None for kind in unknown}
    return HeldBytes(total=total if is_any_known else None, **sizes)


def _moment(
    trace: Trace,
    held: Holdings,
    t_ns: Column,
    seq: int,
    origin: int,
    level: Column,
    index: Mapping[int, int],
    unknown: Collection[HoldingKind],
) -> MemoryMoment:
    places = np.flatnonzero((held.begin <= seq) & (held.end > seq))
    is_unsure = held.kind[places] == HoldingKind.UNCLAIMED
    places = places[np.lexsort((-held.size_bytes[places], is_unsure))]
    found = held.at(places[:MAX_HOLDERS])
    return MemoryMoment(
        after_ns=int(t_ns[seq]) - origin,
        use=_use(level, unknown),
        holders=tuple(
            _holder(trace, t_ns, origin, index, *row)
            for row in zip(*(column.tolist() for column in found), strict=True)
        ),
        num_holders=len(places),
    )


def _holder(  # noqa: PLR0913, PLR0917 - what `Holdings` has, and where times are from
    trace: Trace,
    t_ns: Column,
    origin: int,
    index: Mapping[int, int],
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
        task=whole_of(trace, task),
        name=known.name,
        module=known.module,
        location=made_at(trace, known),
        since_ns=int(t_ns[begin]) - origin,
        until_ns=int(t_ns[end]) - origin if end < len(t_ns) else None,
        index=index.get(node),
    )


def _indices(trace: Trace, tasks: Sequence[int]) -> Mapping[int, int]:
    """The places of nodes in the execution order of the first pass that ran each."""
    runs = execution_columns(trace, tasks)
    places = places_in_order(trace, runs)
    return dict(zip(runs.node[::-1].tolist(), places[::-1].tolist(), strict=True))
