"""The graph of PyTorch's tensors before any backward, as the values pictures show."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from gradviz.analysis.graph import (
    MAX_EDGES,
    MAX_INPUTS,
    MAX_NODES,
    Graph,
    GraphEdge,
    GraphNode,
)
from gradviz.errors import UserError
from gradviz.pytorch.edges import output_edge, root_edge
from gradviz.pytorch.forward import ForwardPlaces, Models
from gradviz.pytorch.graph import read_graph
from gradviz.pytorch.seen_node import GRAPH_ROOT, SeenGraph, SeenInput, SeenNode
from gradviz.ready_order import PyTorchSchedule, in_order
from gradviz.trace.model import InputDefinition

#: Names of leaves, as ``model.named_parameters()`` has them, or a dict.
NamedLeaves: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]

_NO_NAMES: Final[tuple[tuple[str, Any], ...]] = ()


def graph(outputs: Any, params: NamedLeaves = _NO_NAMES) -> Graph:  # noqa: ANN401 - PyTorch's
    """The graph below some of PyTorch's tensors, for `gradviz.draw`.

    The numbers are the order in which a backward would run the nodes, by the rules of
    PyTorch's engine. Nothing runs.

    Args:
        outputs: A tensor, or several.
        params: Names for leaves.

    Raises:
        UserError: PyTorch is not installed, or no output has a graph.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise UserError(
            f"cannot read a graph of PyTorch's: import torch fails, {error}; "
            f"pip install 'gradviz[torch]' installs it"
        ) from None
    tensors = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    with torch._C.DisableTorchFunctionSubclass():
        edges = dict.fromkeys(root_edge(one, torch) for one in tensors)
        roots = [(function, nr) for function, nr in edges if function is not None]
        if not roots:
            raise UserError(
                f"there is no graph to draw: got {len(tensors):,} of PyTorch's tensors "
                f"without grad_fn and without requires_grad, expected what was "
                f"computed from a tensor with requires_grad=True"
            )
        pairs = params.items() if isinstance(params, Mapping) else params
        leaves = [(name, output_edge(leaf, torch)) for name, leaf in pairs]
        wanted = (edge for _, edge in leaves)
        seen = read_graph(roots, wanted, ForwardPlaces(), Models(), 0)
    for (name, _), output in zip(leaves, seen.outputs, strict=True):
        if output.node is not None:
            output.node.leaf = (*output.node.leaf, name)
    return _drawn(seen)


def _drawn(seen: SeenGraph) -> Graph:
    nodes = list(_in_predicted_order(seen))
    position = {node: index for index, node in enumerate(nodes[:MAX_NODES])}
    shown: list[GraphNode] = []
    edges: list[GraphEdge] = []
    for node, index in position.items():
        num_omitted = 0
        for edge in node.next_edges:
            if edge.node is None:
                continue
            if edge.node not in position or len(edges) == MAX_EDGES:
                num_omitted += 1
            else:
                edges.append(GraphEdge(index, position[edge.node], edge.input_nr))
        shown.append(_shown(node, index, seen.made_at.get(node.id, ""), num_omitted))
    return Graph(
        task=-1,
        nodes=tuple(shown),
        edges=tuple(edges),
        omitted=len(nodes) - len(shown),
        omitted_edges=sum(node.omitted_edges for node in shown),
        notes=(),
    )


def _in_predicted_order(seen: SeenGraph) -> Iterator[SeenNode]:
    for node in in_order(
        seen.root,
        {node: node.num_edges for node in seen.nodes},
        lambda node: [edge.node for edge in node.next_edges if edge.node is not None],
        lambda node: node.sequence_nr,
        PyTorchSchedule(),
    ):
        if node.raw_name != GRAPH_ROOT:
            yield node


def _shown(node: SeenNode, order: int, location: str, num_omitted: int) -> GraphNode:
    return GraphNode(
        id=node.id,
        name=node.text,
        device=node.runs_on,
        sequence_nr=node.sequence_nr,
        topological_nr=node.topological_nr,
        inputs=tuple(map(_input, node.input_metadata[:MAX_INPUTS])),
        location=location,
        order=order,
        thread=None,
        start_ns=None,
        end_ns=None,
        waited_ns=None,
        status=None,
        module=node.module_path,
        omitted_edges=num_omitted,
        parameters=node.leaf,
    )


def _input(one: SeenInput | None) -> InputDefinition | None:
    return None if one is None else InputDefinition(one.shape, one.dtype, one.device)
