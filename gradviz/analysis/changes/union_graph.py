"""The graphs of two passes as one: common parts once, others with their owner.

Nodes that both have are those of the one pass, with its ids and its order. A node that
only the other pass has gets an id that is free in the one pass, and stands in the
forward order behind its neighbor there.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from gradviz.analysis.changes.node_changes import NodeChange, PassChanges
from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphEdge, GraphNode
from gradviz.analysis.graphs.forward_order import order_by_sequence

#: The passes, of the two compared, that have an edge.
EdgeOwner: TypeAlias = Literal["both", "before", "after"]

#: A leaf is made for its first user; see `order_by_sequence`.
_LAST: Final = 1 << 62


class UnionGraph(NamedTuple):
    """Two graphs as one.

    Attributes:
        graph: All nodes and edges; passes that nodes called are not among them.
        changes: Of each node, by its id in `graph`.
        ids: Of each node that only the other pass has, its id there, by that in
            `graph`.
        edges: Passes that have an edge, by the ids of its ends in `graph`.
    """

    graph: Graph
    changes: Mapping[int, NodeChange]
    ids: Mapping[int, int]
    edges: Mapping[tuple[int, int], EdgeOwner]


def union_graph(before: Graph, after: Graph, changes: PassChanges) -> UnionGraph:
    """Put the graphs of two compared passes into one.

    Args:
        before: That of the one pass.
        after: That of the other pass.
        changes: Of these passes.
    """
    partner = {
        one.after.node: one.before.node
        for one in changes.nodes
        if one.before and one.after
    }
    nodes = [replace(node, calls=()) for node in before.nodes]
    place = {node.id: at for at, node in enumerate(nodes)}
    free = max(place, default=0) + 1
    modules = _Modules(before, after, partner)
    others: list[int] = []  # of each node of the other graph its place in the union
    ids: dict[int, int] = {}
    for node in after.nodes:
        own = partner.get(node.id)
        if own in place:
            others.append(place[own])
            continue
        others.append(len(nodes))
        new_id = free + len(ids)
        ids[new_id] = node.id
        module = modules.in_union(node.module)
        nodes.append(replace(node, id=new_id, calls=(), module=module))
    edges, owners = _edges(before, after, nodes, others)
    order = _forward_order(before, after, others, len(nodes), edges, nodes)
    graph = replace(
        before,
        nodes=tuple(
            replace(node, made_nr=made_nr)
            for node, made_nr in zip(nodes, order, strict=True)
        ),
        edges=tuple(edges),
        omitted=before.omitted + after.omitted,
        omitted_edges=before.omitted_edges + after.omitted_edges,
        containers=before.containers | after.containers,
        is_finished=before.is_finished and after.is_finished,
    )
    by_before, by_after = changes.by_node_before(), changes.by_node_after()
    known = {
        node.id: by_after.get(ids[node.id])
        if node.id in ids
        else by_before.get(node.id)
        for node in nodes
    }
    told = {id_: change for id_, change in known.items() if change is not None}
    return UnionGraph(graph, told, ids, owners)


class _Modules:
    """The other pass's parts of the model, by their names in this one.

    Where a layer was put in, those behind it have other numbers: the same path is then
    another part.
    """

    def __init__(self, before: Graph, after: Graph, partner: Mapping[int, int]) -> None:
        mine = {node.id: node.module for node in before.nodes}
        self._mine = {path for module in mine.values() for path in _above(module)}
        self._named: dict[str, str] = {}
        for node in after.nodes:
            own = mine.get(partner.get(node.id, -1), "")
            if own.count(".") == node.module.count("."):
                pairs = zip(_above(node.module), _above(own), strict=True)
                for theirs, path in pairs:
                    self._named.setdefault(theirs, path)

    def in_union(self, module: str) -> str:
        """Return the path of a part; of one that only the other pass has a free one."""
        around = next((path for path in _above(module) if path in self._named), "")
        path = self._named.get(around, "") + module.removeprefix(around)
        is_taken = module not in self._named and path in self._mine
        return f"{path} (B)" if is_taken else path


def _above(module: str) -> list[str]:
    """Return a path, then those of the parts around it."""
    parts = module.split(".") if module else []
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _edges(
    before: Graph, after: Graph, nodes: list[GraphNode], others: list[int]
) -> tuple[list[GraphEdge], dict[tuple[int, int], EdgeOwner]]:
    """Return the edges of both graphs, and the owner of each."""
    mine = dict.fromkeys(before.edges)
    theirs = dict.fromkeys(
        GraphEdge(others[one.producer], others[one.consumer], one.input_nr)
        for one in after.edges
    )
    added = [one for one in theirs if one not in mine]
    # Edges of one graph may be alike: all of them stay.
    edges = sorted([*before.edges, *added], key=lambda one: one.producer)
    ends = [
        {(nodes[one.producer].id, nodes[one.consumer].id) for one in some}
        for some in (mine, theirs)
    ]
    owners: dict[tuple[int, int], EdgeOwner] = dict.fromkeys(ends[0] & ends[1], "both")
    owners |= dict.fromkeys(ends[0] - ends[1], "before")
    owners |= dict.fromkeys(ends[1] - ends[0], "after")
    return edges, owners


def _forward_order(
    before: Graph,
    after: Graph,
    others: list[int],
    size: int,
    edges: list[GraphEdge],
    nodes: list[GraphNode],
) -> list[int]:
    """Return the place of each node in the forward, as far as edges allow."""
    rank = [(0, 0)] * size
    for number, at in enumerate(_made(before)):
        rank[at] = (number, 0)
    num_before = len(before.nodes)
    last = (-1, 0)
    for at in _made(after):
        if others[at] >= num_before:
            rank[others[at]] = last = (last[0], last[1] + 1)
        elif after.nodes[at].name != LEAF:
            last = rank[others[at]]
    place = {
        at: number
        for number, at in enumerate(sorted(range(size), key=rank.__getitem__))
    }
    return order_by_sequence(
        [_LAST if node.name == LEAF else place[at] for at, node in enumerate(nodes)],
        [place[at] for at in range(size)],
        ((one.producer, one.consumer) for one in edges),
    )


def _made(graph: Graph) -> Iterator[int]:
    """Yield the positions of nodes in the order in which they were made."""
    return iter(
        sorted(range(len(graph.nodes)), key=lambda at: graph.nodes[at].forward_nr)
    )
