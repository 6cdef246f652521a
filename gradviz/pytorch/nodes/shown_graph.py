"""The graph of PyTorch's tensors before any backward, as the values pictures show."""

import importlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gradviz.analysis.graphs.backward_graph import (
    MAX_EDGES,
    MAX_INPUTS,
    MAX_NODES,
    Graph,
    GraphEdge,
    GraphNode,
    by_sequence,
)
from gradviz.errors import UserError
from gradviz.pytorch.nodes.edges import output_edge, root_edge
from gradviz.pytorch.nodes.graph_reader import read_graph, seen_as
from gradviz.pytorch.nodes.module_calls import Models
from gradviz.pytorch.nodes.places import NOBODYS
from gradviz.pytorch.nodes.seen_node import GRAPH_ROOT, SeenGraph, SeenInput, SeenNode
from gradviz.ready_order import PyTorchSchedule, in_order
from gradviz.trace.format.model import InputDefinition

#: Names of leaves, as ``model.named_parameters()`` has them, or a dict.
NamedLeaves: TypeAlias = Mapping[str, Any] | Iterable[tuple[str, Any]]

_NO_NAMES: Final[tuple[tuple[str, Any], ...]] = ()


def graph(outputs: Any, params: NamedLeaves = _NO_NAMES) -> Graph:  # noqa: ANN401 - PyTorch's
    """The graph below some of PyTorch's tensors, for `gradviz.draw`.

    The numbers are the order in which a backward would run the nodes, by the rules of
    PyTorch's engine. Nothing runs.

    Args:
        outputs: A tensor, or a list, a tuple or a dict of them.
        params: Names for leaves.

    Raises:
        TypeError: One is not a tensor of PyTorch's.
        UserError: PyTorch is not installed, or no output has a graph.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise UserError(
            f"cannot read a graph of PyTorch's: import torch fails, {error}; "
            f"pip install 'gradviz[torch]' installs it"
        ) from None
    tensors = _tensors_of(outputs, torch)
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
        leaves = [(name, output_edge(leaf, torch)[0]) for name, leaf in pairs]
        seen = read_graph(roots, (), NOBODYS, Models(), 0, accumulate=True)
        names: defaultdict[SeenNode | None, list[str]] = defaultdict(list)
        for name, leaf in leaves:
            names[seen_as(leaf)].append(name)
    return _drawn(seen, names)


def _tensors_of(outputs: Any, torch: Any) -> list[Any]:  # noqa: ANN401 - PyTorch's
    if isinstance(outputs, Mapping):
        outputs = list(outputs.values())
    found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    for one in found:
        if not isinstance(one, torch.Tensor | torch.autograd.graph.GradientEdge):
            raise TypeError(
                f"gv.pytorch.graph() takes tensors of PyTorch's, got "
                f"{type(one).__qualname__} of {type(one).__module__}; gv.draw() draws "
                f"the graph of gradviz's own"
            )
    return found


def _drawn(seen: SeenGraph, names: Mapping[SeenNode | None, Sequence[str]]) -> Graph:
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
        shown.append(_shown(node, index, num_omitted, names.get(node, ())))
    return Graph(
        task=-1,
        nodes=tuple(by_sequence(shown, edges)),
        edges=tuple(edges),
        omitted=len(nodes) - len(shown),
        omitted_edges=sum(node.omitted_edges for node in shown),
        notes=(),
    )


def _in_predicted_order(seen: SeenGraph) -> Iterator[SeenNode]:
    for node in in_order(
        seen.root,
        seen.dependencies,
        lambda node: [edge.node for edge in node.next_edges if edge.node is not None],
        lambda node: node.sequence_nr,
        PyTorchSchedule(),
    ):
        if node.raw_name != GRAPH_ROOT:
            yield node


def _shown(
    node: SeenNode, order: int, num_omitted: int, names: Sequence[str]
) -> GraphNode:
    return GraphNode(
        id=node.id,
        name=node.text,
        device=node.runs_on,
        sequence_nr=node.sequence_nr,
        topological_nr=node.topological_nr,
        inputs=tuple(map(_input, node.input_metadata[:MAX_INPUTS])),
        location=node.line,
        order=order,
        thread=None,
        start_ns=None,
        end_ns=None,
        waited_ns=None,
        status=None,
        module=node.module_path,
        omitted_edges=num_omitted,
        parameters=(*node.leaf, *names),
    )


def _input(one: SeenInput | None) -> InputDefinition | None:
    return None if one is None else InputDefinition(one.shape, one.dtype, one.device)
