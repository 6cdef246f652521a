"""The part of a graph that a pass runs, and nodes' distances from their leaves."""

import math
from collections.abc import Iterable, Sequence

from gradviz.pytorch.nodes.seen_node import SeenEdge, SeenGraph, SeenNode


def number_topologically(nodes: Sequence[SeenNode], *, in_order: bool) -> None:
    """Set `topological_nr` and `newest` of nodes that have been read.

    Args:
        nodes: All that are below each other and have no numbers yet.
        in_order: True if each comes after all that lead to it.
    """
    for node in reversed(nodes if in_order else _from_root_to_leaves(nodes)):
        longest, newest = -1, node.id
        for edge in node.next_edges:
            after = edge.node
            if after is not None:
                longest = max(longest, after.topological_nr)
                newest = max(newest, after.newest)
        # In this order: other threads take a node with this number for complete.
        node.newest = newest
        node.topological_nr = longest + 1


def _from_root_to_leaves(nodes: Iterable[SeenNode]) -> list[SeenNode]:
    """The nodes, each after all that lead to it."""
    waiting = dict.fromkeys(nodes, 0)
    for node in waiting:
        for edge in node.next_edges:
            if edge.node in waiting:
                waiting[edge.node] += 1
    order = [node for node, count in waiting.items() if not count]
    for node in order:  # grows while it is walked
        for edge in node.next_edges:
            after = edge.node
            if after in waiting:
                waiting[after] -= 1
                if not waiting[after]:
                    order.append(after)
    return order


def graph_towards(
    root: SeenNode, outputs: Sequence[SeenEdge], *, accumulate: bool
) -> SeenGraph:
    """The part of the graph below a root that takes part in a pass.

    Args:
        root: Of the pass.
        outputs: Edges that were asked for; all leaves if it is empty. An edge has no
            node if none was read.
        accumulate: True if gradients go into ``.grad``, so that the outputs' own nodes
            run as well.
    """
    needed = needed_nodes(root, outputs, accumulate=accumulate) if outputs else None
    wanted = {edge.node for edge in outputs}
    dependencies = {root: 0}
    nodes = [root]
    for node in nodes:  # grows while it is walked: breadth first
        runs = needed is None or node in needed
        if not runs and node not in wanted:
            continue
        for edge in node.next_edges:
            after = edge.node
            if after is None:
                continue
            if after in dependencies:
                dependencies[after] += runs
            else:
                dependencies[after] = int(runs)
                nodes.append(after)
    reached = [
        SeenEdge(edge.node if edge.node in dependencies else None, edge.input_nr)
        for edge in outputs
    ]
    return SeenGraph(root, nodes, dependencies, needed, reached, {}, {})


def needed_nodes(
    root: SeenNode, outputs: Iterable[SeenEdge], *, accumulate: bool
) -> set[SeenNode]:
    """The nodes that run so that outputs get their gradients; see `graph_towards`.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::init_to_execute (I2-I4).
    """
    wanted = {edge.node for edge in outputs if edge.node is not None}
    reachable = _that_may_lead_to(wanted, root)
    needed = wanted.intersection(reachable) if accumulate else set()
    # After all that it leads to comes each node.
    for node in sorted(reachable, key=lambda node: node.topological_nr):
        for edge in node.next_edges:
            if edge.node in needed or edge.node in wanted:
                needed.add(node)
                break
    return needed


def _that_may_lead_to(wanted: set[SeenNode], root: SeenNode) -> set[SeenNode]:
    """The root, and the nodes below it but those below which none is wanted for sure.

    A node is not followed if all that is below it is nearer to a leaf than anything
    that is wanted, or was read before it was. So a small pass at the end of a long
    history does not walk through the history.
    """
    nearest = min((node.topological_nr for node in wanted), default=math.inf)
    oldest = min((node.id for node in wanted), default=math.inf)
    reachable = {root}
    pending = [root]
    for node in pending:  # grows while it is walked
        if node.topological_nr <= nearest or node.newest < oldest:
            continue
        for edge in node.next_edges:
            after = edge.node
            if after is not None and after not in reachable:
                reachable.add(after)
                pending.append(after)
    return reachable
