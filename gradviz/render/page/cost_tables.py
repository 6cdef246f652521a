"""The tables of a page about what passes cost: memory and the critical path."""

from collections.abc import Sequence

import numpy as np

from gradviz.analysis.critical_path import CriticalPath, SegmentKind
from gradviz.analysis.memory import HeldMemory
from gradviz.render.page.extract import Extract
from gradviz.render.page.tables import (
    CostTable,
    MemoryTable,
    SegmentTable,
)


def memory_table(extract: Extract, held: HeldMemory) -> MemoryTable:
    """What was held."""
    shift = held.origin_ns - extract.origin_ns
    rows = [
        (number, at_ns + shift, size_bytes)
        for number, curve in enumerate(held.curves.values())
        for at_ns, size_bytes in curve
    ]
    purpose, at_ns, size_bytes = np.array(rows, np.int64).reshape(-1, 3).T
    shown = extract.is_shown(at_ns)
    return MemoryTable(purpose[shown], at_ns[shown], size_bytes[shown])


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
    """What nodes cost that pass."""
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
