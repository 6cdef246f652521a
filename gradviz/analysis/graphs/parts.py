"""A graph in parts, and these in parts of their own, down to single nodes.

Parts are the modules of a model: each call of one is a part, see Note [Stretches] of
`gradviz.analysis.graphs.modules`. Where more nodes follow each other than anybody can
look at, because there are no modules or large ones, equal shares of them are parts, in
the order of their ids. As that order sorts the graph, no cycle comes of drawing parts
as boxes.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.modules import max_depth, module_at

#: A part with more inside is divided into shares, of which there are about so many.
MAX_INSIDE: Final = 150
NUM_SHARES: Final = 60

#: Modules that lie deeper are no parts.
MAX_DEPTH: Final = 30


class GraphPart(NamedTuple):
    """Nodes that belong together.

    Attributes:
        name: Its name; empty for the whole graph.
        module: The path of the module that it is, or is a share of.
        inside: Its contents, in order: parts, and nodes as positions in `Graph.nodes`.
    """

    name: str
    module: str
    inside: tuple["GraphPart | int", ...]


def divide(graph: Graph, members: Iterable[int]) -> GraphPart:
    """A graph as the part that holds all others.

    Args:
        graph: The graph.
        members: Those of its nodes that are divided, as positions in `Graph.nodes`.
    """
    order = sorted(members, key=lambda index: -graph.nodes[index].forward_nr)
    return GraphPart("", "", _divided(graph, "", order, 0, max_depth(graph)))


def nodes_of(inside: GraphPart | int) -> list[int]:
    """All nodes in a part, or the one."""
    found: list[int] = []
    pending = [inside]
    while pending:
        one = pending.pop()
        if isinstance(one, int):
            found.append(one)
        else:
            pending += reversed(one.inside)
    return found


def _divided(
    graph: Graph, module: str, order: Sequence[int], depth: int, deepest: int
) -> tuple[GraphPart | int, ...]:
    """Return the contents of a module: its own nodes, and parts for modules in it."""
    paths: dict[str, str] = {}

    def path_of(index: int) -> str:
        path = graph.nodes[index].module
        if path not in paths:
            paths[path] = module_at(path, depth, graph.containers)
        return paths[path]

    if depth > min(deepest, MAX_DEPTH):
        return _shared(module, order)
    found: list[GraphPart | int] = []
    for path, group in groupby(order, key=path_of):
        row = list(group)
        if path == module or len(row) == 1:
            found += row
            continue
        inside = _divided(graph, path, row, depth + 1, deepest)
        if len(row) == len(order):
            return inside
        found.append(GraphPart(path, path, inside))
    return _shared(module, found)


def _shared(
    module: str, inside: Sequence[GraphPart | int]
) -> tuple[GraphPart | int, ...]:
    """Return a module's contents, or shares that follow each other if too many."""
    if len(inside) <= MAX_INSIDE:
        return tuple(inside)
    levels = math.ceil(math.log(len(inside), NUM_SHARES))
    size = math.ceil(len(inside) ** (1 - 1 / levels))
    shares = [inside[at : at + size] for at in range(0, len(inside), size)]
    return tuple(
        GraphPart(
            f"part {number} of {len(shares)}",
            module,
            _shared(module, share),
        )
        for number, share in enumerate(shares, 1)
    )
