"""Words about the differences between two passes, for pictures that show both."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from gradviz.analysis.changes.node_changes import (
    CHANGE_KINDS,
    ChangeKind,
    NodeChange,
    PassChanges,
)
from gradviz.analysis.changes.pass_comparison import UNCOUNTED, PlacedNode
from gradviz.render.words.text import clean, count, duration, numbered, shorten

#: A value in a box is no longer.
MAX_VALUE: Final = 24

KIND_WORDS: Final[Mapping[ChangeKind, str]] = {
    "vanished": "only in A",
    "appeared": "only in B",
    "changed": "changed",
    "moved": "another turn",
    "slower": "slower in B",
    "faster": "faster in B",
    "same": "the same",
}


def in_short(change: NodeChange) -> str:
    """Return the differences of a node in one line, the gravest first."""
    return " · ".join(filter(None, (_short(kind, change) for kind in change.kinds)))


def _short(kind: ChangeKind, change: NodeChange) -> str:
    match kind:
        case "same":
            return ""
        case "changed":
            one = next(one for one in change.differences if one.field not in UNCOUNTED)
            return f"{one.field}: {_value(one.before)} → {_value(one.after)}"
        case "slower" | "faster":
            return f"{kind}: {_times(change)}"
        case _:
            return KIND_WORDS[kind]


def tally(changes: Iterable[NodeChange]) -> str:
    """Return how many of several nodes differ in what; empty if none does."""
    found = Counter(kind for one in changes for kind in one.kinds)
    return ", ".join(
        f"{found[kind]:,} {KIND_WORDS[kind]}"
        for kind in CHANGE_KINDS
        if kind != "same" and found[kind]
    )


def counted(
    changes: Iterable[NodeChange],
    num_edges: Mapping[ChangeKind, int] = MappingProxyType({}),
) -> Iterator[tuple[ChangeKind, str]]:
    """Yield each kind of difference that there is, with its numbers for a legend.

    Args:
        changes: The changes of all nodes.
        num_edges: The number of edges that only one of both passes has.
    """
    num_nodes = Counter(kind for one in changes for kind in one.kinds)
    for kind in CHANGE_KINDS:
        found = [(num_nodes[kind], "node"), (num_edges.get(kind, 0), "edge")]
        parts = [count(number, noun) for number, noun in found if number]
        if parts:
            yield kind, f"{KIND_WORDS[kind]}: {', '.join(parts)}"


def told(change: NodeChange) -> Iterator[str]:
    """Yield all differences of a node, a line each."""
    before, after = change.before, change.after
    if before is None or after is None:
        yield KIND_WORDS[change.kinds[0]]
        return
    yield f"in A {_address(before)}, in B {_address(after)}"
    for one in change.differences:
        yield f"{one.field}: {_value(one.before, 80)} → {_value(one.after, 80)}"
    if "moved" in change.kinds:
        yield f"turn on its device: {before.place} → {after.place}"
    if change.took_before_ns is not None:
        yield f"took {_times(change)}"


def numbers(change: NodeChange) -> str:
    """Return both numbers of a node whose turn is another one, else nothing."""
    before, after = change.before, change.after
    if "moved" not in change.kinds or before is None or after is None:
        return ""
    return f"{before.index}→{after.index}"


def percent(before_ns: int, after_ns: int) -> str:
    """Return by how much a time grew or shrank."""
    return f"{(after_ns - before_ns) / before_ns:+,.0%}" if before_ns else "new"


def passes_took(changes: PassChanges) -> str:
    """Return how long both passes usually take; empty if that is not known."""
    whole = changes.comparison.duration
    if whole is None:
        return ""
    before, after = whole.usual_before.median_ns, whole.usual_after.median_ns
    many = max(whole.usual_before.passes, whole.usual_after.passes) > 1
    of = ", medians of passes alike" if many else ""
    return f"{duration(before)} → {duration(after)} ({percent(before, after)}){of}"


def by_chance(changes: PassChanges) -> str:
    """Return a warning where times may differ by chance; empty if none does."""
    kinds = {kind for one in changes.nodes for kind in one.kinds}
    if not changes.is_by_chance or not kinds & {"slower", "faster"}:
        return ""
    return "slower and faster: of too few passes to rule out chance"


def unrelated(changes: PassChanges) -> str:
    """Return what two passes are that have too little in common."""
    one = changes.comparison
    return (
        f"{one.before.trace}, pass {one.before.task} "
        f"({count(one.before.num_nodes, 'node')}) and {one.after.trace}, "
        f"pass {one.after.task} ({count(one.after.num_nodes, 'node')}) have too little "
        "in common to be compared, as different programs have"
    )


def _times(change: NodeChange) -> str:
    before, after = change.took_before_ns or 0, change.took_after_ns or 0
    return f"{duration(before)} → {duration(after)} ({percent(before, after)})"


def _value(text: str, most: int = MAX_VALUE) -> str:
    return shorten(clean(text), most) or "nothing"


def _address(one: PlacedNode) -> str:
    return numbered("", one.node, one.index)
