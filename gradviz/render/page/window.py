"""The window on some passes that a page shows: as many events as a browser can take.

Note [A page that does not hold all]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Of too many passes those are on the page that came first, each with all that were called
from inside it. Of one that is too long by itself the page has the beginning: its events
up to one. Times, statuses and figures are none the less those of the whole trace: what
was under way has the end that it came to, only no moment of the page is that end. The
page says in words what it left out.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.tables.passes import with_descendants
from gradviz.render.words.text import duration
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: A page has no more events, and no more passes.
MAX_EVENTS: Final = 2_000_000
MAX_PASSES: Final = 1_000


class PageWindow(NamedTuple):
    """Part of some passes that a page shows.

    Attributes:
        tasks: The passes that are shown.
        num_events: Number of their events.
        last_seq: The last of them that is shown, None for all.
        left_out: Parts not shown, a sentence each.
    """

    tasks: tuple[int, ...]
    num_events: int
    last_seq: int | None = None
    left_out: tuple[str, ...] = ()


def window_on(trace: Trace, tasks: Sequence[int]) -> PageWindow:
    """Return the window of a page on these passes and those nested in them.

    Args:
        trace: The trace.
        tasks: The passes.
    """
    every = np.array(with_descendants(trace, tasks), np.int64)
    num_events = _num_events(trace, every)
    outer = _outermost(trace, every.tolist())
    # As many of the outermost passes as there is room for, and one in any case.
    has_room = (np.cumsum(np.bincount(outer)) <= MAX_PASSES) & (
        np.cumsum(np.bincount(outer, num_events)) <= MAX_EVENTS
    )
    is_shown = outer < max(int(has_room.sum()), 1)
    is_shown &= np.cumsum(is_shown) <= MAX_PASSES
    shown, total = tuple(every[is_shown].tolist()), int(num_events[is_shown].sum())
    left_out = []
    if len(every) > len(shown):
        left_out.append(f"of {len(every):,} passes the first {len(shown):,} are shown")
    if total <= MAX_EVENTS:
        return PageWindow(shown, total, None, tuple(left_out))
    last_seq, after_ns = _event_number(trace, shown, MAX_EVENTS)
    left_out.append(
        f"of {total:,} events the first {MAX_EVENTS:,} are shown: those of the first "
        f"{duration(after_ns)}"
    )
    return PageWindow(shown, total, last_seq, tuple(left_out))


def _num_events(trace: Trace, tasks: Column) -> Column:
    """Return the number of events of each of some passes."""
    in_order = np.sort(tasks)
    found = np.zeros(len(tasks), np.int64)
    for table in trace.columns.values():
        of = table.narrow("task")
        at = np.minimum(np.searchsorted(in_order, of), len(in_order) - 1)
        found += np.bincount(at[in_order[at] == of], minlength=len(tasks))
    return found[np.searchsorted(in_order, tasks)]


def _outermost(trace: Trace, tasks: Sequence[int]) -> Column:
    """Of each pass in how manieth of those it lies that no other of them called."""
    begun = trace.columns["task_begun"]
    parents = dict(zip(begun["task"].tolist(), begun["parent"].tolist(), strict=True))
    found: dict[int, int] = {}
    num_outer = 0
    for task in tasks:
        parent = parents[task]
        if parent in found:
            found[task] = found[parent]
        else:
            found[task] = num_outer
            num_outer += 1
    return np.array([found[task] for task in tasks], np.int64)


def _event_number(trace: Trace, tasks: Sequence[int], number: int) -> tuple[int, int]:
    """The seq of an event of some passes, and how long after the first it was."""
    tables = [table.having("task", tasks) for table in trace.columns.values()]
    seqs = np.concatenate([table["seq"] for table in tables])
    times = np.concatenate([table["t_ns"] for table in tables])
    last = np.argsort(seqs)[number - 1]
    return int(seqs[last]), int(times[last] - times.min())
