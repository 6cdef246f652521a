"""The graph of one backward pass, as plain values, and what may be done to it.

Gradients flow from a producer to a consumer: the edges point the way of the backward
pass, from the roots to the leaves. Transforms take a graph and return another.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from gradviz.analysis.executions import (
    Execution,
    NodeStatus,
    as_list,
    definition,
    execution_columns,
)
from gradviz.analysis.passes import passes
from gradviz.analysis.ranks import longest_path_ranks
from gradviz.trace.model import InputDefinition, NodeDefinition, Trace

#: Larger graphs are not shown as a whole.
MAX_NODES: Final = 20_000
MAX_EDGES: Final = 40_000

#: A node with more inputs is shown with so many.
MAX_INPUTS: Final = 64

#: A leaf whose users lie at most this many ranks apart is drawn once.
NEAR_RANKS: Final = 3


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the graph, or one of the copies that stand for it.

    Attributes:
        id: The trace's id of the node.
        name: Its class, such as ``MulBackward0``; of a contracted chain, its ends.
        device: Where it runs, such as ``cpu``.
        sequence_nr: The later a node was made, the earlier it runs.
        topological_nr: Length of its longest path to a leaf.
        inputs: What it expects at each input, None where it accepts anything.
        location: ``path:line`` that created it, empty if unknown.
        order: Its place in the execution order, from 0; None if it did not run.
        thread: Where it ran, None if it did not.
        start_ns: Relative to the start of the pass's first node; None if not run.
        end_ns: When it completed or raised; None if it did neither.
        waited_ns: How long it was queued, None if unknown.
        status: How its evaluation ended, None if it never began.
        copies: How many copies stand for it, this one included; 1 if none.
        members: The ids of what was contracted, in order; empty otherwise.
        module: The part of a model that made it, empty outside a model.
        error: What it raised, empty if it did not.
    """

    id: int
    name: str
    device: str
    sequence_nr: int
    topological_nr: int
    inputs: tuple[InputDefinition | None, ...]
    location: str
    order: int | None
    thread: int | None
    start_ns: int | None
    end_ns: int | None
    waited_ns: int | None
    status: NodeStatus | None
    copies: int = 1
    members: tuple[int, ...] = ()
    module: str = ""
    error: str = ""


