"""Discovery of a pass: its nodes, the dependencies of each, and which must run.

Pure functions of the graph: they read nodes and edges and return values. Graphs may be
a million nodes deep, so every walk keeps its own stack.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gradviz.backends.device import CPU, Device
from gradviz.backends.stream import Stream
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.odd_fields import FIELD_ERRORS, error_in_graph
from gradviz.engine.tasks.graph_task import Capture, ExecInfo


class Dependencies(NamedTuple):
    """Result of a walk over the graph.

    Attributes:
        counts: Node -> number of edges that lead to it. The root has no entry.
        devices: Devices besides the CPU that nodes run on.
        streams: Streams of the nodes that have any.
    """

    counts: dict[Node, int]
    devices: set[Device]
    streams: set[Stream]


def min_topological_nr(outputs: Sequence[Edge]) -> int:
    """Return the smallest topological number of the outputs, 0 if there are none.

    A node with a smaller one cannot lead to any output, so no walk goes there (X7).
    Source: torch/csrc/autograd/engine.cpp, compute_min_topological_nr.
    """
    nodes = [edge.node for edge in outputs]
    return min((node.topological_nr for node in nodes if node), default=0)


def compute_dependencies(root: Node, min_topological_nr: int) -> Dependencies:
    """Count the edges that lead to each node reachable from `root` (X8).

    Raises:
        TypeError: A field of a node was set to something odd since it was made.
        RuntimeError: An edge leads back to `root`: the graph is not a backward graph.

    Source: torch/csrc/autograd/engine.cpp, Engine::compute_dependencies.
    """
    try:
        found = _count_edges(root, min_topological_nr)
    except FIELD_ERRORS as error:
        raise error_in_graph(error, root)  # noqa: B904 - which has its cause
    if root in found.counts:
        raise RuntimeError(cycle_message(root))
    return found


def _count_edges(root: Node, min_topological_nr: int) -> Dependencies:
    """Walk the graph without any checks, because every node of every pass comes by."""
    counts: dict[Node, int] = {}
    devices: set[Device] = {root.runs_on}
    streams: set[Stream] = set()
    if root.forward_stream is not None:
        streams.add(root.forward_stream)
    stack = [root]
    while stack:
        node = stack.pop()
        if node.topological_nr < min_topological_nr:
            continue
        for edge in node.next_edges:
            next_node = edge.node
            if next_node is None:
                continue
            if next_node in counts:
                counts[next_node] += 1
                continue
            counts[next_node] = 1
            stack.append(next_node)
            if next_node.runs_on is not CPU:
                devices.add(next_node.runs_on)
                if next_node.forward_stream is not None:
                    streams.add(next_node.forward_stream)
    devices.discard(CPU)
    return Dependencies(counts, devices, streams)


def compute_exec_info(
    root: Node,
    outputs: Sequence[Edge],
    *,
    accumulate_grad: bool,
    min_topological_nr: int,
) -> dict[Node, ExecInfo]:
    """Decide which nodes must run so that the outputs get their gradients (I2-I4).

    See Note [Exec info]. A node is needed if it leads to an output. One depth-first
    walk suffices: when the walk leaves a node for good, everything it leads to has been
    decided. The walk continues past outputs, since one may lie beyond another.

    Raises:
        TypeError: A field of a node was set to something odd since it was made.

    Source: torch/csrc/autograd/engine.cpp, GraphTask::init_to_execute.
    """
    infos = _requested(outputs, accumulate_grad=accumulate_grad)
    infos.setdefault(root, ExecInfo())
    try:
        _mark_needed(infos, root, min_topological_nr)
    except FIELD_ERRORS as error:
        raise error_in_graph(error, root)  # noqa: B904 - which has its cause
    return infos


def _requested(
    outputs: Sequence[Edge], *, accumulate_grad: bool
) -> dict[Node, ExecInfo]:
    """Return the entries of the outputs before the walk."""
    infos: dict[Node, ExecInfo] = {}
    for output_index, output in enumerate(outputs):
        assert output.node is not None
        info = infos.setdefault(output.node, ExecInfo())
        if accumulate_grad:
            info.is_needed = True
        else:
            info.captures.append(Capture(output.input_nr, output_index))
    return infos


def _mark_needed(
    infos: dict[Node, ExecInfo], root: Node, min_topological_nr: int
) -> None:
    """Mark the nodes below `root` that lead to an output as needed."""
    seen: set[Node] = set()
    path = [(root, iter(root.next_edges))]
    while path:
        node, edges = path[-1]
        for edge in edges:
            child = edge.node
            if child is None:
                continue
            if child in seen:
                _inherit_need(infos, node, child)
            else:
                seen.add(child)
                if child.topological_nr >= min_topological_nr:
                    path.append((child, iter(child.next_edges)))
                    break
        else:
            path.pop()
            if path:
                _inherit_need(infos, path[-1][0], node)


def _inherit_need(infos: dict[Node, ExecInfo], parent: Node, child: Node) -> None:
    """Mark `parent` as needed if `child` takes part."""
    info = infos.get(child)
    if info is not None and info.should_execute:
        infos.setdefault(parent, ExecInfo()).is_needed = True


def find_cycle(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return a cycle among `nodes`, first node first; empty if there is none."""
    allowed = set(nodes)
    finished: set[Node] = set()
    for start in nodes:
        if start in finished:
            continue
        path = [start]
        on_path = {start}
        edges = [iter(start.next_edges)]
        while path:
            for edge in edges[-1]:
                child = edge.node
                if child in on_path:
                    return tuple(path[path.index(child) :])
                if child is not None and child in allowed and child not in finished:
                    path.append(child)
                    on_path.add(child)
                    edges.append(iter(child.next_edges))
                    break
            else:
                edges.pop()
                on_path.discard(path[-1])
                finished.add(path.pop())
    return ()


def cycle_message(root: Node, nodes: Sequence[Node] = ()) -> str:
    """Return the error for a graph with a cycle, with the cycle spelled out.

    Raises:
        TypeError: A field of a node was set to something odd since it was made.
    """
    try:
        cycle = find_cycle(list(nodes) or _reachable(root))
    except FIELD_ERRORS as error:
        raise error_in_graph(error, root, *nodes)  # noqa: B904 - which has its cause
    if not cycle:
        return "could not compute gradients for some functions"
    names = " -> ".join(repr(node) for node in (*cycle, cycle[0]))
    return (
        f"could not compute gradients for some functions: the graph has a cycle, "
        f"{names}. A backward graph must lead from outputs to inputs only; look at "
        f"the next_edges of these nodes."
    )


def _reachable(root: Node) -> list[Node]:
    found = [root]
    known = {root}
    for node in found:  # grows while it is walked
        for edge in node.next_edges:
            child = edge.node
            if child is not None and child not in known:
                known.add(child)
                found.append(child)
    return found
