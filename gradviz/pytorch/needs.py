"""Which nodes of a graph run, and how far they lie from its leaves."""

from collections.abc import Iterable, Sequence

from gradviz.pytorch.seen_node import SeenGraph, SeenNode


def number_topologically(nodes: Sequence[SeenNode], *, in_order: bool) -> None:
    """Count for each node the longest path to a leaf.

    Args:
        nodes: All of them.
        in_order: Whether each comes after all that lead to it.
    """
    for node in reversed(nodes if in_order else _from_root_to_leaves(nodes)):
        longest = -1
        for edge in node.next_edges:
            after = edge.node
            if after is not None and after.topological_nr > longest:
                longest = after.topological_nr
        node.topological_nr = longest + 1


def _from_root_to_leaves(nodes: Iterable[SeenNode]) -> list[SeenNode]:
    """The nodes, each after all that lead to it; those of a cycle are left out."""
    order = []
    for node in nodes:
        node.waiting = node.num_edges
        if not node.num_edges:
            order.append(node)
    for node in order:  # grows while it is walked
        for edge in node.next_edges:
            after = edge.node
            if after is not None:
                after.waiting -= 1
                if not after.waiting:
                    order.append(after)
    return order


def nodes_needed(graph: SeenGraph, *, accumulate: bool) -> set[SeenNode] | None:
    """The nodes that run so that the outputs get their gradients; None for all.

    Args:
        graph: Of the pass.
        accumulate: Whether gradients go into ``.grad``, so that the outputs' own nodes
            run as well.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::init_to_execute (I2-I4).
    """
    if not graph.outputs:
        return None
    wanted = {edge.node for edge in graph.outputs if edge.node is not None}
    needed = set(wanted) if accumulate else set()
    for node in graph.nodes:
        node.waiting = node.num_edges
    for node in reversed(_from_root_to_leaves(graph.nodes)):
        for edge in node.next_edges:
            if edge.node in needed or edge.node in wanted:
                needed.add(node)
                break
    return needed