class GraphEdge(msgspec.Struct, frozen=True, gc=False):
    """A gradient's way from one node to an input of another.

    Attributes:
        producer: Position in `Graph.nodes` of the node that returns it.
        consumer: Position in `Graph.nodes` of the node that receives it.
        input_nr: Which input of the consumer.
    """

    producer: int
    consumer: int
    input_nr: int


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of one pass.

    Attributes:
        task: The pass.
        nodes: Those that ran, in order, then those only reached.
        edges: Sorted by producer, in the order of its outputs.
        omitted: Nodes that were left out, see `limit_nodes`; of those that did not run
            only what is known of them.
        duration_ns: Of the pass; None if the trace does not have its end.
        omitted_edges: Edges that were left out, because there are too many.
    """

    task: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    omitted: int = 0
    duration_ns: int | None = None
    omitted_edges: int = 0


def build_graph(trace: Trace, task: int) -> Graph:
    """The graph of pass `task`: what ran, and what could be reached from there.

    At most `MAX_NODES` of them, those that ran first, and `MAX_EDGES` edges.
    """
    columns = execution_columns(trace, [task])
    runs = {run.node: run for run in as_list(trace, columns.at(slice(MAX_NODES)))}
    order = {node: index for index, node in enumerate(runs)}
    origin = min((run.start_ns for run in runs.values()), default=0)
    nodes: list[GraphNode] = []
    edges: list[GraphEdge] = []
    omitted_edges = 0
    position = {node: index for index, node in enumerate(runs)}
    pending = list(runs)
    for index, id_ in enumerate(pending):  # grows while it is walked: breadth first
        node = definition(trace, id_)
        nodes.append(_node(node, order.get(id_), runs.get(id_), origin))
        for consumer, input_nr in node.edges:
            if consumer < 0:
                continue
            is_new = consumer not in position
            if len(edges) == MAX_EDGES or (is_new and len(pending) == MAX_NODES):
                omitted_edges += 1
                continue
            if is_new:
                position[consumer] = len(pending)
                pending.append(consumer)
            edges.append(GraphEdge(index, position[consumer], input_nr))
    return Graph(
        task=task,
        nodes=tuple(nodes),
        edges=tuple(edges),
        omitted=max(len(columns.node) - MAX_NODES, 0),
        duration_ns=next(
            (one.duration_ns for one in passes(trace) if one.task == task), None
        ),
        omitted_edges=omitted_edges,
    )


def split_shared_leaves(graph: Graph, *, near: int = NEAR_RANKS) -> Graph:
    """Draw a leaf whose users are far apart once for each of them.

    One leaf with users all over the graph, such as the shared weight of a recurrent
    network, drags an edge from each of them through the whole picture.

    Args:
        graph: The graph.
        near: A leaf is left alone if its users are at most this many ranks apart.
    """
    ranks = longest_path_ranks(
        len(graph.nodes), [(edge.producer, edge.consumer) for edge in graph.edges]
    )
    inner = {edge.producer for edge in graph.edges}
    users: dict[int, list[int]] = defaultdict(list)
    for edge in graph.edges:
        users[edge.consumer].append(ranks[edge.producer])
    copies = {
        leaf: len(at)
        for leaf, at in users.items()
        if leaf not in inner and max(at) - min(at) > near
    }
    nodes = [
        msgspec.structs.replace(node, copies=copies.get(index, 1))
        for index, node in enumerate(graph.nodes)
    ]
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
    """Draw each chain of nodes on one device, without branches, as one node."""
    followers = Counter(edge.producer for edge in graph.edges)
    leaders = Counter(edge.consumer for edge in graph.edges)
    follower = {
        edge.producer: edge.consumer
        for edge in graph.edges
        if followers[edge.producer] == leaders[edge.consumer] == 1
        and _like(graph.nodes[edge.producer], graph.nodes[edge.consumer])
    }
    followed = set(follower.values())
    heads = [index for index in range(len(graph.nodes)) if index not in followed]
    chains: list[list[int]] = []
    taken: set[int] = set()
    for head in (*heads, *sorted(followed)):  # the latter are new only in a cycle
        if head in taken:
            continue
        chains.append([])
        member: int | None = head
        while member is not None and member not in taken:
            chains[-1].append(member)
            taken.add(member)
            member = follower.get(member)
    home = {member: index for index, chain in enumerate(chains) for member in chain}
    return msgspec.structs.replace(
        graph,
        nodes=tuple(_contracted([graph.nodes[m] for m in chain]) for chain in chains),
        edges=tuple(
            GraphEdge(home[edge.producer], home[edge.consumer], edge.input_nr)
            for edge in graph.edges
            if follower.get(edge.producer) != edge.consumer
        ),
    )


def limit_nodes(graph: Graph, max_nodes: int) -> Graph:
    """Keep the first `max_nodes` nodes, which ran first; `omitted` counts the rest."""
    if len(graph.nodes) <= max_nodes:
        return graph
    return msgspec.structs.replace(
        graph,
        nodes=graph.nodes[:max_nodes],
        edges=tuple(
            edge
            for edge in graph.edges
            if edge.producer < max_nodes and edge.consumer < max_nodes
        ),
        omitted=graph.omitted + len(graph.nodes) - max_nodes,
    )


def _node(
    node: NodeDefinition, order: int | None, run: Execution | None, origin: int
) -> GraphNode:
    end_ns = None if run is None or run.end_ns is None else run.end_ns - origin
    return GraphNode(
        id=node.id,
        name=node.name,
        device=node.device,
        sequence_nr=node.sequence_nr,
        topological_nr=node.topological_nr,
        inputs=node.inputs[:MAX_INPUTS],
        location=node.location,
        order=order,
        thread=run.thread if run else None,
        start_ns=run.start_ns - origin if run else None,
        end_ns=end_ns,
        waited_ns=run.waited_ns if run else None,
        status=run.status if run else None,
        module=node.module,
        error=run.error if run else "",
    )


def _like(one: GraphNode, other: GraphNode) -> bool:
    """Whether two neighbours may be drawn as one."""
    return (one.device, one.status) == (other.device, other.status)


def _contracted(chain: Sequence[GraphNode]) -> GraphNode:
    first, last = chain[0], chain[-1]
    if first is last:
        return first
    dots = " → … → " if len(chain) > 2 else " → "
    return msgspec.structs.replace(
        first,
        name=f"{first.name}{dots}{last.name}",
        end_ns=last.end_ns,
        members=tuple(node.id for node in chain),
    )
