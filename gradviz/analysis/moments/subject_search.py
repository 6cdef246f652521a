"""Search for a subject in a trace, by its names; see `subjects`."""

import difflib
from collections.abc import Sequence
from typing import Final

from gradviz.analysis.moments.subjects import (
    STREAM_COLUMNS,
    Subject,
    SubjectKind,
    is_id,
    parts_of,
)
from gradviz.analysis.nodes.addresses import MAX_NAMED, find_node
from gradviz.analysis.tables.executions import MAX_TEXT, definition
from gradviz.analysis.tables.passes import select_task
from gradviz.errors import UserError
from gradviz.trace.format.model import Trace
from gradviz.trace.format.strings import shortened
from gradviz.trace.format.table import different

#: Second name of every caller's queue.
_CPU: Final = "cpu"


class NoSuchSubjectError(UserError):
    """There is nothing of that name in a trace, or several things: wrong usage."""

    exit_code = 2


def find_subject(trace: Trace, text: str, task: str = "last") -> Subject:
    """Return the meaning of `text`; see above.

    Args:
        trace: The trace to look in.
        text: Text that somebody wrote.
        task: Pass in which to look for a node that is not called by its id.

    Raises:
        UserError: It means nothing in this trace, or several things.
    """
    kind, what = parts_of(text)
    if kind == "pass":
        found = select_task(trace, what)
        return Subject("pass", found[0], f"pass {found[0]}")
    if kind == "node":
        return _node(trace, what, task)
    some = [one for one in _named(trace) if kind in {None, one.kind}]
    by_id = [one for one in some if kind and str(one.number) == what]
    meant = by_id or [one for one in some if what in _names(trace, one)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise NoSuchSubjectError(_several(what, meant))
    if kind is None:
        return _node(trace, what, task)
    raise NoSuchSubjectError(_none(kind, what, some))


def _node(trace: Trace, what: str, task: str) -> Subject:
    if not is_id(what):
        number = find_node(trace, select_task(trace, task)[0], what)
    elif (number := int(what)) not in trace.nodes and not _occurs(trace, number):
        raise NoSuchSubjectError(
            f"the trace has no node {what}; it has {len(trace.nodes):,}"
            + (
                f", from {min(trace.nodes)} to {max(trace.nodes)}"
                if trace.nodes
                else ""
            )
        )
    return Subject("node", number, definition(trace, number).name)


def _occurs(trace: Trace, node: int) -> bool:
    return any((table.narrow("node") == node).any() for table in trace.columns.values())


def _named(trace: Trace) -> list[Subject]:
    """All queues, threads and streams of a trace."""
    streams = {
        trace.strings[place]
        for table in trace.columns.values()
        for name in STREAM_COLUMNS
        if name in table
        for place in different(table.narrow(name)).tolist()
    }
    return [
        *(Subject("queue", one.id, one.name) for one in trace.queues.values()),
        *(Subject("thread", one.number, one.name) for one in trace.threads.values()),
        *(Subject("stream", -1, name) for name in sorted(streams) if name),
    ]


def _names(trace: Trace, one: Subject) -> set[str]:
    """Return all names of a subject."""
    is_callers = one.kind == "queue" and trace.queues[one.number].device == -1
    return {one.name, _CPU} if is_callers else {one.name}


def _exactly(one: Subject) -> str:
    """Return the text that means this one and nothing else."""
    what = one.name if one.kind == "stream" else str(one.number)
    return repr(shortened(f"{one.kind} {what}", MAX_TEXT))


def _several(text: str, found: Sequence[Subject]) -> str:
    few = ", ".join(map(_exactly, found[:MAX_NAMED]))
    more = len(found) - MAX_NAMED
    rest = f" and {more:,} more" if more > 0 else ""
    return f"{shortened(text, MAX_TEXT)!r} means {len(found):,} things: {few}{rest}"


def _none(kind: SubjectKind, what: str, known: Sequence[Subject]) -> str:
    said = f"the trace has no {kind} {shortened(what, MAX_TEXT)!r}"
    names = {one.name: one for one in known[:10_000]}
    if not names:
        return f"{said}, and no other"
    close = difflib.get_close_matches(what, list(names), MAX_NAMED)
    if close:
        return f"{said}. Did you mean {' or '.join(map(repr, close))}?"
    few = ", ".join(repr(shortened(name, MAX_TEXT)) for name in list(names)[:MAX_NAMED])
    return f"{said}; it has {len(known):,}: {few}" + (", …" * (len(known) > MAX_NAMED))
