"""The one entry point to pictures of graphs: chooses format and layout."""

import math
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from gradviz.analysis.graphs.backward_graph import Graph
from gradviz.analysis.graphs.ranks import longest_path_ranks
from gradviz.errors import RenderTimeoutError, UserError
from gradviz.render.conversion import (
    MAX_PIXELS,
    check_convertible,
    converted,
    png_size,
)
from gradviz.render.graph import graphviz
from gradviz.render.graph.arrangement import Stacked, arranged
from gradviz.render.graph.coloring import ColorBy
from gradviz.render.graph.dot import digraph, parse_plain, skeleton
from gradviz.render.graph.graph_scene import Scene, build_scene
from gradviz.render.graph.graph_svg import page_size, svg
from gradviz.render.graph.nesting import grown
from gradviz.render.layout.placed_graph import FIRST_SCREEN, BoxLayout, place

if TYPE_CHECKING:
    from gradviz.render.graph.difference import Difference

Format: TypeAlias = Literal["svg", "png", "pdf", "dot"]
LayoutEngine: TypeAlias = Literal["auto", "dot", "own"]

FORMATS: Final[tuple[Format, ...]] = ("svg", "png", "pdf", "dot")

#: Maximum size of a graph given to ``dot`` unasked. Its time grows with the edges that
#: run past many ranks far more than with the nodes.
MAX_DOT_NODES: Final = 1_500
MAX_DOT_COST: Final = 3_000
LONG_SPAN: Final = 12


class Rendered(NamedTuple):
    """A picture, and how it came about.

    Attributes:
        data: The contents of the file.
        engine: Engine that laid it out: ``dot``, ``own``, or ``none`` for DOT text.
        note: Reason for that engine, as a sentence without a period.
    """

    data: bytes
    engine: str
    note: str


def render_graph(
    graph: Graph,
    *,
    format: Format = "svg",  # noqa: A002 - what it is called everywhere
    color_by: ColorBy = "auto",
    engine: LayoutEngine = "auto",
    timeout_s: float = 20.0,
    fit: tuple[int, int] | None = None,
    difference: "Difference | None" = None,
) -> Rendered:
    """Draw a graph.

    Args:
        graph: Graph to draw.
        format: Of the result. ``svg`` and ``dot`` need no tool.
        color_by: Meaning of the colors of nodes.
        engine: Layout engine; ``auto`` tries ``dot`` if it is there and the graph small
            enough, and takes its picture if that is smaller than our own.
        timeout_s: Time limit for each run of Graphviz.
        fit: Maximum width and height of the picture in pixels; a larger one is scaled.
        difference: The two passes whose graphs it is, with colors for what differs.

    Raises:
        MissingToolError: A png or pdf needs Typst or Graphviz, and there is neither.
        RenderTimeoutError: Graphviz took too long where nothing can replace it.
        UserError: Graphviz failed where nothing can replace it.
    """
    if format != "dot":
        check_convertible(format)
    scene = _scene(graph, color_by, difference)
    if format == "dot":
        return Rendered(
            digraph(scene).source.encode(), "none", "DOT text has no layout"
        )
    answers: dict[Stacked, tuple[str, str]] = {}
    used, note = "own", ""

    def place_boxes(one: Scene, order: Stacked) -> BoxLayout:
        layout, *answer = _layout(one, engine, timeout_s, order)
        answers[order] = answer[0], answer[1]
        return layout

    def laid_out(one: Scene) -> tuple[Scene, BoxLayout]:
        nonlocal used, note
        one, layout, order = arranged(one, place_boxes)
        used, note = answers[order]  # what is inside of boxes is laid out first
        return one, layout

    scene, layout = grown(scene, laid_out)
    page = page_size(scene, layout)
    scale = _scale(page, format, fit)
    notes = [note]
    if scale < 1:
        size = f"{page[0]:,.0f} x {page[1]:,.0f}"
        notes.append(f"scaled to {scale:.0%} of {size}")
    data = converted(svg(scene, layout, scale), format)
    if format == "png":
        notes.append("{:,} x {:,} pixels".format(*png_size(data)))
    return Rendered(data, used, "; ".join(notes))


def _scene(graph: Graph, color_by: ColorBy, difference: "Difference | None") -> Scene:
    if difference is None:
        return build_scene(graph, color_by)
    # Loaded where two passes are compared.
    from gradviz.render.graph.difference import difference_scene  # noqa: PLC0415

    return difference_scene(graph, difference)


def _scale(
    page: tuple[float, float],
    format: Format,  # noqa: A002 - as above
    fit: tuple[int, int] | None,
) -> float:
    """Return the scale of the picture, 1 at most."""
    wide, high = page
    scale = 1.0
    if fit is not None:
        scale = min(scale, fit[0] / wide, fit[1] / high)
    if format == "png":
        scale = min(scale, 0.999 * math.sqrt(MAX_PIXELS / (wide * high)))
    return scale


def dot_cost(scene: Scene) -> int:
    """Return the cost of ``dot``: nodes, and the ranks that long edges pass."""
    ranks = longest_path_ranks(len(scene.boxes), scene.edges)
    spans = (ranks[consumer] - ranks[producer] for producer, consumer in scene.edges)
    return len(scene.boxes) + sum(span for span in spans if span > LONG_SPAN)


def _layout(
    scene: Scene, engine: LayoutEngine, timeout_s: float, order: Stacked
) -> tuple[BoxLayout, str, str]:
    """Return the layout, its engine, and the reason for that."""
    if engine == "dot":
        return _by_dot(scene, timeout_s), "dot", "asked for"
    own = place(scene.sizes, scene.edges, scene.aside, order)
    why = "asked for" if engine == "own" else _why_not_dot(scene)
    why = why or ("dot would mix parts of the model" if order else "")
    if why:
        return own, "own", why
    try:
        dots = _by_dot(scene, timeout_s)
    except RenderTimeoutError:
        return own, "own", f"dot took longer than {timeout_s:g} s"
    except UserError as error:
        return own, "own", f"dot failed: {error}"
    if dots.centers[0][0] > FIRST_SCREEN:
        return own, "own", "that of dot begins beyond the first screen"
    if dots.width * dots.height >= own.width * own.height:
        return own, "own", "that of dot is no smaller"
    return dots, "dot", "smaller than our own"


def _why_not_dot(scene: Scene) -> str:
    """Return why ``dot`` is not even tried, empty if it is."""
    if not scene.boxes:
        return "there is nothing to lay out"
    if not graphviz.is_available():
        return "there is no dot"
    if len(scene.boxes) > MAX_DOT_NODES:
        return f"{len(scene.boxes):,} nodes are too many for dot"
    if dot_cost(scene) > MAX_DOT_COST:
        return "edges across so many ranks would take dot too long"
    return ""


def _by_dot(scene: Scene, timeout_s: float) -> BoxLayout:
    text = graphviz.run(skeleton(scene).source, "plain", timeout_s)
    try:
        return parse_plain(text.decode(), scene)
    except ValueError as error:
        raise UserError(f"dot gave an unexpected answer: {error}") from error
