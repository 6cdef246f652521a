"""Gradient edges: the place where the gradient of a tensor arrives, as a value."""

from typing import NamedTuple

from gradviz.engine.graph.node import Edge, Node
from gradviz.ops.variables.variable import LeafEdge, Variable, gradient_edge


class GradientEdge(NamedTuple):
    """A place in the graph that stands for a tensor, without its elements.

    `gradviz.autograd.grad` and `backward` take it in place of the tensor, which may be
    long gone (C14).

    Attributes:
        node: Node that takes the tensor's gradient.
        output_nr: Index of the forward op's output, and so of the node's input.
        ownership_token: Keeps a leaf alive; else `node` itself keeps the graph alive.

    Source: torch/autograd/graph.py, GradientEdge.
    """

    node: Node
    output_nr: int
    ownership_token: Edge | None = None


#: Stand-in for a tensor wherever only its place in the graph counts.
TensorOrEdge = Variable | GradientEdge


def get_gradient_edge(tensor: Variable) -> GradientEdge:
    """Return the edge at which the gradient of `tensor` arrives.

    Raises:
        RuntimeError: It needs none.
    """
    edge = gradient_edge(tensor)
    if edge.node is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    token = edge if isinstance(edge, LeafEdge) else None
    return GradientEdge(edge.node, edge.input_nr, token)


def edge_of(place: TensorOrEdge) -> Edge:
    """The engine's edge to a place; leads nowhere if the tensor needs no gradient."""
    if isinstance(place, GradientEdge):
        return Edge(place.node, place.output_nr)
    return gradient_edge(place)
