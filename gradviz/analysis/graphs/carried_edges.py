"""Edges from one repeat to the next one, between boxes that stand for all repeats."""

from typing import NamedTuple

from gradviz.analysis.graphs.backward_graph import Graph


class CarriedWay(NamedTuple):
    """Edges from one repeat to the next one, between the same two boxes.

    Attributes:
        producer: Position in `Graph.nodes` of the box that they leave.
        consumer: Position in `Graph.nodes` of the box in the next repeat.
        shapes: Of the gradients that they carry, as far as they are known.
    """

    producer: int
    consumer: int
    shapes: tuple[tuple[int, ...], ...]


def carried_ways(graph: Graph) -> list[CarriedWay]:
    """Return the `Graph.carried` of those nodes that the graph still has."""
    if not graph.carried:
        return []
    home = {
        one.id: (index, one)
        for index, node in enumerate(graph.nodes)
        for one in node.members or (node,)
    }
    found: dict[tuple[int, int], dict[tuple[int, int], tuple[int, ...] | None]] = {}
    for edge in graph.carried:
        if edge.producer not in home or edge.consumer not in home:
            continue
        (producer, _), (consumer, node) = home[edge.producer], home[edge.consumer]
        known = node.inputs[edge.input_nr : edge.input_nr + 1]
        shape = known[0].shape if known and known[0] is not None else None
        between = found.setdefault((producer, consumer), {})
        between[edge.consumer, edge.input_nr] = shape
    return [
        CarriedWay(*ends, tuple(one for one in shapes.values() if one is not None))
        for ends, shapes in found.items()
    ]
