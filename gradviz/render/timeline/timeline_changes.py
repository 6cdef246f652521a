"""Timelines of two traces below each other, colored by what differs.

Each difference has a look besides its color, and words where one points at a bar, so
that a picture without colors tells the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from gradviz.analysis.changes.node_changes import (
    ChangeKind,
    NodeChange,
    PassChanges,
)
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render import style
from gradviz.render.timeline.timeline_colors import LegendItem, Look, SpanColors
from gradviz.render.words.change_text import (
    by_chance,
    counted,
    in_short,
    passes_took,
    tally,
    told,
)
from gradviz.render.words.text import clean, operation

#: Maximum number of slower and faster nodes named above the picture.
MAX_NAMED: Final = 4

#: Looks of nodes that only one of the two passes has.
_LOOKS: Final[Mapping[ChangeKind, Look]] = {"vanished": "gone", "appeared": "new"}

#: A node of a timeline: its pass and its id.
NodeInPass: TypeAlias = tuple[int, int]


class TimelineSide(NamedTuple):
    """One of several timelines of two traces.

    Attributes:
        name: Letter and file of the trace: ``A: first.gvt``.
        changes: Of the nodes that were compared, by pass and id.
    """

    name: str
    changes: Mapping[NodeInPass, NodeChange]


class Beside(NamedTuple):
    """Timelines of two traces.

    Attributes:
        sides: One for each timeline.
        compared: The pairs of passes that were compared.
        alarms: Parts that could not be compared, a line each.
    """

    sides: tuple[TimelineSide, ...]
    compared: tuple[PassChanges, ...]
    alarms: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Title of the comparison."""
        return " → ".join(dict.fromkeys(one.name for one in self.sides))

    def words(self) -> Iterator[str]:
        """Yield what is to be said of both, a few words each."""
        for one in self.compared:
            pair = one.comparison
            if took := passes_took(one):
                passes = f"{pair.before.task} → {pair.after.task}"
                yield f"pass {passes} took {took}"
        for change in _most_apart(self.compared):
            node = change.before or change.after
            name = clean(operation(node.name)) if node else ""
            yield f"#{node.index if node else '?'} {name} {in_short(change)}"
        yield from dict.fromkeys(filter(None, map(by_chance, self.compared)))

    def colors(self) -> list[SpanColors]:
        """Return the colors and looks of the spans of each timeline."""
        items = _legend(self.compared)
        return [_colors(one.changes, items) for one in self.sides]


def _colors(
    changes: Mapping[NodeInPass, NodeChange], items: Sequence[LegendItem]
) -> SpanColors:

    def kind(span: Span) -> ChangeKind | None:
        change = changes.get((span.task, span.node))
        return change.kinds[0] if change else None

    def of(span: Span) -> str:
        found = kind(span)
        return style.REST if found is None else style.CHANGES[found]

    def look(span: Span) -> Look | None:
        found = kind(span)
        return None if found is None else _LOOKS.get(found)

    def words(spans: Sequence[Span]) -> list[str]:
        keys = dict.fromkeys((one.task, one.node) for one in spans)
        found = [changes[key] for key in keys if key in changes]
        if len(spans) == 1:
            return [*told(found[0])] if found else []
        return [tally(found)] if tally(found) else []

    return SpanColors(of, items, look, words)


def _legend(compared: Sequence[PassChanges]) -> list[LegendItem]:
    return [
        LegendItem(text, _LOOKS.get(kind, "bar"), style.CHANGES[kind])
        for kind, text in counted(one for pair in compared for one in pair.nodes)
    ]


def _most_apart(compared: Sequence[PassChanges]) -> list[NodeChange]:
    """Return the nodes whose times differ most."""
    found = [
        one
        for pair in compared
        for one in pair.nodes
        if {"slower", "faster"} & {*one.kinds}
    ]
    found.sort(
        key=lambda one: -abs((one.took_after_ns or 0) - (one.took_before_ns or 0))
    )
    return found[:MAX_NAMED]
