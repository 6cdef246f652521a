"""What of a big graph is worth seeing first: some 20 to 40 boxes."""

from collections.abc import Callable, Iterator
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


def _is_long(graph: Graph) -> bool:
    """Whether a graph has a path of more than `MAX_PATH` nodes."""
    ways = [(edge.producer, edge.consumer) for edge in graph.edges]
    return max(longest_path_ranks(len(graph.nodes), ways), default=0) > MAX_PATH


def overview(graph: Graph, is_large: Callable[[Graph], bool] = _is_long) -> Graph:
    """A graph as it is if it is small, else what repeats once, and parts as boxes.

    Modules are drawn as boxes at the depth which leaves at most `MAX_BOXES`. Where none
    does, because there are no modules or too many models, chains are boxes.

    Args:
        graph: The graph.
        is_large: Whether a graph of few nodes needs too much room nevertheless; if not
            given, one with a path of more than `MAX_PATH` does.
    """

    def is_big(one: Graph) -> bool:
        return len(one.nodes) > MAX_NODES or is_large(one)

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


def levels_of_detail(graph: Graph) -> Iterator[Graph]:
    """A graph as it is, then simpler ones, each with fewer boxes than the last."""
    yield graph
    fewest = len(inner_nodes(graph))
    folded = coarsest = fold_repeats(graph)
    depths = range(max_depth(folded), -1, -1)
    for simpler in (folded, *(collapse_modules(folded, depth) for depth in depths)):
        num = len(inner_nodes(simpler))
        if num < fewest:
            fewest, coarsest = num, simpler
            yield simpler
    chains = contract_chains(coarsest)
    if len(inner_nodes(chains)) < fewest:
        yield chains
