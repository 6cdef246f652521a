"""Subjects of stories, and the texts that select them.

``node Mul:3``, ``queue 0``, ``thread MainThread``, ``pass 5``, ``stream sim:0/1``. The
first word may be left out where only one thing is called so; a number alone is a node.
`subject_search` finds them in a trace.
"""

from typing import Final, Literal, TypeAlias, cast, get_args

import msgspec

SubjectKind: TypeAlias = Literal["node", "queue", "thread", "pass", "stream"]

#: Columns that name a stream.
STREAM_COLUMNS: Final = ("stream", "caller_stream")


class Subject(msgspec.Struct, frozen=True):
    """A thing with events.

    Attributes:
        kind: Its kind.
        number: Its id; -1 of a stream, which has a name only.
        name: Its name.
    """

    kind: SubjectKind
    number: int
    name: str


def subject_by_id(text: str) -> Subject | None:
    """Return the subject of a text that needs no trace: an id, or a stream."""
    kind, what = parts_of(text)
    if kind == "stream":
        return Subject(kind, -1, what)
    return Subject(kind, int(what), what) if kind and is_id(what) else None


def parts_of(text: str) -> tuple[SubjectKind | None, str]:
    """Return the kind that a text says, or that follows from a number, and the rest."""
    first, _, rest = text.strip().partition(" ")
    if rest and first in get_args(SubjectKind):
        return cast("SubjectKind", first), rest.strip()
    return ("node" if is_id(text.strip()) else None), text.strip()


def is_id(text: str) -> bool:
    """Return True if a text is an id."""
    return text.isascii() and text.isdecimal() and len(text) < 19
