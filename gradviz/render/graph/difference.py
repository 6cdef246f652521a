"""Pictures of two graphs as one: appeared, vanished, changed, moved, slower nodes.

Each difference has a color, and its words stand in the box, so that a picture without
colors tells the same.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gradviz.analysis.changes.node_changes import (
    CHANGE_KINDS,
    ChangeKind,
    NodeChange,
    PassChanges,
)
from gradviz.analysis.changes.pass_comparison import ComparedPass
from gradviz.analysis.changes.union_graph import EdgeOwner, UnionGraph
from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.render import style
from gradviz.render.graph.chips import leaves_by_user
from gradviz.render.graph.coloring import Coloring, NodeMark
from gradviz.render.graph.graph_scene import LegendEntry, Scene, build_scene
from gradviz.render.graph.tooltip import tooltip
from gradviz.render.style import Outline
from gradviz.render.words.change_text import (
    by_chance,
    counted,
    in_short,
    numbers,
    passes_took,
    tally,
    told,
)
from gradviz.render.words.text import clean, count, place

#: Outline of each kind of difference, besides its color.
OUTLINES: Mapping[ChangeKind, Outline] = {"vanished": "dashed", "appeared": "bold"}


class Difference(NamedTuple):
    """Two compared passes.

    Attributes:
        changes: Their nodes.
        union: Their graphs as one.
    """

    changes: PassChanges
    union: UnionGraph


def difference_scene(graph: Graph, difference: Difference) -> Scene:
    """Decide on every text, color and size of a picture of two graphs.

    Args:
        graph: `UnionGraph.graph`, or what was made of it to show less.
        difference: Difference between the two passes.
    """
    marks = {node.id: _mark(node, difference) for node in graph.nodes}
    leaves = {  # of many leaves of a box the first are shown: those that differ
        user: tuple(sorted(own, key=lambda one: marks[graph.nodes[one].id] is None))
        for user, own in leaves_by_user(graph).items()
    }
    owners = _owners(graph, difference.union)
    colors = Coloring(
        {
            node.id: style.CHANGES[_gravest(_changes_of(node, difference))]
            for node in graph.nodes
        },
        marks={id_: mark for id_, mark in marks.items() if mark is not None},
        gone=frozenset(ends for ends, owner in owners.items() if owner == "before"),
        new=frozenset(ends for ends, owner in owners.items() if owner == "after"),
    )
    scene = build_scene(graph, leaves=leaves, colors_of=lambda _: colors)
    comparison = difference.changes.comparison
    notes = [scene.notes, by_chance(difference.changes)]
    return scene._replace(
        title=" → ".join(_titles(comparison.before, comparison.after)),
        subtitle=" · ".join(_words(difference)),
        notes=", ".join(filter(None, notes)),
        legend=tuple(_legend(difference)),
    )


def _titles(before: ComparedPass, after: ComparedPass) -> Iterator[str]:
    for letter, one in (("A", before), ("B", after)):
        name = clean(place(one.trace)) or "a recording"
        yield f"{letter}: {name}, pass {one.task}"


def _words(difference: Difference) -> Iterator[str]:
    comparison = difference.changes.comparison
    yield f"{count(comparison.num_matched, 'node')} in both"
    if took := passes_took(difference.changes):
        yield f"the passes took {took}"
    graph = difference.union.graph
    if graph.omitted:
        yield f"{graph.omitted:,} more left out"
    yield "numbers: execution order of A, of what is only in B that of B"


def _changes_of(node: GraphNode, difference: Difference) -> list[NodeChange]:
    """Return the changes of all that a box stands for."""
    changes = difference.union.changes
    ids = (one.id for one in node.members or (node,))
    return [changes[id_] for id_ in ids if id_ in changes]


def _gravest(changes: Sequence[NodeChange]) -> ChangeKind:
    found = {one.kinds[0] for one in changes}
    return next((kind for kind in CHANGE_KINDS if kind in found), "same")


def _mark(node: GraphNode, difference: Difference) -> NodeMark | None:
    """Return how a box is drawn that differs; None if nothing of it does."""
    changes = _changes_of(node, difference)
    kind = _gravest(changes)
    if kind == "same":
        return None
    is_all = all(one.kinds[0] == kind for one in changes)
    outline = OUTLINES.get(kind, "plain") if is_all else "plain"
    if node.members:
        words = tally(changes)
        return NodeMark(words, "", outline, f"{words}\n{_tooltip(node, difference)}")
    lines = map(clean, (*told(changes[0]), ""))
    text = "\n".join(lines) + _tooltip(node, difference)
    if node.status in {"failed", "unfinished"}:
        outline = "alarm"
    return NodeMark(in_short(changes[0]), numbers(changes[0]), outline, text)


def _tooltip(node: GraphNode, difference: Difference) -> str:
    """Return all that is known of a node, under the id that it has in its own trace."""
    ids = difference.union.ids
    members = tuple(replace(one, id=ids.get(one.id, one.id)) for one in node.members)
    return tooltip(replace(node, id=ids.get(node.id, node.id), members=members))


def _owners(graph: Graph, union: UnionGraph) -> dict[tuple[int, int], EdgeOwner]:
    """Return which edges between boxes only one of both passes has."""
    at = defaultdict(list)
    for position, node in enumerate(graph.nodes):
        for member in node.members or (node,):
            at[member.id].append(position)
    found: dict[tuple[int, int], set[EdgeOwner]] = defaultdict(set)
    for (producer, consumer), owner in union.edges.items():
        for one in at.get(producer, ()):
            for other in at.get(consumer, ()):
                found[one, other].add(owner)
    return {ends: owners.pop() for ends, owners in found.items() if len(owners) == 1}


def _legend(difference: Difference) -> Iterator[LegendEntry]:
    """Yield an entry for each kind of difference that there is."""
    edges = Counter(difference.union.edges.values())
    num_edges: dict[ChangeKind, int] = {
        "vanished": edges["before"],
        "appeared": edges["after"],
    }
    for kind, text in counted(difference.changes.nodes, num_edges):
        color = style.CHANGES[kind]
        outline = OUTLINES.get(kind, "plain")
        yield LegendEntry(text, color, style.tint(color, 0.3), outline)
