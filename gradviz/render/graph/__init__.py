"""Pictures of graphs.

In: a graph of `analysis.graphs`. Out: SVG, DOT, PNG, PDF. Read `graph_scene`,
`module_frames`, `graph_svg`, `dot`, and `graph_picture`, the door to all.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradviz.render.graph.graph_picture import render_graph as render_graph

__all__ = ["render_graph"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any type
    # Loaded when asked for: who needs one module of this room need not load all.
    if name in __all__:
        picture = importlib.import_module("gradviz.render.graph.graph_picture")
        return getattr(picture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
