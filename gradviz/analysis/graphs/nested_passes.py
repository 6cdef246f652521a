"""Passes that nodes of a graph called, as graphs inside of those nodes.

A reentrant pass, as a checkpoint runs one, has a graph of its own, made while the other
pass ran. It is simplified by itself, after the graph from which it was called: its
nodes' ids are higher than those of their callers, and Note [Stretches] needs that no
gradient flows from lower to higher ones.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from gradviz.analysis.graphs.backward_graph import (
    LEAF,
    MAX_NODES,
    Graph,
    GraphNode,
    build_graph,
)
from gradviz.analysis.graphs.simplification import as_one, merge_nodes
from gradviz.trace.format.model import Trace

#: Of more passes that were called in passes of one depth none is drawn.
MAX_NESTED: Final = 40
#: Each pass is looked for among all events: of so many, all passes together, at most.
MAX_EVENTS: Final = 10_000_000
#: End of a graph's note that says how many passes are only named.
NOT_DRAWN: Final = "inside not drawn"
#: Passes that lie deeper are only named by their caller.
MAX_DEPTH: Final = 8


def nest_passes(
    graph: Graph,
    trace: Trace,
    simplified: Callable[[Graph], Graph],
    max_nodes: int,
    *,
    are_boxes: bool = False,
) -> Graph:
    """Put the graph of each called pass into the node that called it.

    A box that stands for several nodes only names the passes that those called.

    Args:
        graph: The graph of a pass, simplified already.
        trace: Trace that has the passes.
        simplified: Function that simplifies their graphs.
        max_nodes: Maximum number of nodes. Where those of one depth together are more,
            each pass of that depth is drawn as one node, if there is room for it.
        are_boxes: Draw each as one node, however small.
    """
    if not any(node.calls for node in graph.nodes):
        return graph
    simplified = _as_one_box if are_boxes else simplified
    whole = _with_called([graph], trace, simplified, max_nodes, MAX_DEPTH)[0]
    every = every_graph(whole)
    notes = ["passes inside as boxes"] if any(map(_is_one_box, every[1:])) else []
    if missing := sum(len(node.calls) - len(node.nested) for node in _nodes(every)):
        notes.append(f"{missing:,} pass{'es' * (missing > 1)} {NOT_DRAWN}")
    return msgspec.structs.replace(whole, notes=(*whole.notes, *notes))


def every_graph(graph: Graph) -> tuple[Graph, ...]:
    """A graph, and all those inside of it."""
    inner = (one for node in graph.nodes for one in node.nested)
    return graph, *(deeper for one in inner for deeper in every_graph(one))


def _with_called(
    graphs: Sequence[Graph],
    trace: Trace,
    simplified: Callable[[Graph], Graph],
    max_nodes: int,
    depth: int,
) -> list[Graph]:
    """Return graphs of one depth with the passes nested in them."""
    calls = [task for node in _nodes(graphs) if _holds(node) for task in node.calls]
    room = max_nodes - sum(len(graph.nodes) for graph in graphs)
    if not 0 < len(calls) <= min(room, MAX_NESTED) or not depth:
        return list(graphs)
    if _num_runs(trace, calls) > MAX_NODES or (
        len(calls) * trace.num_events > MAX_EVENTS
    ):
        return list(graphs)
    whole = [build_graph(trace, task) for task in calls]
    simpler = [simplified(one) for one in whole]
    if sum(len(one.nodes) for one in simpler) <= room:
        inner = _with_called(simpler, trace, simplified, room, depth - 1)
    else:
        inner = [_as_one_box(one) for one in whole]
    by_task = {one.task: one for one in inner if one.nodes}
    return [_holding(graph, by_task) for graph in graphs]


def _nodes(graphs: Iterable[Graph]) -> Iterator[GraphNode]:
    return (node for graph in graphs for node in graph.nodes)


def _holds(node: GraphNode) -> bool:
    """Return whether the passes of a node are drawn inside of it."""
    return bool(node.calls) and not node.members


def _num_runs(trace: Trace, tasks: Sequence[int]) -> int:
    """Return the number of nodes that ran in some passes."""
    ran_in = trace.columns["node_started"].narrow("task")
    return int(np.isin(ran_in, np.array(tasks, np.int64)).sum())


def _as_one_box(graph: Graph) -> Graph:
    """A pass of which there is no room for each node."""
    if len(graph.nodes) < 2:
        return graph
    leaves = [node for node in graph.nodes if node.name == LEAF]
    name = f"pass {graph.task}"
    whole = as_one(graph.nodes, name=name, module="", leaves=leaves)
    return merge_nodes(graph, [(range(len(graph.nodes)), whole)])


def _is_one_box(graph: Graph) -> bool:
    return len(graph.nodes) == 1 and bool(graph.nodes[0].members)


def _holding(graph: Graph, by_task: Mapping[int, Graph]) -> Graph:
    nodes = tuple(
        msgspec.structs.replace(
            node, nested=tuple(by_task[one] for one in node.calls if one in by_task)
        )
        if _holds(node)
        else node
        for node in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes)
