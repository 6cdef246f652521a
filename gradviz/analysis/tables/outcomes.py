"""Columns of how the passes of a trace ended, for traces of however many."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradviz.analysis.tables.worker_parts import wholes_of
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table

#: Values of the column `status`, the worst last.
COMPLETED: Final = 0
UNFINISHED: Final = 1
FAILED: Final = 2


class Outcomes(NamedTuple):
    """All passes of a trace, in the order in which they began.

    The columns mean what the fields of `Pass` mean.

    Attributes:
        task: The number of each pass.
        is_outermost: True if it was not called from inside another pass.
        status: `COMPLETED`, `UNFINISHED` or `FAILED`.
        has_ended: True if the trace has its end.
        duration_ns: Duration; 0 if it does not.
    """

    task: Column
    is_outermost: NDArray[np.bool_]
    status: Column
    has_ended: NDArray[np.bool_]
    duration_ns: Column


def outcomes(trace: Trace) -> Outcomes:
    """Return how each pass of a trace ended; see Note [One pass, several workers]."""
    begun = trace.columns["task_begun"]
    task, begin_ns = begun["task"], begun["t_ns"]
    whole = wholes_of(trace, task)
    has_completed, completed_ns = _ends(trace.columns["task_completed"], task)
    has_failed, failed_ns = _ends(trace.columns["task_failed"], task)
    has_ended = has_completed | has_failed
    end_ns = np.where(has_failed, failed_ns, completed_ns)
    status = np.where(has_completed, COMPLETED, UNFINISHED)
    status[has_failed] = FAILED

    # The parts of a pass lie side by side, that of the pass first.
    order = np.lexsort((np.arange(len(task)), task != whole, whole))
    whole = whole[order]
    first = np.flatnonzero(np.append(True, whole[1:] != whole[:-1])[: len(whole)])
    root = order[first]
    worst = np.maximum.reduceat(status[order], first)
    begin_ns = np.minimum.reduceat(begin_ns[order], first)
    latest = np.where(has_ended, end_ns, np.iinfo(np.int64).min)[order]
    end_ns = np.maximum.reduceat(latest, first)
    # A worker that failed does not wait for another that is gone.
    has_ended = has_ended[root] & (worst != UNFINISHED)

    began = np.argsort(np.minimum.reduceat(order, first), kind="stable")
    return Outcomes(
        task=task[root][began],
        is_outermost=(begun["parent"][root] < 0)[began],
        status=worst[began],
        has_ended=has_ended[began],
        duration_ns=np.where(has_ended, end_ns - begin_ns, 0)[began],
    )


def _ends(table: Table, tasks: Column) -> tuple[NDArray[np.bool_], Column]:
    """Return a mask of the tasks whose end a table has, and the time of each end."""
    order = np.argsort(table["task"], kind="stable")
    known = table["task"][order]
    if not len(known):
        return np.zeros(len(tasks), np.bool_), np.zeros(len(tasks), np.int64)
    place = np.searchsorted(known, tasks, side="right") - 1
    return known[place] == tasks, table["t_ns"][order][place]
