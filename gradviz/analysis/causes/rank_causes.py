"""Dependencies between ranks: the causes and effects of collectives."""

from collections.abc import Iterator, Mapping

import numpy as np

from gradviz.analysis.causes.thread_lanes import LaneMoments, listed
from gradviz.analysis.tables.collectives import Collective, collectives, outermost_pass
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column


def rank_ways(trace: Trace, rows: LaneMoments) -> tuple[Column, Column]:
    """Return where the ways of collectives begin, and where each leads; -1 if unknown.

    Args:
        trace: The trace.
        rows: The moments.
    """
    found = [*collectives(trace)]
    begun = trace.columns["task_begun"]
    parents = dict(zip(begun["task"].tolist(), begun["parent"].tolist(), strict=True))
    pairs = [*_launches(rows), *_returns(rows, parents), *_meetings(rows, found)]
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return source, target


def _launches(rows: LaneMoments) -> Iterator[tuple[int, int]]:
    """Yield edges from the node that launched a collective to its start."""
    done = {
        (node, task): moment
        for moment, node, task in listed(rows, "node_completed", rows.node)
    }
    for moment, node, task in listed(rows, "collective_began", rows.node):
        yield done.get((node, task), -1), moment


def _returns(
    rows: LaneMoments, parents: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield ways from the end of a collective to that of the pass which launched it.

    A reducer waits in the last callback of the outermost pass.
    """
    done = {task: moment for moment, task in listed(rows, "task_completed")}
    for moment, task in listed(rows, "collective_ended"):
        outermost = outermost_pass(task, parents)
        yield moment, done.get(outermost, -1)


def _meetings(rows: LaneMoments, found: list[Collective]) -> Iterator[tuple[int, int]]:
    """Yield ways from where each rank began a collective to its end on the others."""
    seqs = np.array(
        [(one.began_seq, one.ended_seq) for each in found for one in each.parts],
        np.int64,
    )
    moments = iter(zip(*map(rows.at, seqs.reshape(-1, 2).T), strict=True))
    for each in found:
        ends = [next(moments) for _ in each.parts]
        last = max(began for began, _ in ends)
        yield from ((int(last), int(ended)) for _, ended in ends)
