"""The graph of tensors before any backward pass, as the values that pictures show."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gradviz.analysis.graphs.backward_graph import (
    MAX_EDGES,
    MAX_INPUTS,
    MAX_NODES,
    Graph,
    GraphEdge,
    GraphNode,
)
from gradviz.diagnostics.graph_walk import is_freed, made_at, saved_by
from gradviz.diagnostics.own_tensors import check_own_tensor, is_pytorchs
from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Edge, InputMetadata, Node
from gradviz.engine.prediction import nodes_in_predicted_order
from gradviz.errors import UserError
from gradviz.ops.variables.variable import Variable, gradient_edge, metadata_of
from gradviz.render.words.text import MAX_TITLE, clean, count, shorten
from gradviz.trace.format.model import InputDefinition

#: Names for leaves, as dicts and ``named_parameters()`` have them.
NamedTensors: TypeAlias = Mapping[str, Variable] | Iterable[tuple[str, Variable]]

#: Maximum number of names told of nodes that no gradient reaches.
_MAX_NAMED: Final = 3


def nodes_of(outputs: object) -> tuple[Node, ...]:
    """Return the nodes that a backward would run, in their predicted order.

    Args:
        outputs: A tensor, or lists, tuples and dicts of them, which may hold None.

    Raises:
        TypeError: Something else is among them.
        UserError: None of them has a graph.
    """
    tensors = list(_tensors(outputs))
    roots = dict.fromkeys(map(gradient_edge, tensors))
    roots.pop(Edge(None), None)
    if not roots:
        raise UserError(
            f"there is no graph to draw: got {count(len(tensors), 'tensor')} without "
            f"grad_fn and without requires_grad, expected what was computed from a "
            f"tensor with requires_grad=True, and not under no_grad()"
        )
    return nodes_in_predicted_order(list(roots))


def tensor_graph(nodes: Sequence[Node], params: NamedTensors = ()) -> Graph:
    """The graph of some nodes, of more than `MAX_NODES` that of the first.

    Args:
        nodes: In the order that is predicted.
        params: Names for leaves, in place of those that their models gave them.

    Raises:
        TypeError: `params` are no names and tensors.
    """
    names = _leaf_names(params)
    position = {node: index for index, node in enumerate(nodes[:MAX_NODES])}
    found: list[GraphNode] = []
    edges: list[GraphEdge] = []
    for node, index in position.items():
        num_omitted = 0
        for edge in node.next_edges:
            consumer = edge.node
            if consumer is None:
                continue
            if consumer not in position or len(edges) == MAX_EDGES:
                num_omitted += 1
            else:
                edges.append(GraphEdge(index, position[consumer], edge.input_nr))
        found.append(_node(node, index, names.get(node, ()), num_omitted))
    return Graph(
        task=-1,
        nodes=tuple(found),
        edges=tuple(edges),
        omitted=len(nodes) - len(found),
        omitted_edges=sum(node.omitted_edges for node in found),
        notes=tuple(_notes(nodes, names)),
    )


def with_saved_tensors(graph: Graph, nodes: Sequence[Node]) -> Graph:
    """A graph with a box for each tensor that one of its nodes has saved.

    Args:
        graph: That of the nodes, simplified or not. Boxes of several stay as they are.
        nodes: The nodes.
    """
    by_id = {node.id: node for node in nodes[:MAX_NODES]}
    shown, edges = list(graph.nodes), list(graph.edges)
    for index, one in enumerate(graph.nodes):
        if one.members:
            continue
        for tensor in _saved(by_id[one.id]):
            if len(edges) < MAX_EDGES:
                edges.append(GraphEdge(index, len(shown), 0))
                shown.append(msgspec.structs.replace(tensor, id=-len(shown)))
    return msgspec.structs.replace(graph, nodes=tuple(shown), edges=tuple(edges))


def _tensors(outputs: object) -> Iterator[Variable]:
    """Yield all tensors in nested containers, in order.

    Raises:
        TypeError: There is something else.
    """
    waiting = [("outputs", outputs)]
    open_: set[int] = set()
    while waiting:
        where, one = waiting.pop()
        inner: list[tuple[str, object]] = []
        match one:
            case Variable():
                yield one
            case None if where != "outputs":
                pass
            case Mapping():
                inner = [(f"{where}[{key!r}]", value) for key, value in one.items()]
            case list() | tuple():
                inner = [(f"{where}[{nr}]", value) for nr, value in enumerate(one)]
            case _ if is_pytorchs(one):
                check_own_tensor(one, "draw")
            case _:
                raise TypeError(
                    f"draw() takes a tensor, or lists, tuples and dicts of tensors, or "
                    f"a recording; got {type(one).__name__} as {where}"
                )
        if inner and id(one) not in open_:
            open_.add(id(one))  # it may hold itself
            waiting += reversed(inner)


def _leaf_names(params: NamedTensors) -> dict[Node, tuple[str, ...]]:
    """Return the names of leaves, by their nodes."""
    pairs = params.items() if isinstance(params, Mapping) else params
    names: dict[Node, tuple[str, ...]] = {}
    for pair in pairs:
        match pair:
            case (str(name), Variable() as tensor):
                node = gradient_edge(tensor).node
                if node is not None:
                    names[node] = (*names.get(node, ()), name)
            case (str(), tensor) if is_pytorchs(tensor):
                raise TypeError(
                    "params name leaves of gradviz's tensors, got Tensor of PyTorch: "
                    "gv.pytorch.graph(tensor, params=...) takes the names of those"
                )
            case _:
                raise TypeError(
                    f"params are names and tensors, as model.named_parameters() has "
                    f"them, or a dict; got {type(pair).__name__} among them"
                )
    return names


def _node(
    node: Node, order: int, names: tuple[str, ...], num_omitted: int
) -> GraphNode:
    if not names and isinstance(node, AccumulateGrad):
        names = node.leaf_names()
    return GraphNode(
        id=node.id,
        name=str(type(node).name(node)),
        device=str(node.runs_on),
        sequence_nr=node.sequence_nr,
        topological_nr=node.topological_nr,
        inputs=tuple(map(_input, node.input_metadata[:MAX_INPUTS])),
        location=made_at(node).removeprefix(" at "),
        order=order,
        thread=None,
        start_ns=None,
        end_ns=None,
        waited_ns=None,
        status=None,
        module=node.module_path,
        omitted_edges=num_omitted,
        parameters=names,
    )


def _saved(node: Node) -> Iterator[GraphNode]:
    """The tensors that a node has saved, as boxes without an id of their own."""
    for saved in saved_by(node):
        metadata = metadata_of(saved.array)
        yield GraphNode(
            id=-1,
            name=saved.name
            if saved.name.startswith("saved")
            else f"saved {saved.name}",
            device=str(metadata.device),
            sequence_nr=node.sequence_nr,
            topological_nr=0,
            inputs=(_input(metadata),),
            location="",
            order=None,
            thread=None,
            start_ns=None,
            end_ns=None,
            waited_ns=None,
            status=None,
            module=node.module_path,
            saved_by=node.id,
        )


def _input(metadata: InputMetadata | None) -> InputDefinition | None:
    if metadata is None:
        return None
    return InputDefinition(
        tuple(metadata.shape), str(metadata.dtype), str(metadata.device)
    )


def _notes(
    nodes: Sequence[Node], names: Mapping[Node, tuple[str, ...]]
) -> Iterator[str]:
    """Yield notes on the parts that the graph does not show."""
    if num_freed := sum(map(is_freed, nodes)):
        yield f"saved tensors of {count(num_freed, 'node')} are freed"
    reached = set(nodes)
    missing = [
        name for node, own in names.items() if node not in reached for name in own
    ]
    if missing:
        told = [shorten(clean(name), MAX_TITLE) for name in missing[:_MAX_NAMED]]
        more = len(missing) - len(told)
        yield f"not reached: {', '.join(told)}{f' and {more:,} more' if more else ''}"
