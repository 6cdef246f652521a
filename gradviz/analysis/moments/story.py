"""The story of one subject: its events, found in columns.

Of a node those that are about it, that it caused in others (a gradient it sent, a task
it pushed), or that wait for its work; of a pass also the begins of those inside it; of
a stream also what becomes of its kernels, and who waits for its events.
"""

import difflib
import fnmatch
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gradviz.analysis.moments.subjects import STREAM_COLUMNS, Subject
from gradviz.analysis.tables.passes import passes, with_descendants
from gradviz.analysis.tables.worker_parts import with_parts
from gradviz.errors import UserError
from gradviz.trace.events import KINDS, kind_name
from gradviz.trace.format.model import Trace
from gradviz.trace.format.table import Column, Table

#: Maximum number of events told, unless fewer are asked for.
MAX_EVENTS: Final = 100_000

_LATEST: Final = np.iinfo(np.int64).max

_Mask: TypeAlias = npt.NDArray[np.bool_]

#: Kind of subject -> columns with its id.
_ID_COLUMNS: Final = {
    "node": ("node", "producer", "pushed_by"),
    "queue": ("queue",),
    "thread": ("thread",),
    "pass": ("task", "parent"),
}

_NAMES: Final = tuple(map(kind_name, KINDS.values()))


class NoSuchKindError(UserError):
    """No event is of that kind: wrong usage."""

    exit_code = 2


class Filter(NamedTuple):
    """Filter of events.

    Attributes:
        subject: Only events about it, None for all.
        tasks: Only events of these passes and of nested ones; None for all.
        kinds: Only events of these kinds; of all if there are none.
        begin_ns: Earliest time, counted from the origin; None for the first event.
        end_ns: Latest time; None for the last event.
    """

    subject: Subject | None = None
    tasks: tuple[int, ...] | None = None
    kinds: tuple[str, ...] = ()
    begin_ns: int | None = None
    end_ns: int | None = None


class Story(NamedTuple):
    """Some events of a trace.

    Attributes:
        tables: Kind of event -> the rows that are meant.
        num_events: Number of these events.
        omitted: Number of further events that there would be without a limit.
    """

    tables: Mapping[str, Table]
    num_events: int
    omitted: int


def select_events(
    trace: Trace, wanted: Filter, origin_ns: int, limit: int = MAX_EVENTS
) -> Story:
    """The events of a trace that are wanted, of very many the first.

    Args:
        trace: The trace.
        wanted: Filter for the events.
        origin_ns: Time from which times are counted, on the trace's clock.
        limit: Maximum number.
    """
    subject, tasks, kinds, begin_ns, end_ns = wanted
    within = None if tasks is None else np.array(with_descendants(trace, tasks))
    found = {}
    for kind in kinds or _NAMES:
        table = trace.columns[kind]
        is_meant = np.ones(table.num_rows, np.bool_)
        if within is not None:
            is_meant &= np.isin(table.narrow("task"), within)
        if subject is not None:
            is_meant &= _tells_of(trace, table, subject)
        if begin_ns is not None:
            is_meant &= table["t_ns"] >= origin_ns + begin_ns
        if end_ns is not None:
            is_meant &= table["t_ns"] <= origin_ns + end_ns
        if is_meant.any():
            found[kind] = table.at(is_meant)
    num_found = sum(table.num_rows for table in found.values())
    if num_found > limit:
        found = _first(found, limit)
    return Story(found, min(num_found, limit), max(num_found - limit, 0))


def origin_of(trace: Trace, wanted: Filter) -> tuple[int, str]:
    """Return the origin of times, with its description.

    The start of the first selected pass, or of the subject; else the first event.
    """
    tasks = wanted.tasks
    if tasks is None and wanted.subject and wanted.subject.kind == "pass":
        tasks = (wanted.subject.number,)
    if tasks:
        for one in passes(trace, tasks=tasks[:1]):
            return one.begin_ns, f"pass {one.task} began"
    firsts = [table["t_ns"][:1] for table in trace.columns.values()]
    return int(np.concatenate(firsts).min(initial=_LATEST)), "the trace began"


def kinds_named(texts: Sequence[str]) -> tuple[str, ...]:
    """The kinds of events that some texts mean: ``task_pushed``, ``task_*``.

    Raises:
        NoSuchKindError: One of them means none; the text names those like it.
    """
    found = dict.fromkeys(name for text in texts for name in _matching(text))
    return tuple(found)


def _matching(text: str) -> list[str]:
    names = fnmatch.filter(_NAMES, text)
    if names:
        return names
    close = difflib.get_close_matches(text, _NAMES)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"kinds are {', '.join(_NAMES[:3])} and so on, see docs/trace-events.md"
    )
    raise NoSuchKindError(f"no event is of kind {text!r}: {hint}")


def _tells_of(trace: Trace, table: Table, subject: Subject) -> _Mask:
    """Return which rows of a table are about a subject."""
    if subject.kind == "stream":
        return _tells_of_stream(trace, table, subject.name)
    numbers = np.array([subject.number], np.int64)
    if subject.kind == "pass":
        numbers = np.array([*with_parts(trace, [subject.number])], np.int64)
    found = np.zeros(table.num_rows, np.bool_)
    for name in _ID_COLUMNS[subject.kind]:
        if name in table:
            found |= np.isin(table.narrow(name), numbers)
    return found


def _tells_of_stream(trace: Trace, table: Table, stream: str) -> _Mask:
    """Return which rows name a stream, or concern its kernels or events."""
    texts = [place for place, text in enumerate(trace.strings) if text == stream]
    found = np.zeros(table.num_rows, np.bool_)
    for name in STREAM_COLUMNS:
        if name in table:
            found |= np.isin(table.narrow(name), texts)
    if "kernel" in table:
        launched = trace.columns["kernel_launched"]
        own = launched["kernel"][np.isin(launched.narrow("stream"), texts)]
        found |= np.isin(table.narrow("kernel"), own)
    if "event" in table:
        found |= np.isin(_marked_by(trace.columns["event_recorded"], table), texts)
    return found


def _marked_by(recorded: Table, table: Table) -> Column:
    """Of each row the stream on which its event was last recorded before, -1 for none.

    An event may be recorded again, on another stream.
    """
    events = np.concatenate((recorded["event"], table["event"]))
    seqs = np.concatenate((recorded["seq"], table["seq"]))
    streams = np.concatenate((recorded["stream"], np.full(table.num_rows, -1)))
    order = np.lexsort((seqs, events))
    is_record = order < recorded.num_rows
    last = np.maximum.accumulate(np.where(is_record, np.arange(len(order)), -1))
    record = order[np.maximum(last, 0)]
    is_known = (last >= 0) & (events[record] == events[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.where(is_known, streams[record], -1)
    return found[recorded.num_rows :]


def _first(tables: Mapping[str, Table], limit: int) -> dict[str, Table]:
    """The first so many rows of some tables, by `seq`."""
    if not limit:
        return {}
    seqs = np.concatenate([table.narrow("seq") for table in tables.values()])
    last = int(np.partition(seqs, limit - 1)[limit - 1])
    first = {
        kind: table.at(slice(int(np.searchsorted(table.narrow("seq"), last, "right"))))
        for kind, table in tables.items()
    }
    return {kind: table for kind, table in first.items() if table.num_rows}
