"""Parts of a graph: around a node, between two nodes, or the critical ones.

Each function takes a graph and returns another, in which the rest is counted as left
out, and each node whose edges are cut says so.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gradviz.analysis.causes.critical_path import CriticalPath
from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.simplification import keep_nodes
from gradviz.errors import UserError


class NotInPictureError(UserError):
    """Error for a part that is not in the graph: wrong usage."""

    exit_code = 2


def around(graph: Graph, node: int, radius: int) -> Graph:
    """Return a node with everything at most `radius` edges away, either way.

    Raises:
        NotInPictureError: The graph does not have the node.
    """
    start = _place(graph, node)
    both = _neighbors(
        way
        for edge in graph.edges
        for way in (
            (edge.producer, edge.consumer),
            (edge.consumer, edge.producer),
        )
    )
    far = f"{radius} edge{'s' * (radius != 1)}"
    kept = _reached(both, start, radius)
    return keep_nodes(
        graph, kept, f"only what is {far} around {_node_text(graph, start)}"
    )


def between(graph: Graph, one: int, other: int) -> Graph:
    """Return the nodes on paths between two nodes, in either direction.

    Raises:
        NotInPictureError: The graph does not have one of them, or no way between.
    """
    begin, end = _place(graph, one), _place(graph, other)
    ways = [(edge.producer, edge.consumer) for edge in graph.edges]
    forth, back = _neighbors(ways), _neighbors((to, at) for at, to in ways)
    for first, last in ((begin, end), (end, begin)):
        kept = _reached(forth, first) & _reached(back, last)
        if kept:
            ends = " and ".join(_node_text(graph, at) for at in (first, last))
            return keep_nodes(graph, kept, f"only what is between {ends}")
    raise NotInPictureError(
        f"no gradient flows between node {one} and node {other}: neither leads to the "
        f"other"
    )


def mark_critical(graph: Graph, path: CriticalPath) -> Graph:
    """Mark each node's place on the critical path, and its slack."""
    costs = {cost.node: cost for cost in path.nodes if cost.task == graph.task}
    nodes = tuple(
        msgspec.structs.replace(
            node,
            is_critical=costs[node.id].on_path_ns > 0,
            slack_ns=costs[node.id].slack_ns,
        )
        if node.id in costs
        else node
        for node in graph.nodes
    )
    lossy = (
        () if path.is_whole else ("the critical path is of what the trace has left",)
    )
    return msgspec.structs.replace(graph, nodes=nodes, notes=(*graph.notes, *lossy))


def only_critical(graph: Graph) -> Graph:
    """The nodes that are on the critical path, where it is known."""
    kept = [index for index, node in enumerate(graph.nodes) if node.is_critical]
    return keep_nodes(graph, kept, "only the critical path")


def critical_edges(graph: Graph) -> frozenset[int]:
    """Return the edges of the critical path: positions in `Graph.edges`.

    Those between two nodes on it; of several into one, that of the last to run: the
    others held up nobody.
    """
    last: dict[int, int] = {}
    for index, edge in enumerate(graph.edges):
        producer = graph.nodes[edge.producer]
        if not (producer.is_critical and graph.nodes[edge.consumer].is_critical):
            continue
        other = last.get(edge.consumer)
        if other is None or _ended(graph, other) < (producer.orders or (0, 0))[1]:
            last[edge.consumer] = index
    return frozenset(last.values())


def _ended(graph: Graph, edge: int) -> int:
    return (graph.nodes[graph.edges[edge].producer].orders or (0, 0))[1]


def _node_text(graph: Graph, place: int) -> str:
    return f"{graph.nodes[place].name} (node {graph.nodes[place].id})"


def _place(graph: Graph, node: int) -> int:
    for index, one in enumerate(graph.nodes):
        if one.id == node:
            return index
    raise NotInPictureError(
        f"node {node} is not among the first {len(graph.nodes):,} nodes of pass "
        f"{graph.task}, and the picture has no more"
    )


def _neighbors(ways: Iterable[tuple[int, int]]) -> Mapping[int, Sequence[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for one, other in ways:
        found[one].append(other)
    return found


def _reached(
    neighbors: Mapping[int, Sequence[int]], start: int, steps: int | None = None
) -> set[int]:
    """Return the nodes that can be reached in so many steps, or at all."""
    found = {start}
    border = [start]
    while border and (steps is None or steps > 0):
        near = {other for one in border for other in neighbors.get(one, ())}
        border = list(near - found)
        found |= near
        steps = None if steps is None else steps - 1
    return found
