"""A graph made simpler to draw: fewer boxes, shorter edges.

Each function takes a graph and returns another. `gradviz.analysis.graphs.modules` has
one more, which draws parts of a model as boxes.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gradviz.analysis.graphs.backward_graph import (
    LEAF,
    MAX_CALLS,
    MAX_EDGES,
    Graph,
    GraphEdge,
    GraphNode,
)
from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.analysis.graphs.ranks import longest_path_ranks
from gradviz.analysis.tables.executions import NodeStatus

#: A leaf whose users lie at most this many ranks apart is drawn once.
NEAR_RANKS: Final = 3

_WORST_FIRST: Final[tuple[NodeStatus, ...]] = (
    "failed",
    "unfinished",
    "completed",
    "captured",
)


@gc_paused()
def split_shared_leaves(graph: Graph) -> Graph:
    """Draw a leaf with distant users once for each of them.

    One leaf with users all over the graph, such as the shared weight of a recurrent
    network, drags an edge from each of them through the whole picture. One whose users
    are at most `NEAR_RANKS` apart is left alone.
    """
    ranks = longest_path_ranks(
        len(graph.nodes), [(edge.producer, edge.consumer) for edge in graph.edges]
    )
    inner = inner_nodes(graph)
    users: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        users[edge.consumer].append(ranks[edge.producer])
    copies = {
        leaf: len(at)
        for leaf, at in users.items()
        if leaf not in inner
        and not graph.nodes[leaf].omitted_edges
        and not graph.nodes[leaf].nested
        and max(at) - min(at) > NEAR_RANKS
    }
    nodes = list(graph.nodes)
    for leaf, number in copies.items():
        nodes[leaf] = msgspec.structs.replace(nodes[leaf], copies=number)
    edges = []
    used: set[int] = set()
    for edge in graph.edges:
        leaf = edge.consumer
        if leaf in copies and leaf in used:
            nodes.append(nodes[leaf])
            edges.append(GraphEdge(edge.producer, len(nodes) - 1, edge.input_nr))
        else:
            used.add(leaf)
            edges.append(edge)
    return msgspec.structs.replace(graph, nodes=tuple(nodes), edges=tuple(edges))


def contract_chains(graph: Graph) -> Graph:
    """Draw each chain of nodes as one node.

    In a chain each leads to nothing but the next, which nothing else leads to. It ends
    where the device changes, the part of the model, or how evaluation ended.
    """
    num_ways_out = Counter(edge.producer for edge in graph.edges)
    num_ways_in = Counter(edge.consumer for edge in graph.edges)
    following = {
        edge.producer: edge.consumer
        for edge in graph.edges
        if num_ways_out[edge.producer] == num_ways_in[edge.consumer] == 1
        and _are_alike(graph.nodes[edge.producer], graph.nodes[edge.consumer])
    }
    chains: list[list[int]] = []
    home: dict[int, int] = {}
    followed = set(following.values())
    heads = [index for index in range(len(graph.nodes)) if index not in followed]
    for head in (*heads, *sorted(followed)):  # the latter are new only in a cycle
        if head in home:
            continue
        chain: list[int] = []
        member: int | None = head
        while member is not None and member not in home:
            home[member] = len(chains)
            chain.append(member)
            member = following.get(member)
        chains.append(chain)
    edges = [
        GraphEdge(home[edge.producer], home[edge.consumer], edge.input_nr)
        for edge in graph.edges
        if following.get(edge.producer) != edge.consumer
    ]
    contracted = msgspec.structs.replace(
        graph,
        nodes=tuple(_contracted([graph.nodes[m] for m in chain]) for chain in chains),
        edges=tuple(sorted(edges, key=lambda edge: edge.producer)),
    )
    return noted(contracted, graph, "chains as boxes")


def limit_nodes(graph: Graph, max_nodes: int) -> Graph:
    """Keep the first `max_nodes` of `Graph.nodes`, and count the others.

    Also of more than `MAX_EDGES` edges the first.
    """
    if len(graph.edges) > MAX_EDGES:
        cut = Counter(edge.producer for edge in graph.edges[MAX_EDGES:])
        nodes = enumerate(graph.nodes)
        graph = msgspec.structs.replace(
            graph,
            nodes=tuple(_with_cut(node, cut[index]) for index, node in nodes),
            edges=graph.edges[:MAX_EDGES],
            omitted_edges=graph.omitted_edges + len(graph.edges) - MAX_EDGES,
        )
    if len(graph.nodes) <= max_nodes:
        return graph
    return keep_nodes(graph, range(max_nodes))


def keep_nodes(graph: Graph, kept: Iterable[int], note: str = "") -> Graph:
    """Keep the nodes at some positions, and count the others."""
    places = sorted(set(kept))
    place = {old: new for new, old in enumerate(places)}
    edges, cut = [], Counter[int]()
    num_cut = 0
    for edge in graph.edges:
        if edge.producer in place and edge.consumer in place:
            one, other = place[edge.producer], place[edge.consumer]
            edges.append(GraphEdge(one, other, edge.input_nr))
        else:
            num_cut += 1
            cut.update((edge.producer, edge.consumer))
    smaller = msgspec.structs.replace(
        graph,
        nodes=tuple(_with_cut(graph.nodes[old], cut[old]) for old in places),
        edges=tuple(edges),
        omitted_edges=graph.omitted_edges + num_cut,
    )
    left_out = graph.num_nodes - smaller.num_nodes
    smaller = msgspec.structs.replace(smaller, omitted=graph.omitted + left_out)
    return noted(smaller, graph, note) if note else smaller


def _with_cut(node: GraphNode, num_edges: int) -> GraphNode:
    if not num_edges:
        return node
    return msgspec.structs.replace(node, omitted_edges=node.omitted_edges + num_edges)


def noted(simpler: Graph, graph: Graph, note: str) -> Graph:
    """Return a simpler form of `graph`, noted if it shows less."""
    if len(simpler.nodes) == len(graph.nodes):
        return simpler
    notes = tuple(dict.fromkeys((*graph.notes, note)))
    return msgspec.structs.replace(simpler, notes=notes)


def inner_nodes(graph: Graph) -> set[int]:
    """Return the positions of nodes that are no leaf: with successors, or several."""
    several = {
        index
        for index, node in enumerate(graph.nodes)
        if node.members and node.name != LEAF
    }
    return several.union(edge.producer for edge in graph.edges)


def merge_nodes(
    graph: Graph,
    boxes: Sequence[tuple[Sequence[int], GraphNode]],
    edges: Iterable[GraphEdge] | None = None,
) -> Graph:
    """Put one node in the place of several.

    Args:
        graph: The graph.
        boxes: The positions of some nodes, sorted, and what takes their place. It
            stands where the first of them stood.
        edges: Those of the graph's edges that are drawn, all if not given. Of those
            between two boxes one is.
    """
    member_of = {
        own: which for which, (members, _) in enumerate(boxes) for own in members
    }
    nodes: list[GraphNode] = []
    place: list[int] = []
    at: dict[int, int] = {}
    for index, node in enumerate(graph.nodes):
        which = member_of.get(index, -1)
        if which < 0 or which not in at:
            at |= {which: len(nodes)} if which >= 0 else {}
            nodes.append(node if which < 0 else boxes[which][1])
            place.append(len(nodes) - 1)
        else:
            place.append(at[which])
    ways = dict.fromkeys(
        (place[edge.producer], place[edge.consumer])
        + ((0,) if edge.consumer in member_of else (edge.input_nr,))
        for edge in (graph.edges if edges is None else edges)
        if place[edge.producer] != place[edge.consumer]
    )
    return msgspec.structs.replace(
        graph,
        nodes=tuple(nodes),
        edges=tuple(sorted((GraphEdge(*way) for way in ways), key=_producer)),
    )


def as_one(
    nodes: Sequence[GraphNode],
    *,
    name: str,
    module: str,
    leaves: Iterable[GraphNode] = (),
    parameters: tuple[str, ...] = (),
    repeats: int = 1,
) -> GraphNode:
    """One node for several: its times are from the first start to the last end.

    Args:
        nodes: Nodes that it stands for, at least one.
        name: Its name.
        module: The part of a model that it is, or is of.
        leaves: Those that it leads to, besides the ones that `nodes` say.
        parameters: Names of it, if it is a leaf.
        repeats: Number of times that it comes, one after the other.
    """
    locations = {node.location for node in nodes}
    used = {leaf.id: leaf for node in nodes for leaf in node.leaves}
    used |= {leaf.id: leaf for leaf in leaves}
    return msgspec.structs.replace(
        nodes[0],
        name=name,
        module=module,
        location=locations.pop() if len(locations) == 1 else "",
        order=_least(node.order for node in nodes),
        start_ns=_least(node.start_ns for node in nodes),
        end_ns=max(
            (node.end_ns for node in nodes if node.end_ns is not None), default=None
        ),
        waited_ns=None,
        status=_worst([node.status for node in nodes]),
        members=tuple(one for node in nodes for one in node.members or (node,)),
        leaves=tuple(used.values()),
        repeats=repeats,
        error=next((node.error for node in nodes if node.error), ""),
        omitted_edges=sum(node.omitted_edges for node in nodes),
        calls=tuple(one for node in nodes for one in node.calls)[:MAX_CALLS],
        is_critical=any(node.is_critical for node in nodes),
        slack_ns=_least(node.slack_ns for node in nodes),
        parameters=parameters,
        thread_time_ns=None,
        processor_wait_ns=sum(node.processor_wait_ns for node in nodes),
        usual_ns=_together(node.usual_ns for node in nodes),
    )


def _are_alike(one: GraphNode, other: GraphNode) -> bool:
    """Return whether two neighbors may be drawn as one."""
    return (
        one.device == other.device
        and one.module == other.module
        and one.status == other.status
        and one.repeats == other.repeats
        and not one.omitted_edges
    )


def _contracted(chain: Sequence[GraphNode]) -> GraphNode:
    first, last = chain[0], chain[-1]
    if first is last:
        return first
    dots = " → … → " if len(chain) > 2 else " → "
    name = f"{first.name}{dots}{last.name}"
    return as_one(chain, name=name, module=first.module, repeats=first.repeats)


def _producer(edge: GraphEdge) -> int:
    return edge.producer


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((one for one in numbers if one is not None), default=None)


def _together(numbers: Iterable[int | None]) -> int | None:
    known = list(numbers)
    return None if None in known else sum(one or 0 for one in known)


def _worst(statuses: Sequence[NodeStatus | None]) -> NodeStatus | None:
    """Return the worst ending of several nodes."""
    for status in _WORST_FIRST:
        if status in statuses:
            return status
    return None
