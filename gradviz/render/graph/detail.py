"""Detail of a drawn graph: as much as there is room for.

A graph's nodes alone do not tell its size, so it is laid out to find out.
"""

from itertools import product
from typing import Final

from gradviz.analysis.graphs.backward_graph import MAX_NODES, Graph
from gradviz.analysis.graphs.nested_passes import every_graph, nest_passes
from gradviz.analysis.graphs.overview import MAX_NODES as MAX_DETAILED_NODES
from gradviz.analysis.graphs.overview import levels_of_detail, overview
from gradviz.analysis.graphs.simplification import (
    inner_nodes,
    limit_nodes,
    split_shared_leaves,
)
from gradviz.render.graph.arrangement import Stacked, arranged
from gradviz.render.graph.graph_scene import MAX_DETAILED, Scene, build_scene
from gradviz.render.graph.graph_svg import page_size
from gradviz.render.graph.nesting import grown
from gradviz.render.layout.placed_graph import BoxLayout, place
from gradviz.trace.format.model import Trace

#: A larger picture is not looked at as a whole: an overview is drawn instead.
MAX_SIZE: Final = (4_000, 4_000)
#: Texts that are drawn smaller cannot be read.
MIN_SCALE: Final = 0.7
#: No box needs less room, with what is around it.
MIN_AREA: Final = 2_500


def automatic(
    graph: Graph, trace: Trace | None = None, max_nodes: int = MAX_NODES
) -> Graph:
    """A graph as it is if there is room for it, else an overview.

    Args:
        graph: The graph.
        trace: Trace with the passes that its nodes called; None if it is of none.
        max_nodes: Maximum number of nodes drawn, or of boxes of several.
    """
    graph = limit_nodes(_overview(graph), max_nodes)
    if trace is None:
        return graph
    most = min(max_nodes, MAX_DETAILED_NODES)
    nested = nest_passes(graph, trace, _overview, most)
    if len(every_graph(nested)) == 1 or fits(nested, MAX_SIZE):
        return nested
    return nest_passes(graph, trace, _overview, most, are_boxes=True)


def whole(graph: Graph, trace: Trace | None = None) -> Graph:
    """Every node of a graph, and of the passes that its nodes called."""
    if trace is None:
        return graph
    return nest_passes(graph, trace, lambda one: one, MAX_DETAILED)


def detailed_to_fit(
    graph: Graph, size: tuple[float, float], trace: Trace, max_nodes: int = MAX_NODES
) -> tuple[Graph, float]:
    """The most of a graph that can be read in a picture of so many pixels.

    Returns:
        It, and the scale at which its picture fits, 1 at most. Where nothing can be
        read at that size, what is the least illegible.
    """
    best, largest = graph, -1.0
    for simpler, are_boxes in product(levels_of_detail(graph), (False, True)):
        limited = limit_nodes(simpler, max_nodes)
        drawn = nest_passes(limited, trace, _overview, max_nodes, are_boxes=are_boxes)
        if are_boxes and len(every_graph(drawn)) == 1:
            continue
        scale = scale_to_fit(drawn, size)
        if scale >= largest:
            best, largest = drawn, scale
        if scale >= MIN_SCALE:
            break
    return best, largest


def _overview(graph: Graph) -> Graph:
    return overview(graph, lambda one: not fits(one, MAX_SIZE))


def fits(graph: Graph, size: tuple[float, float]) -> bool:
    """Return whether a picture of a graph fits into so many pixels."""
    return scale_to_fit(graph, size) >= 1


def scale_to_fit(graph: Graph, size: tuple[float, float]) -> float:
    """Return the scale at which a picture fits, 1 at most; 0: very small."""
    wide, high = size
    if len(inner_nodes(graph)) * MIN_AREA * MIN_SCALE**2 > wide * high:
        return 0.0
    scene = build_scene(split_shared_leaves(graph))
    scene, layout = grown(scene, lambda one: arranged(one, _place_boxes)[:2])
    page = page_size(scene, layout)
    return min(1.0, wide / page[0], high / page[1])


def _place_boxes(scene: Scene, order: Stacked) -> BoxLayout:
    return place(scene.sizes, scene.edges, scene.aside, order)
