"""Number of calls of each module in the forward before a backward pass."""

from collections import Counter
from typing import Final

import numpy as np

from gradviz.analysis.tables.passes import Pass
from gradviz.trace.format.model import Trace
from gradviz.trace.probe import Tracking

#: More calls are not counted, as a picture of so many says nothing.
MAX_CALLS: Final = 1_000_000

#: Results of calls that leave nodes in a graph, or may.
_IN_GRAPH: Final = (Tracking.UNKNOWN, Tracking.TRACKED)


def calls_before(trace: Trace, about: Pass) -> dict[str, int]:
    """Return how often each module was called since the thread's last pass ended.

    Calls whose results require no gradient are not counted.

    Args:
        trace: The trace.
        about: The backward pass; the calls of its thread are looked at.
    """
    begun = trace.columns["forward_begun"].at(slice(MAX_CALLS))
    if not len(begun["call"]):
        return {}
    ended = trace.columns["forward_ended"]
    outside = ended["call"][~np.isin(ended["results"], _IN_GRAPH)]
    moment = begun["t_ns"]
    is_counted = (
        (begun["thread"] == about.thread)
        & (moment < about.begin_ns)
        & (moment >= _last_end(trace, about))
        & ~np.isin(begun["call"], outside)
    )
    places = Counter(begun["module"][is_counted].tolist())
    return {trace.strings[place]: times for place, times in places.items()}


def _last_end(trace: Trace, about: Pass) -> int:
    """Return when the last pass of the same thread ended before one began."""
    begun = trace.columns["task_begun"]
    is_own = (begun["thread"] == about.thread) & (begun["parent"] < 0)
    own = begun["task"][is_own & (begun["t_ns"] < about.begin_ns)]
    last = begun["t_ns"][np.isin(begun["task"], own)].max(initial=0)
    for kind in ("task_completed", "task_failed"):
        ended = trace.columns[kind]
        last = max(last, ended["t_ns"][np.isin(ended["task"], own)].max(initial=0))
    return int(last)
