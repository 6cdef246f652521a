"""Graphs that a program keeps, one more in each of its steps."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from gradviz.diagnostics.graph_walk import is_freed, nodes_from
from gradviz.diagnostics.live_graphs import LiveGraph, own_live_graphs
from gradviz.diagnostics.size import size_of
from gradviz.engine.graph.node import Node
from gradviz.trace.probe import Probe

#: Minimum number of graphs that are alike, or of results that were added up, that pile
#: up.
MIN_KEPT: Final = 5


def tell_piled_up(listener: Probe) -> None:
    """Tell a listener which graphs a program has kept, as its recording ends."""
    alike: dict[object, list[LiveGraph]] = defaultdict(list)
    for one in own_live_graphs():
        alike[_name(one.root), one.root.module].append(one)
    for same in alike.values():
        num_added = _num_added(same[0].root)
        if max(len(same), num_added) >= MIN_KEPT:
            _tell(listener, same, max(len(same), num_added))


def _tell(listener: Probe, same: Sequence[LiveGraph], num_kept: int) -> None:
    first = same[0]
    nodes = nodes_from([one.root for one in same])
    listener.graph_kept(
        first.root.id,
        _name(first.root),
        "",  # the trace has the line of the node
        len(same),
        num_kept if any(map(is_freed, nodes)) else 0,
        len(nodes),
        size_of(nodes).saved_bytes,
        ", and by ".join(first.holders),
    )


def _num_added(root: Node) -> int:
    """Return how many nodes of one name follow each other, from a root on.

    A sum to which a program adds in each step has one for each.
    """
    num, node, name = 0, root, _name(root)
    while num < MIN_KEPT:
        num += 1
        after = [edge.node for edge in node.next_edges if edge.node is not None]
        same = [one for one in after if _name(one) == name]
        if not same:
            break
        node = same[0]
    return num


def _name(node: Node) -> str:
    return type(node).name(node)
