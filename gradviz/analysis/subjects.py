"""Subjects: how people say of what they want the story.

``node Mul:3``, ``queue 0``, ``thread MainThread``, ``pass 5``, ``stream sim:0/1``. The
first word may be left out where only one thing is called so; a number alone is a node.
"""

import difflib
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec

from gradviz.analysis.addresses import MAX_NAMED, find_node
from gradviz.analysis.executions import MAX_TEXT, definition
from gradviz.analysis.passes import select_task
from gradviz.errors import UserError
from gradviz.trace.model import Trace
from gradviz.trace.strings import shortened
from gradviz.trace.table import different

SubjectKind: TypeAlias = Literal["node", "queue", "thread", "pass", "stream"]

#: Columns that name a stream.
STREAM_COLUMNS: Final = ("stream", "caller_stream")

#: What every caller's queue is called besides its name.
_CPU: Final = "cpu"


class NoSuchSubjectError(UserError):
    """There is nothing of that name in a trace, or several things: wrong usage."""

    exit_code = 2


class Subject(msgspec.Struct, frozen=True):
    """Something that events tell of.

    Attributes:
        kind: What it is.
        number: Its id; -1 of a stream, which has a name only.
        name: What it is called.
    """

    kind: SubjectKind
    number: int
    name: str


def find_subject(trace: Trace, text: str, task: str = "last") -> Subject:
    """What `text` means; see above.

    Args:
        trace: The trace to look in.
        text: What somebody wrote.
        task: In which pass to look for a node that is not called by its id.

    Raises:
        UserError: It means nothing in this trace, or several things.
    """
    kind, what = _parts(text)
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


def subject_by_id(text: str) -> Subject | None:
    """What `text` means whatever the trace is: an id, or a stream. Else None."""
    kind, what = _parts(text)
    if kind == "stream":
        return Subject(kind, -1, what)
    return Subject(kind, int(what), what) if kind and _is_id(what) else None


def _parts(text: str) -> tuple[SubjectKind | None, str]:
    """The kind that is said, or follows from a number, and the rest."""
    first, _, rest = text.strip().partition(" ")
    if rest and first in get_args(SubjectKind):
        return cast("SubjectKind", first), rest.strip()
    return ("node" if _is_id(text.strip()) else None), text.strip()


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _node(trace: Trace, what: str, task: str) -> Subject:
    if not _is_id(what):
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
    """All that something is called."""
    is_callers = one.kind == "queue" and trace.queues[one.number].device == -1
    return {one.name, _CPU} if is_callers else {one.name}


def _exactly(one: Subject) -> str:
    """What means this one and nothing else."""
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
