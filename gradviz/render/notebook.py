"""A graph as an object of the `graphviz` package.

For notebooks, and for who knows that package: ``graphviz_source(graph).view()``,
``.save(...)``, ``.pipe(...)``.
"""

from typing import TYPE_CHECKING

from gradviz.analysis.graph import Graph
from gradviz.render.dot import dot_source
from gradviz.render.scene import ColourBy, build_scene

if TYPE_CHECKING:
    import graphviz


def graphviz_source(
    graph: Graph, *, colour_by: ColourBy = "device"
) -> "graphviz.Source":
    """The DOT text of `graph` as a `graphviz.Source`; a notebook draws it.

    Args:
        graph: What to draw; see `gradviz.analysis.graph.build_graph`.
        colour_by: What the colours of nodes stand for.
    """
    import graphviz  # noqa: PLC0415 - keeps the start-up of the command line fast

    return graphviz.Source(dot_source(build_scene(graph, colour_by)))
