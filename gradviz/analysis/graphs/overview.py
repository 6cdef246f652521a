"""An overview of a big graph: the 20 to 40 boxes that are worth seeing first."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.modules import collapse_modules, max_depth, num_boxes
from gradviz.analysis.graphs.ranks import longest_path_ranks
from gradviz.analysis.graphs.repetition import fold_repeats
from gradviz.analysis.graphs.simplification import contract_chains, inner_nodes

#: A graph of more nodes, or of a longer path, is not drawn node by node.
MAX_NODES: Final = 150
MAX_PATH: Final = 60

#: An overview has no more boxes, leaves aside, if the model has parts.
MAX_BOXES: Final = 40
#: It has up to so many where it would otherwise have fewer than `MIN_BOXES`, which
#: show nothing of the model.
MOST_BOXES: Final = 60
MIN_BOXES: Final = 5


def _is_long(graph: Graph) -> bool:
    """Return whether a graph has a path of more than `MAX_PATH` nodes."""
    ways = [(edge.producer, edge.consumer) for edge in graph.edges]
    return max(longest_path_ranks(len(graph.nodes), ways), default=0) > MAX_PATH


def overview(graph: Graph, is_large: Callable[[Graph], bool] = _is_long) -> Graph:
    """Return a small graph unchanged, else one with repeats folded and parts as boxes.

    Modules are drawn as boxes at the depth which leaves at most `MAX_BOXES`, or up to
    `MOST_BOXES` where those would be fewer than `MIN_BOXES`. Where no depth does,
    because there are no modules or too many models, chains are boxes.

    Args:
        graph: The graph.
        is_large: Test for a graph of few nodes that needs too much room nevertheless;
            if not given, one with a path of more than `MAX_PATH` does.
    """

    def is_big(one: Graph) -> bool:
        return len(one.nodes) > MAX_NODES or is_large(one)

    if not is_big(graph):
        return graph
    graph = fold_repeats(graph)
    num_inner = len(inner_nodes(graph))
    if num_inner <= MAX_BOXES:
        return graph
    depths = range(max_depth(graph) + 1)
    depth = _best_depth([*(num_boxes(graph, one) for one in depths), num_inner])
    if depth in depths:
        graph = collapse_modules(graph, depth)
    if not is_big(graph):
        return graph
    chains = contract_chains(graph)
    is_too_few = len(inner_nodes(chains)) < MIN_BOXES
    has_room = len(inner_nodes(graph)) <= MOST_BOXES
    return graph if is_too_few and has_room else chains


def _best_depth(sizes: Sequence[int]) -> int:
    """Return the depth of an overview, 0 if all leave more boxes than it may have.

    Args:
        sizes: Number of boxes that each depth leaves.
    """
    few = max((size for size in sizes if size <= MAX_BOXES), default=0)
    more = min((size for size in sizes if MAX_BOXES < size <= MOST_BOXES), default=0)
    best = few if few >= MIN_BOXES or not more else more
    return sizes.index(best) if best else 0


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
