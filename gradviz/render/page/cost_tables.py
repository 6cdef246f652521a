"""The tables of a page about passes' costs: memory and the critical path."""

from collections.abc import Iterator, Sequence

import numpy as np

from gradviz.analysis.causes.critical_path import CriticalPath, SegmentKind
from gradviz.analysis.memory.memory_use import HeldMemory
from gradviz.render.page.extract import Extract
from gradviz.render.page.tables import (
    CostTable,
    MemoryTable,
    SegmentTable,
)
from gradviz.render.words.purposes import STACKED, unknown_purposes
from gradviz.render.words.text import count


def memory_table(extract: Extract, held: HeldMemory) -> MemoryTable:
    """Return the table of held memory."""
    shift = held.origin_ns - extract.origin_ns
    rows = [
        (number, at_ns + shift, size_bytes)
        for number, name in enumerate(("total", *STACKED))
        for at_ns, size_bytes in held.curves[name]
    ]
    purpose, at_ns, size_bytes = np.array(rows, np.int64).reshape(-1, 3).T
    shown = extract.is_shown(at_ns)
    return MemoryTable(purpose[shown], at_ns[shown], size_bytes[shown])


def unknown_memory(held: HeldMemory) -> Iterator[str]:
    """Say what of memory is not known."""
    unknown = unknown_purposes(held.peak.use)
    if unknown:
        yield f"of memory unknown: {', '.join(unknown)}"
    elif held.num_unknown:
        yield f"what {count(held.num_unknown, 'node')} saved is unknown"


def segment_table(
    extract: Extract, path: CriticalPath, kinds: Sequence[SegmentKind]
) -> SegmentTable:
    """The critical path of a pass."""
    shift = path.origin_ns - extract.origin_ns
    rows = np.array(
        [
            (
                kinds.index(one.kind),
                one.begin_ns + shift,
                one.end_ns + shift,
                one.thread,
                one.task,
                one.node,
            )
            for one in path.segments
        ],
        np.int64,
    ).reshape(-1, 6)
    shown = extract.is_shown(rows[:, 1])
    kind, begin, end, thread, task, node = rows[shown].T
    streams = [one.stream for one in path.segments]
    return SegmentTable(
        kind,
        begin,
        end,
        thread,
        extract.places(streams)[shown],
        extract.task_places.of(task),
        extract.node_places.of(node),
    )


def cost_table(extract: Extract, path: CriticalPath) -> CostTable:
    """Return the table of nodes' costs to that pass."""
    rows = np.array(
        [
            (
                one.task,
                one.node,
                one.own_ns,
                one.on_path_ns,
                -1 if one.slack_ns is None else one.slack_ns,
                -1 if one.if_free_ns is None else one.if_free_ns,
            )
            for one in path.nodes
        ],
        np.int64,
    ).reshape(-1, 6)
    places = extract.node_places.of(rows[:, 1])
    task, _, *figures = rows[places >= 0].T
    return CostTable(extract.task_places.of(task), places[places >= 0], *figures)
