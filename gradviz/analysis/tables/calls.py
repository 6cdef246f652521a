"""Calls: of modules and of optimizers, from when to when each went on."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.analysis.tables.spans import NEVER, spans
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, different

CallKind: TypeAlias = Literal["forward", "optimizer"]

#: Calls of so many threads are told apart.
MAX_THREADS: Final = 250

#: Maximum number of calls read; more are left out.
MAX_CALLS: Final = 1_000_000


class Calls(NamedTuple):
    """Calls of one kind, in the order in which they began, as columns.

    Attributes:
        thread: Thread that made each.
        begin_ns: Time of its start, on the trace's clock.
        end_ns: Time at which it returned or raised; where the trace does not say, its
            end.
        has_ended: True if the trace says that.
        failed: True if it raised.
        name: The class of what was called: a place in the trace's strings.
        module: Of a module its path, the same way; else `name` again.
    """

    thread: Column
    begin_ns: Column
    end_ns: Column
    has_ended: npt.NDArray[np.bool_]
    failed: npt.NDArray[np.bool_]
    name: Column
    module: Column

    def at(self, places: Column) -> "Calls":
        """Some of them."""
        return Calls(*(column[places] for column in self))  # type: ignore[arg-type]


def calls(trace: Trace, kind: CallKind) -> Calls:
    """The calls of one kind in a trace; of more than `MAX_CALLS` the first."""
    begun = trace.columns[f"{kind}_begun"].at(slice(MAX_CALLS))
    ended = trace.columns[f"{kind}_ended"]
    found = spans(begun, ended, ["call"])
    has_ended = found.end != NEVER
    place = np.searchsorted(ended["seq"], np.where(has_ended, found.end, 0))
    place[~has_ended] = -1
    return Calls(
        thread=begun["thread"],
        begin_ns=begun["t_ns"],
        end_ns=np.append(ended["t_ns"], last_moment(trace))[place],
        has_ended=has_ended,
        failed=np.append(ended["failed"], 0)[place] != 0,
        name=begun["name"],
        module=begun["module" if kind == "forward" else "name"],
    )


def covered(
    parts: Sequence[tuple[Column, Column]], begins: Column, ends: Column
) -> Column:
    """Return the time of each window that the union of some spans covers.

    Args:
        parts: Starts and ends of spans, in several pieces.
        begins: Starts of the windows.
        ends: Ends of the windows.
    """
    begin = np.concatenate([one for one, _ in parts])
    end = np.concatenate([other for _, other in parts])
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    if not len(begin):
        return np.zeros(len(begins), np.int64)
    # Spans that meet are one: it begins where nothing before reaches.
    is_first = np.append(True, begin[1:] > end[:-1])
    first = np.flatnonzero(is_first)
    begin, end = begin[first], end[np.append(first[1:], len(end)) - 1]
    before = np.cumsum(end - begin) - (end - begin)

    def until(moments: Column) -> Column:
        place = np.maximum(np.searchsorted(begin, moments, side="right") - 1, 0)
        inside = np.clip(moments - begin[place], 0, end[place] - begin[place])
        reached: Column = before[place] + inside
        return reached

    return until(ends) - until(begins)


def depths(some: Calls) -> Column:
    """Return the nesting depth of each call, without calls that have no end."""
    found = np.zeros(len(some.thread), np.int64)
    for thread in different(some.thread)[:MAX_THREADS]:
        mine = np.flatnonzero(some.thread == thread)
        begin = some.begin_ns[mine]
        before = np.searchsorted(begin[some.has_ended[mine]], begin)
        ended = np.sort(some.end_ns[mine][some.has_ended[mine]])
        found[mine] = before - np.searchsorted(ended, begin, side="right")
    return found


def last_moment(trace: Trace) -> int:
    """Return the time of a trace's last event, on its clock; 0 if it has none."""
    tables = (table for table in trace.columns.values() if table.num_rows)
    return max((int(table.narrow("t_ns").max()) for table in tables), default=0)
