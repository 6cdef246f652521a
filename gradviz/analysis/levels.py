"""Levels: how much was held after each event at which that changed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradviz.analysis.holdings import HoldingKind, Holdings
from gradviz.analysis.spans import NEVER, last_events
from gradviz.trace.model import Trace
from gradviz.trace.table import Column


class EventRange(NamedTuple):
    """The `seq` of the first event that is looked at, and of the last."""

    first: int
    last: int


def window_of(trace: Trace, tasks: Sequence[int]) -> EventRange:
    """From the begin of the first of some passes to the last event of all of them."""
    begun = trace.columns["task_begun"]
    wanted = np.array(tasks, np.int64)
    known, last = last_events(trace)
    return EventRange(
        int(begun["seq"][np.isin(begun["task"], wanted)].min()),
        int(last[np.isin(known, wanted)].max()),
    )


def levels_of(held: Holdings, window: EventRange) -> tuple[Column, Column]:
    """The events of a window at which something changed, and its first and last one.

    And the bytes held right after each, a column for each `HoldingKind`.
    """
    is_there = (held.begin <= window.last) & (held.end > window.first)
    held = held.at(np.flatnonzero(is_there))
    ends = held.end != NEVER
    seqs = np.concatenate((held.begin, held.end[ends], window))
    order = np.argsort(seqs, kind="stable")
    seqs = seqs[order]
    steps = np.concatenate((held.size_bytes, -held.size_bytes[ends], (0, 0)))[order]
    kinds = np.concatenate((held.kind, held.kind[ends], (0, 0)))[order]
    is_last = np.append(seqs[1:] != seqs[:-1], True)
    is_meant = is_last & (seqs >= window.first) & (seqs <= window.last)
    # One kind after the other: all at once would take five times the memory.
    levels = [
        np.cumsum(np.where(kinds == kind, steps, 0))[is_meant] for kind in HoldingKind
    ]
    return seqs[is_meant], np.column_stack(levels)
