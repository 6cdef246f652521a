"""A window: the events of a trace from one moment to another."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.spans import last_events
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column


class NoSuchMomentError(UserError):
    """The time asked for is none of the trace: wrong usage."""

    exit_code = 2


class EventRange(NamedTuple):
    """The `seq` of the first event that is looked at, and of the last."""

    first: int
    last: int


def window_of(trace: Trace, tasks: Sequence[int]) -> EventRange:
    """Return the events from the start of the first of some passes to the last."""
    begun = trace.columns["task_begun"]
    wanted = np.array(tasks, np.int64)
    known, last = last_events(trace)
    return EventRange(
        int(begun["seq"][np.isin(begun["task"], wanted)].min()),
        int(last[np.isin(known, wanted)].max()),
    )


def event_at(t_ns: Column, origin: int, after_ns: int, task: int) -> int:
    """Return the last event that happened `after_ns` after a pass began, or before.

    Args:
        t_ns: Time of each event of the trace.
        origin: Start of the pass.
        after_ns: Time after that.
        task: The pass.

    Raises:
        NoSuchMomentError: The trace ends before.
    """
    last = int(t_ns[-1]) - origin
    if not 0 <= after_ns <= last:
        raise NoSuchMomentError(
            f"there is nothing {after_ns:,} ns after the start of pass "
            f"{task}: it ends after {last:,} ns"
        )
    return int(np.searchsorted(t_ns, origin + after_ns, side="right")) - 1


def outermost_passes(trace: Trace) -> tuple[Column, Column]:
    """Return the begins and the ends of passes called from no other, each sorted."""
    begun = trace.columns["task_begun"]
    begun = begun.at(begun.narrow("parent") < 0)
    tasks, last = last_events(trace)
    return begun["seq"], np.sort(last[np.isin(tasks, begun["task"])])


def is_inside_a_pass(trace: Trace, seqs: Column) -> npt.NDArray[np.bool_]:
    """Return which events happened while a pass ran, on whatever thread."""
    begins, ends = outermost_passes(trace)
    return np.searchsorted(begins, seqs) > np.searchsorted(ends, seqs)
