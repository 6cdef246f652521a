"""The tables of a page about what passes cost: devices, memory, the critical path."""

from collections.abc import Sequence

import numpy as np

from gradviz.analysis.critical_path import CriticalPath, SegmentKind
from gradviz.analysis.kernels import kernels
from gradviz.analysis.memory import HeldMemory
from gradviz.render.page.extract import Extract
from gradviz.render.page.families import family_places
from gradviz.render.page.tables import (
    CostTable,
    KernelTable,
    MemoryTable,
    SegmentTable,
)


def kernel_table(extract: Extract) -> KernelTable:
    """What streams did meanwhile, and what was left for them to do."""
    ran = [
        one
        for one in kernels(extract.trace)
        if one.launched_ns < extract.end_ns and one.end_ns > extract.origin_ns
    ]
    times = np.array(
        [(one.launched_ns, one.start_ns, one.end_ns) for one in ran], np.int64
    ).reshape(-1, 3)
    return KernelTable(
        extract.places([one.stream for one in ran]),
        extract.places([one.name for one in ran]),
        family_places([one.name for one in ran]),
        np.array([one.thread for one in ran], np.int64),
        *extract.since_ns(times).T,
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
