"""Which part of a model the nodes of a graph come from: stretches, and their collapse.

Note [Stretches]
~~~~~~~~~~~~~~~~
Ids grow in the order in which the forward pass made the nodes, and a gradient flows
from later nodes to earlier ones: the order of ids sorts the graph. So nodes that follow
each other in it can be contracted to one, and no cycle comes of that, whatever the
edges are. A module that is called twice, as the cell of a recurrent network is, has a
stretch for each call, unless nothing happened between them.

A leaf is made when it is first used, and used again anywhere. It belongs to a stretch
if nobody else uses it.
"""

from collections import defaultdict
from itertools import groupby
from typing import NamedTuple

import msgspec

from gradviz.analysis.graph import Graph, GraphEdge, GraphNode
from gradviz.analysis.simplification import as_one


class Stretch(NamedTuple):
    """Nodes that one part of a model made, one after the other.

    Attributes:
        module: The path of the part, such as ``Model.encoder.0``.
        members: Positions in `Graph.nodes`, at least two.
    """

    module: str
    members: tuple[int, ...]


def stretches(graph: Graph, depth: int | None = None) -> tuple[Stretch, ...]:
    """The stretches of a graph, from the last of the forward pass to the first.

    Args:
        graph: The graph.
        depth: How many names below the model's own count; all if not given.
    """
    inner = {edge.producer for edge in graph.edges} | {
        # What has been collapsed is no leaf, even where the graph ends with it.
        index
        for index, node in enumerate(graph.nodes)
        if node.members
    }
    paths = [_cut(node.module, depth) for node in graph.nodes]
    order = sorted(inner, key=lambda index: -graph.nodes[index].id)
    found: list[tuple[str, list[int]]] = [
        (path, list(members)) for path, members in groupby(order, key=paths.__getitem__)
    ]
    home = {member: number for number, (_, own) in enumerate(found) for member in own}
    for leaf, users in _users(graph, inner).items():
        homes = {home[user] for user in users}
        if len(homes) == 1:
            found[homes.pop()][1].append(leaf)
    return tuple(
        Stretch(path, tuple(sorted(members)))
        for path, members in found
        if path and len(members) > 1
    )


def collapse_modules(graph: Graph, depth: int) -> Graph:
    """Draw each stretch of a graph as one node; see Note [Stretches].

    Args:
        graph: The graph.
        depth: How many names below the model's own count: 0 draws each model as one
            node, 1 its own parts.
    """
    groups = stretches(graph, depth)
    grouped = {member for group in groups for member in group.members}
    single = [(index,) for index in range(len(graph.nodes)) if index not in grouped]
    drawn = [
        *((graph.nodes[index], (index,)) for (index,) in single),
        *((_collapsed(graph, group), group.members) for group in groups),
    ]
    drawn.sort(key=lambda one: min(one[1]))
    place = {old: new for new, (_, members) in enumerate(drawn) for old in members}
    edges = dict.fromkeys(
        GraphEdge(place[edge.producer], place[edge.consumer], edge.input_nr)
        for edge in graph.edges
        if place[edge.producer] != place[edge.consumer]
    )
    return msgspec.structs.replace(
        graph,
        nodes=tuple(node for node, _ in drawn),
        edges=tuple(sorted(edges, key=lambda edge: edge.producer)),
    )


def _collapsed(graph: Graph, stretch: Stretch) -> GraphNode:
    nodes = [graph.nodes[member] for member in stretch.members]
    return as_one(nodes, name=stretch.module, module=stretch.module)


def _users(graph: Graph, inner: set[int]) -> dict[int, list[int]]:
    """Of each leaf, who leads to it."""
    users: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if edge.consumer not in inner:
            users[edge.consumer].append(edge.producer)
    return users


def _cut(path: str, depth: int | None) -> str:
    return path if depth is None else ".".join(path.split(".")[: depth + 1])
