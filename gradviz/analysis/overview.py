"""What of a big graph is worth seeing first: some 20 to 40 boxes."""

from typing import Final

from gradviz.analysis.graph import Graph
from gradviz.analysis.modules import collapse_modules, max_depth, num_boxes
from gradviz.analysis.ranks import longest_path_ranks
from gradviz.analysis.repetition import fold_repeats
from gradviz.analysis.simplification import contract_chains, inner_nodes

#: A graph of more nodes, or of a longer path, is not drawn node by node.
MAX_NODES: Final = 150
MAX_PATH: Final = 60

#: An overview has no more boxes, leaves aside, if the model has parts.
MAX_BOXES: Final = 40


def overview(graph: Graph) -> Graph:
    """A graph as it is if it is small, else what repeats once, and parts as boxes.

    Modules are drawn as boxes at the depth which leaves at most `MAX_BOXES`. Where none
    does, because there are no modules or too many models, chains are boxes.
    """
    if not is_big(graph):
        return graph
    graph = fold_repeats(graph)
    if len(inner_nodes(graph)) <= MAX_BOXES:
        return graph
    depth, least = 0, num_boxes(graph, 0)
    for deeper in range(1, max_depth(graph) + 1):
        num = num_boxes(graph, deeper)
        if num > MAX_BOXES:
            break
        if num > least:
            depth, least = deeper, num
    graph = collapse_modules(graph, depth)
    return contract_chains(graph) if is_big(graph) else graph


def is_big(graph: Graph) -> bool:
    """Whether a graph is too big to be drawn node by node."""
    if len(graph.nodes) > MAX_NODES:
        return True
    ways = [(edge.producer, edge.consumer) for edge in graph.edges]
    return max(longest_path_ranks(len(graph.nodes), ways), default=0) > MAX_PATH
