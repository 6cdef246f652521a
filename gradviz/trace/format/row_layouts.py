"""Layouts of rows: which events a row of integers stands for.

A row mostly stands for one event. What happens to most nodes is reported in three calls
though, and kept in three rows that stand for eight events (`node_reports.JOINED`): a
row costs the thread that reports it some 200 ns, whatever its length, and the writer
has fewer columns to encode. In a file there are only the events themselves.

The events of one row happen together, so one reading of the clock does for them: they
are a nanosecond apart, in their order.
"""

import inspect
from collections.abc import Hashable
from typing import Final, NamedTuple

from gradviz.trace.events import INFERRED, KINDS, Event, kind_name, own_columns
from gradviz.trace.format.columns import Part, RowLayout
from gradviz.trace.node_reports import JOINED, NodeReports

#: Columns that every kind has before its own.
COMMON: Final = ("t_ns", "task", "node")

_KINDS: Final = {kind_name(kind): kind for kind in KINDS.values()}


class Inferred(NamedTuple):
    """The key of rows of inferred events; see `Event.inferred`."""

    kind: type[Event]


def columns_of(kind: type[Event]) -> tuple[str, ...]:
    """Return the columns of a kind of event, in their order."""
    return (*COMMON, *(one.name for one in own_columns(kind)))


def joined_columns(report: str) -> tuple[str | int, ...]:
    """Return the columns of the rows of a joined report: names, and constants.

    They begin as those of every event and go on with the report's other parameters, in
    their order. Then come constants of its events, then what only the recorder knows.
    """
    parameters = tuple(inspect.signature(getattr(NodeReports, report)).parameters)[1:]
    sources = [source for one in _sources(report).values() for source in one]
    constants = (one for one in sources if isinstance(one, int))
    return tuple(dict.fromkeys((*COMMON, *parameters, *constants, *sources)))


def _sources(report: str) -> dict[type[Event], list[str | int]]:
    """Return the source of each column of each event of a joined report."""
    return {
        (kind := _KINDS[event.name]): [*map(event.source, columns_of(kind))]
        for event in JOINED[report]
    }


def _plain(kind: type[Event], flag: int = 0) -> RowLayout:
    width = len(columns_of(kind))
    return RowLayout(width, (Part(kind.code | flag, 0, tuple(range(width))),))


def _joined(report: str) -> RowLayout:
    columns = joined_columns(report)
    parts = [
        Part(kind.code, delay_ns, tuple(map(columns.index, sources)))
        for delay_ns, (kind, sources) in enumerate(_sources(report).items())
    ]
    return RowLayout(len(columns), tuple(parts))


#: Of each list of rows that a thread has: what its rows stand for. The key is a kind of
#: event, or the name of a joined report.
LAYOUTS: Final[dict[Hashable, RowLayout]] = {
    **{kind: _plain(kind) for kind in KINDS.values()},
    **{Inferred(kind): _plain(kind, INFERRED) for kind in KINDS.values()},
    **{report: _joined(report) for report in JOINED},
}
