"""Groups: nodes with the same label, and how long they took together and each.

Note [Percentiles]
~~~~~~~~~~~~~~~~~~
The 90th percentile is by nearest rank: the shortest time that at least nine of ten
nodes of a group did not exceed. It is always the time of one of them, of fewer than
ten the longest. The median of an even number is the mean of the middle two, rounded
down.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from gradviz.analysis.nodes.labels import Label, are_meant, labels
from gradviz.analysis.tables.executions import STATUSES, execution_columns
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column

SCHEMA: Final = "gradviz.groups"
VERSION: Final = 1

#: No more groups are told; the rest is counted.
MAX_GROUPS: Final = 100_000

GroupKey: TypeAlias = Literal[
    "total", "runs", "mean", "median", "p90", "longest", "running", "label"
]

GROUP_KEYS: Final[tuple[GroupKey, ...]] = get_args(GroupKey)


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of one label that ran to their end; see Note [Percentiles].

    Attributes:
        label: Label that they have in common, empty for nodes that have none.
        runs: Number of runs; a node that ran in two passes counts twice.
        total_ns: Time that they took together.
        mean_ns: On average.
        median_ns: As half of them, or more.
        p90_ns: As nine of ten, or more.
        longest_ns: The longest.
        running_ns: Part of `total_ns` in which their threads were running; None where
            that is not known of all of them.
    """

    label: str
    runs: int
    total_ns: int
    mean_ns: float
    median_ns: int
    p90_ns: int
    longest_ns: int
    running_ns: int | None = None


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes in groups.

    Attributes:
        by: Property that the nodes of a group share.
        sort: Key that the groups are sorted by.
        tasks: The passes whose nodes are counted, None for all.
        num_runs: Runs in all groups, those left out too.
        total_ns: Time that these took together.
        groups: The groups.
        omitted: Number of groups left out.
        num_unfinished: Nodes that were started and whose end the trace does not have.
        is_complete: True if no event is missing, as far as that can be known.
    """

    by: Label
    sort: GroupKey
    tasks: tuple[int, ...] | None
    num_runs: int
    total_ns: int
    groups: tuple[NodeGroup, ...]
    omitted: int
    num_unfinished: int
    is_complete: bool


def group_nodes(
    trace: Trace,
    tasks: Sequence[int] | None = None,
    *,
    by: Label,
    sort: GroupKey = "total",
    filters: Sequence[tuple[Label, str]] = (),
    limit: int = MAX_GROUPS,
) -> Groups:
    """The nodes that ran, those of which only the gradient was taken left out.

    Args:
        trace: The trace.
        tasks: Only those of these passes; None for all.
        by: Property that the nodes of a group share.
        sort: Key to sort by: numbers from the largest on, labels from the first.
        filters: Labels that nodes must have; see `labels.is_meant`.
        limit: No more groups.
    """
    runs = execution_columns(trace, tasks)
    runs = runs.at(np.flatnonzero(are_meant(trace, runs, filters)))
    has_run = runs.has_ended & (runs.status != STATUSES.index("captured"))
    ran = runs.at(np.flatnonzero(has_run))
    texts, place = labels(trace, ran, by)
    took = ran.took_ns
    figures = _figures(place, took, ran.thread_time_ns)
    place = figures.pop("place")
    shown = np.arange(len(place))
    if sort != "label":
        shown = np.argsort(-figures[sort], kind="stable")
    shown = shown[: min(limit, MAX_GROUPS)]
    columns = (column[shown].tolist() for column in (place, *figures.values()))
    return Groups(
        by=by,
        sort=sort,
        tasks=None if tasks is None else tuple(tasks),
        num_runs=len(took),
        total_ns=int(took.sum()),
        groups=tuple(
            NodeGroup(
                label=texts[which],
                runs=num,
                total_ns=total,
                mean_ns=mean,
                median_ns=median,
                p90_ns=p90,
                longest_ns=longest,
                running_ns=None if running < 0 else running,
            )
            for which, num, total, mean, median, p90, longest, running in zip(
                *columns, strict=True
            )
        ),
        omitted=len(place) - len(shown),
        num_unfinished=int((~runs.has_ended).sum()),
        is_complete=trace.losses.is_complete,
    )


def _figures(place: Column, took: Column, running: Column) -> dict[str, Any]:
    """Return labels, and their figures by sort key."""
    order = np.lexsort((took, place))
    place, took, running = place[order], took[order], running[order]
    begin = np.flatnonzero(np.diff(place, prepend=-1))
    size = np.diff(begin, append=len(place))
    total, ran, unknown = (
        np.add.reduceat(one, begin) if len(begin) else begin
        for one in (took, running, (running < 0).astype(np.int64))
    )
    middle = took[begin + (size - 1) // 2] + took[begin + size // 2]
    return {
        "place": place[begin],
        "runs": size,
        "total": total,
        "mean": total / size,
        "median": middle // 2,
        "p90": took[begin + (9 * size + 9) // 10 - 1],
        "longest": took[begin + size - 1],
        "running": np.where(unknown > 0, -1, ran),
    }


def document_of(groups: Groups) -> dict[str, Any]:
    """Return the output of ``gradviz show summary --by ... --json``."""
    return {"schema": SCHEMA, "version": VERSION, **msgspec.to_builtins(groups)}
