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
    steps = np.zeros((len(seqs), len(HoldingKind)), np.int64)
    rows, size = np.arange(len(held.begin)), len(held.begin)
    steps[rows, held.kind] = held.size_bytes
    steps[size + np.arange(int(ends.sum())), held.kind[ends]] = -held.size_bytes[ends]
    order = np.argsort(seqs, kind="stable")
    seqs, levels = seqs[order], np.cumsum(steps[order], axis=0)
    is_last = np.append(seqs[1:] != seqs[:-1], True)
    is_meant = is_last & (seqs >= window.first) & (seqs <= window.last)
    return seqs[is_meant], levels[is_meant]
