"""Colors of nodes, and the legend that explains them.

Scales run from pale to dark, and so do the colors of families in their order: both can
be told apart where there are no colors at all.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphNode
from gradviz.analysis.nodes.op_families import OP_FAMILIES, op_family
from gradviz.render import style
from gradviz.render.words.text import (
    MAX_TITLE,
    clean,
    duration,
    shorten,
    size,
)

#: ``auto`` is by device where there are several, else by the family of the operation.
ColorBy: TypeAlias = Literal["auto", "order", "time", "memory", "wait", "device", "op"]

#: Of the colors whose value has no bound below: this much is the least, on a scale.
_LEAST: Final = 1


class NodeMark(NamedTuple):
    """A node that is drawn in a way of its own. Texts are clean, but not yet escaped.

    Attributes:
        text: Its first words below the title, empty for none.
        badge: Its number, where that is not the one of the execution order alone.
        outline: The kind of border.
        tooltip: All that is known of it, a line each.
    """

    text: str
    badge: str
    outline: style.Outline
    tooltip: str


class Coloring(NamedTuple):
    """Colors for the nodes of a graph.

    Attributes:
        colors: Of each node, saved tensors aside, by its id; `style.LINE` where there
            is nothing to tell.
        legend: The names of colors, if they have names.
        scale: Meaning of a scale with its least value, and its largest value; None if
            there is none.
        texts: Value of each node, by its id, if it is on a scale.
        marks: Nodes that are drawn in a way of their own, by id.
        gone: Edges that are dashed, by the positions of their ends in `Graph.nodes`.
        new: Edges that are heavy, the same way.
    """

    colors: Mapping[int, str]
    legend: tuple[tuple[str, str], ...] = ()
    scale: tuple[str, str] | None = None
    texts: Mapping[int, str] = {}
    marks: Mapping[int, NodeMark] = {}
    gone: frozenset[tuple[int, int]] = frozenset()
    new: frozenset[tuple[int, int]] = frozenset()


def coloring(graph: Graph, color_by: ColorBy, among: Iterable[Graph] = ()) -> Coloring:
    """The colors of a graph's nodes.

    Args:
        graph: The graph.
        color_by: Meaning of the colors.
        among: All graphs of the picture, whose nodes share scale and legend with it;
            the graph alone if there are none.
    """
    nodes = {node.id: node for node in graph.nodes if node.saved_by is None}
    every = [
        node
        for one in tuple(among) or (graph,)
        for node in one.nodes
        if node.saved_by is None
    ]
    match color_by:
        case "order":
            return _scale("number", nodes, every, _order, str, is_linear=True)
        case "time":
            return _scale("time", nodes, every, _usual_ns, duration)
        case "memory":
            return _scale("kept for backward", nodes, every, _saved, size)
        case "wait":
            return _scale("queued for", nodes, every, _waited_ns, duration)
        case "op":
            return _by_family(nodes, every)
        case "device":
            return _by_device(nodes, every)
        case "auto":
            devices = {node.device for node in every}
            by = _by_family if len(devices) == 1 else _by_device
            return by(nodes, every)


def _order(node: GraphNode) -> int | None:
    return node.order


def _usual_ns(node: GraphNode) -> int | None:
    """Its time as median over passes of the same shape, where there are several.

    What a thread lost in one of them is nobody's cost.
    """
    is_known = node.usual_ns is not None and node.num_alike > 1
    return node.usual_ns if is_known else node.busy_ns


def _saved(node: GraphNode) -> int | None:
    known = [one.saved_bytes for one in node.members or (node,)]
    return sum(one or 0 for one in known) or None


def _waited_ns(node: GraphNode) -> int | None:
    known = [
        one.waited_ns for one in node.members or (node,) if one.waited_ns is not None
    ]
    return sum(known) if known else None


def _scale(
    what: str,
    nodes: Mapping[int, GraphNode],
    every: Iterable[GraphNode],
    value: Callable[[GraphNode], int | None],
    written: Callable[[int], str],
    *,
    is_linear: bool = False,
) -> Coloring:
    """Colors along a scale, logarithmic if it is not said to be linear."""
    values = {id_: value(node) for id_, node in nodes.items()}
    known = {one for one in map(value, every) if one is not None}
    if not known:
        return Coloring(dict.fromkeys(values, style.LINE))

    def place(value: int) -> float:
        return value if is_linear else math.log(max(value, _LEAST))

    low, high = place(min(known)), place(max(*known, 2))
    steps = {
        value: style.ramp(round((place(value) - low) / max(high - low, 1e-9), 2))
        for value in known
    }
    return Coloring(
        {
            id_: style.LINE if value is None else steps[value]
            for id_, value in values.items()
        },
        scale=(f"{what}: {written(min(known))}", written(max(known))),
        texts={
            id_: written(value) for id_, value in values.items() if value is not None
        },
    )


def _by_device(nodes: Mapping[int, GraphNode], every: Iterable[GraphNode]) -> Coloring:
    colors = style.assign(_device(node) for node in every)
    return Coloring(
        {id_: colors[_device(node)] for id_, node in nodes.items()},
        tuple(colors.items()),
    )


def _device(node: GraphNode) -> str:
    return shorten(clean(node.device), MAX_TITLE)


def _by_family(nodes: Mapping[int, GraphNode], every: Iterable[GraphNode]) -> Coloring:
    """By the family of a node's operation; of several nodes that which took most."""
    colors: dict[str, str] = dict(zip(OP_FAMILIES, style.FAMILIES, strict=True))
    found = set(map(_family, every))
    legend = [(name, color) for name, color in colors.items() if name in found]
    legend += [("leaves", style.LEAF)] if LEAF in found else []
    return Coloring(
        {id_: colors.get(_family(node), style.LEAF) for id_, node in nodes.items()},
        tuple(legend),
    )


def _family(node: GraphNode) -> str:
    if not node.members:
        return LEAF if node.name == LEAF else op_family(node.name)
    took: Counter[str] = Counter()
    for one in node.members:
        took[_family(one)] += (one.took_ns or 0) + 1
    if len(took) > 1:
        del took[LEAF]
    return took.most_common(1)[0][0]
