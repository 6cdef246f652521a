"""The tables of a page about streams of devices: what they did, and waited for."""

from collections.abc import Sequence

import numpy as np

from gradviz.analysis.idle_spans import blocked_spans
from gradviz.analysis.kernels import KernelRun, kernels
from gradviz.analysis.stream_waits import StreamWait
from gradviz.analysis.timeline_spans import Period
from gradviz.render.page.columns import RowPlaces
from gradviz.render.page.extract import Extract
from gradviz.render.page.families import family_places
from gradviz.render.page.tables import BlockedTable, KernelTable, KernelWaitTable


def kernels_meanwhile(extract: Extract) -> list[KernelRun]:
    """What streams did while the passes ran, and what was left for them to do."""
    return [
        one
        for one in kernels(extract.trace)
        if one.launched_ns < extract.end_ns and one.end_ns > extract.origin_ns
    ]


def kernel_table(extract: Extract, ran: Sequence[KernelRun]) -> KernelTable:
    """Those."""
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


def kernel_wait_table(
    extract: Extract, ran: Sequence[KernelRun], waits: Sequence[StreamWait]
) -> KernelWaitTable:
    """Which of them could not begin before which others were done."""
    places = RowPlaces(np.array([one.kernel for one in ran], np.int64))
    rows = np.array(
        [(one.kernel, one.awaited_kernel, one.node, one.producer) for one in waits],
        np.int64,
    ).reshape(-1, 4)
    kernel, awaited, node, producer = rows.T
    return KernelWaitTable(
        places.of(kernel),
        places.of(awaited),
        extract.node_places.of(node),
        extract.node_places.of(producer),
    )


def blocked_table(
    extract: Extract, ran: Sequence[KernelRun], waits: Sequence[StreamWait]
) -> BlockedTable:
    """When streams had work and waited for that of others."""
    end_ns = max([extract.end_ns, *(one.end_ns for one in ran)])
    found = list(blocked_spans(ran, waits, Period(extract.origin_ns, end_ns)))
    times = np.array(
        [(span.start_ns, span.end_ns) for _, span in found], np.int64
    ).reshape(-1, 2)
    return BlockedTable(
        extract.places([stream for stream, _ in found]),
        extract.places([span.name for _, span in found]),
        *times.T,
    )
