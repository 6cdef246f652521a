"""The size of a graph: nodes, edges, and bytes kept for the backward."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradviz.diagnostics.graph_walk import nodes_from, saved_by
from gradviz.diagnostics.own_tensors import check_own_tensor, is_pytorchs
from gradviz.engine.graph.node import Node
from gradviz.ops.variables.variable import Variable


class Share(NamedTuple):
    """Share of some of a graph's nodes.

    Attributes:
        nodes: Number of nodes.
        saved_bytes: Bytes that they keep and no earlier node does.
    """

    nodes: int = 0
    saved_bytes: int = 0

    def plus(self, saved_bytes: int) -> "Share":
        """With one more node."""
        return Share(self.nodes + 1, self.saved_bytes + saved_bytes)


class GraphSize(NamedTuple):
    """The size of a graph; prints as a table.

    Attributes:
        nodes: Number of nodes, leaves included.
        edges: Number of ways that gradients can take.
        saved_bytes: Memory that is kept for the backward: parameters, too, if it needs
            them. Memory that several nodes keep counts once.
        by_op: Name of node -> its share, the largest first.
        by_module: Part of a model -> its share, the largest first; ""
            stands for what no module made.
    """

    nodes: int
    edges: int
    saved_bytes: int
    by_op: Mapping[str, Share]
    by_module: Mapping[str, Share]

    def __str__(self) -> str:
        total = f"{self.nodes:,} nodes, {self.edges:,} edges"
        lines = [f"{total}, {self.saved_bytes:,} bytes saved"]
        for title, shares in (("op", self.by_op), ("module", self.by_module)):
            lines.append(f"{title:<32} {'nodes':>8} {'saved bytes':>14}")
            lines += [
                f"{name or '(none)':<32} {share.nodes:>8,} {share.saved_bytes:>14,}"
                for name, share in shares.items()
            ]
        return "\n".join(lines)


def graph_size(tensors: Variable | Iterable[Variable]) -> GraphSize:
    """Return the size of the graph that a backward from these tensors runs through.

    Args:
        tensors: A loss, or several; one without a graph has none.

    Raises:
        TypeError: One is not a tensor of gradviz's.
    """
    if isinstance(tensors, Variable):
        roots = [tensors]
    elif isinstance(tensors, Iterable) and not is_pytorchs(tensors):
        roots = list(tensors)
    else:
        check_own_tensor(tensors, "graph_size")
        roots = []
    for one in roots:
        check_own_tensor(one, "graph_size")
    return size_of(nodes_from(one.grad_fn for one in roots))


def size_of(nodes: Iterable[Node]) -> GraphSize:
    """The size of a graph of these nodes."""
    by_op: dict[str, Share] = {}
    by_module: dict[str, Share] = {}
    seen: set[int] = set()
    num_nodes = num_edges = num_bytes = 0
    for node in nodes:
        saved = _new_bytes(node, seen)
        num_nodes += 1
        num_edges += sum(edge.node is not None for edge in node.next_edges)
        num_bytes += saved
        name = type(node).name(node)
        by_op[name] = by_op.get(name, Share()).plus(saved)
        by_module[node.module] = by_module.get(node.module, Share()).plus(saved)
    return GraphSize(
        num_nodes,
        num_edges,
        num_bytes,
        _largest_first(by_op),
        _largest_first(by_module),
    )


def _new_bytes(node: Node, seen: set[int]) -> int:
    """Return the bytes that `node` keeps and `seen` lacks; add them to it."""
    total = 0
    for array, *_ in saved_by(node):
        owner = array
        while getattr(owner, "base", None) is not None and hasattr(
            owner.base, "nbytes"
        ):
            owner = owner.base
        if id(owner) not in seen:
            seen.add(id(owner))
            total += owner.nbytes
    return total


def _largest_first(shares: Mapping[str, Share]) -> Mapping[str, Share]:
    return dict(
        sorted(shares.items(), key=lambda one: (-one[1].saved_bytes, -one[1].nodes))
    )
