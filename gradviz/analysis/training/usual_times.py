"""The usual times of a pass and its nodes, and passes that differ from them.

Wall time blames the innocent: a node that waited for a processor looks slow. What it
took in the middle of several passes of one shape is a better figure, and by how much it
varies among them says what a difference is worth.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.tables.executions import STATUSES
from gradviz.analysis.tables.outcomes import outcomes
from gradviz.analysis.training.pass_shapes import shapes
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

#: Thresholds of a significant difference: so many passes of each, so large a part of
#: the smaller median, so many standard errors.
MIN_PASSES: Final = 3
MIN_CHANGE: Final = 0.1
MIN_ERRORS: Final = 5.0

#: The standard deviation of a normal distribution by its median absolute deviation,
#: and the standard error of a median by it and one over the root of the size.
_DEVIATION: Final = 1.4826
_ERROR: Final = 1.2533


class UsualTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Usual duration, over the passes of one shape.

    Attributes:
        median_ns: The median; of one pass its duration there.
        deviation_ns: The median absolute deviation from it.
        passes: Number of passes.
    """

    median_ns: int
    deviation_ns: int
    passes: int


class UsualTimes(NamedTuple):
    """Usual durations of a pass and its nodes.

    Attributes:
        like: The passes of its shape, the pass itself first.
        whole: The pass, None if it never ended.
        nodes: By id, those that completed.
    """

    like: tuple[int, ...]
    whole: UsualTime | None
    nodes: Mapping[int, UsualTime]


def usual_times(trace: Trace, task: int, *, alone: bool = False) -> UsualTimes:
    """Return the usual durations of a pass, and of each of its nodes.

    Args:
        trace: The trace.
        task: The pass.
        alone: Only for this pass, and not over all of its shape.
    """
    known, many = np.unique(
        trace.columns["node_started"].narrow("task"), return_counts=True
    )
    # The others cannot have its shape.
    own = many[known == task].max(initial=0)
    others = [one for one in known[many == own].tolist() if one != task]
    found = shapes(trace, [task] if alone else [task, *others])
    like = found.like(task) or (task,)
    every = outcomes(trace)
    is_like = every.has_ended & np.isin(every.task, np.array(like, np.int64))
    whole = every.duration_ns[is_like]
    runs = [found.of(one) for one in like]
    completed = STATUSES.index("completed")
    took = np.stack([one.took_ns for one in runs])
    is_done = np.stack([one.status == completed for one in runs])
    ids = runs[0].node
    # A node that did not complete in some of them is rare.
    always = is_done.all(axis=0)
    nodes = dict(zip(ids[always].tolist(), _usuals(took[:, always]), strict=True))
    for place in np.flatnonzero(is_done[0] & ~always).tolist():
        (nodes[int(ids[place])],) = _usuals(took[is_done[:, place], place, None])
    is_known = task in every.task[is_like]
    usual = next(_usuals(whole[:, None])) if is_known else None
    return UsualTimes(like, usual, nodes)


def is_significant(one: UsualTime, other: UsualTime) -> bool:
    """Return whether two times differ by more than they vary; see `MIN_PASSES`."""
    apart = abs(one.median_ns - other.median_ns)
    return (
        min(one.passes, other.passes) >= MIN_PASSES
        and apart > MIN_CHANGE * min(one.median_ns, other.median_ns)
        and apart > noise_ns(one, other)
    )


def noise_ns(one: UsualTime, other: UsualTime) -> float:
    """Return by how much two medians may differ by chance: `MIN_ERRORS` errors."""
    return MIN_ERRORS * math.hypot(_error(one), _error(other))


def _error(one: UsualTime) -> float:
    return _ERROR * _DEVIATION * one.deviation_ns / math.sqrt(one.passes)


def _usuals(took_ns: Column) -> Iterator[UsualTime]:
    """Yield the usual time of each column, over its rows."""
    medians = np.median(took_ns, axis=0).astype(np.int64)
    deviations = np.median(np.abs(took_ns - medians), axis=0).astype(np.int64)
    for median, deviation in zip(medians.tolist(), deviations.tolist(), strict=True):
        yield UsualTime(median_ns=median, deviation_ns=deviation, passes=len(took_ns))
