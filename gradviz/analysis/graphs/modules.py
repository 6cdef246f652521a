"""The parts of a model that nodes of a graph come from, and their collapse.

Note [Stretches]
~~~~~~~~~~~~~~~~
Ids grow in the order in which the forward pass made the nodes, and a gradient flows
from later nodes to earlier ones, so the order of ids sorts the graph. Graphs of
PyTorch's and those of several workers have another order that does
(`gradviz.analysis.graphs.forward_order`). So nodes that follow each other in it can be
contracted to one, and no cycle comes of that, whatever the edges are. A module that is
called twice, as the cell of a recurrent network is, has a stretch for each call, unless
nothing happened between them.

A leaf is made when it is first used, and used again anywhere. It belongs to a stretch
if nobody else uses it. One that several stretches of one module use, as the weight of
such a cell, is a member of the box that is the last of them to run; no edge leads to
it, and each of the boxes names it among its `GraphNode.leaves`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from gradviz.analysis.graphs.backward_graph import Graph, GraphNode
from gradviz.analysis.graphs.simplification import (
    as_one,
    inner_nodes,
    merge_nodes,
    noted,
)
from gradviz.analysis.nodes.op_families import op_family

#: A box for what is left of a module, between its parts, is called by so many.
MAX_OPERATIONS: Final = 3

#: Layers 0 to 5 as one: ``Net.layers.0-5``.
_RANGE: Final = re.compile(r"(?<![^.])([0-9]+)-[0-9]+(?![^.])")

#: The end of a node's name that is not its operation's.
_BACKWARD: Final = re.compile(r"(?<=.)Backward[0-9]*$")


class Stretch(NamedTuple):
    """Nodes that one part of a model made, one after the other.

    Attributes:
        module: The path of the part, such as ``Model.encoder.0``.
        members: Positions in `Graph.nodes`, at least two.
        number: Position among the part's stretches, from 1, as the forward made them.
        of: Number of the part's stretches, those of a single node included.
    """

    module: str
    members: tuple[int, ...]
    number: int = 1
    of: int = 1


def stretches(graph: Graph, depth: int | None = None) -> tuple[Stretch, ...]:
    """The stretches of a graph, from the last of the forward pass to the first.

    Args:
        graph: The graph.
        depth: Number of names below the model's own that count, those of containers
            aside; all if not given.
    """
    found = _in_a_row(graph, depth)
    home = {member: number for number, (_, own) in enumerate(found) for member in own}
    for leaf, users in _users(graph, home).items():
        homes = {home[user] for user in users}
        if len(homes) == 1:
            found[homes.pop()][1].append(leaf)
    of = Counter(path for path, _ in found)
    later: Counter[str] = Counter()
    made = []
    for path, members in found:
        number, later[path] = of[path] - later[path], later[path] + 1
        if path and len(members) > 1:
            made.append(Stretch(path, tuple(sorted(members)), number, of[path]))
    return tuple(made)


def is_between_parts(graph: Graph, path: str, depth: int) -> bool:
    """Return whether a module lies above a depth.

    Its stretches at that depth are what it made itself, between its parts.
    """
    return depth > 0 and module_at(path, depth - 1, graph.containers) == path


def collapse_modules(graph: Graph, depth: int) -> Graph:
    """Draw each stretch of a graph as one node; see Note [Stretches].

    Args:
        graph: The graph.
        depth: Number of names below the model's own that count, those of containers
            aside: 0 draws each model as one node, 1 its own parts.
    """
    found = _in_a_row(graph, depth)
    home = {member: number for number, (_, own) in enumerate(found) for member in own}
    used: dict[int, list[int]] = defaultdict(list)
    for leaf, users in _users(graph, home).items():
        homes = sorted({home[user] for user in users})
        if len({found[one][0] for one in homes}) == 1 and found[homes[0]][0]:
            home[leaf] = homes[-1]
            for one in homes:
                used[one].append(leaf)
    members: dict[int, list[int]] = defaultdict(list)
    for member in sorted(home):
        members[home[member]].append(member)
    divided = _divided({path for path, _ in found})
    boxes = [
        (own, _collapsed(graph, found[number], own, used[number], divided))
        for number, own in members.items()
        if found[number][0] and (len(own) > 1 or used[number])
    ]
    inside = {leaf for leaves in used.values() for leaf in leaves}
    edges = [edge for edge in graph.edges if edge.consumer not in inside]
    what = "whole models" if depth == 0 else f"parts of models to depth {depth}"
    return noted(merge_nodes(graph, boxes, edges), graph, f"{what} as boxes")


def num_boxes(graph: Graph, depth: int) -> int:
    """Return the number of boxes after a collapse, without leaves."""
    return sum(len(own) if not path else 1 for path, own in _in_a_row(graph, depth))


def max_depth(graph: Graph) -> int:
    """Return the depth beyond which nothing more is collapsed."""
    paths = {node.module for node in graph.nodes}
    return max((len(path.split(".")) - 1 for path in paths), default=0)


def module_at(path: str, depth: int | None, containers: frozenset[str]) -> str:
    """The module at a depth of which another one is a part, or itself.

    Args:
        path: The other module.
        depth: Number of names below the model's own that count; all if not given.
        containers: Paths of modules whose names do not; see `Graph.containers`.
    """
    if depth is None:
        return path
    names = path.split(".")
    level = -1
    for length in range(1, len(names) + 1):
        part = ".".join(names[:length])
        level += _first_of_range(part) not in containers
        if level == depth:
            return part
    return path


def _first_of_range(path: str) -> str:
    """Return the first of the modules that a path with a range stands for."""
    return _RANGE.sub(r"\1", path) if "-" in path else path


def _in_a_row(graph: Graph, depth: int | None) -> list[tuple[str, list[int]]]:
    """Nodes that follow each other and the module that they are of, leaves aside."""
    paths = {node.module for node in graph.nodes}
    parts = {path: module_at(path, depth, graph.containers) for path in paths}
    order = sorted(inner_nodes(graph), key=lambda index: -graph.nodes[index].forward_nr)
    rows = groupby(order, key=lambda index: parts[graph.nodes[index].module])
    return [(path, list(members)) for path, members in rows]


def _divided(paths: Iterable[str]) -> frozenset[str]:
    """Return the modules of which parts are boxes of their own."""
    above: set[str] = set()
    for path in paths:
        while (path := path.rpartition(".")[0]) and path not in above:
            above.add(path)
    return frozenset(above)


def _collapsed(
    graph: Graph,
    row: tuple[str, list[int]],
    own: list[int],
    leaves: list[int],
    divided: Container[str],
) -> GraphNode:
    """Return the box of a stretch, called by its module if it is all of that."""
    path, inner = row
    nodes = [graph.nodes[member] for member in own]
    used = [graph.nodes[leaf] for leaf in leaves]
    repeats = min(graph.nodes[member].repeats for member in inner)
    name = _operations(graph, inner) if path in divided else path
    made = as_one(nodes, name=name, module=path, leaves=used, repeats=repeats)
    # By their numbers boxes are sorted as nodes are; a leaf's says nothing.
    first = graph.nodes[inner[0]]
    return msgspec.structs.replace(made, id=first.id, made_nr=first.made_nr)


def _operations(graph: Graph, inner: Iterable[int]) -> str:
    """Return the operations of some nodes as a name, views only if there is no other.

    Such as ``Bmm, Softmax``, in the order of the backward pass.
    """
    names = dict.fromkeys(graph.nodes[one].name for one in inner)
    computing = [name for name in names if op_family(name) != "shapes"] or [*names]
    shown = [_BACKWARD.sub("", name) for name in computing[:MAX_OPERATIONS]]
    return ", ".join(shown + ["…"] * (len(computing) > MAX_OPERATIONS))


def _users(graph: Graph, inner: Container[int]) -> dict[int, list[int]]:
    """Return the predecessors of each leaf."""
    users: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        if edge.consumer not in inner:
            users[edge.consumer].append(edge.producer)
    return users
