"""Options for the part of a graph that is drawn, and its detail, as one value each."""

import functools
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, get_args

import click

from gradviz.analysis.causes.critical_path import find_critical_path
from gradviz.analysis.graphs import neighborhood
from gradviz.analysis.graphs.backward_graph import MAX_NODES, Graph
from gradviz.analysis.graphs.modules import collapse_modules
from gradviz.analysis.graphs.nested_passes import nest_passes
from gradviz.analysis.graphs.repetition import fold_repeats
from gradviz.analysis.graphs.simplification import contract_chains, limit_nodes
from gradviz.analysis.nodes.addresses import find_node
from gradviz.cli.console.completion import complete_address
from gradviz.render.graph.detail import automatic, detailed_to_fit
from gradviz.render.graph.graph_picture import LayoutEngine
from gradviz.render.graph.graph_scene import MAX_DETAILED
from gradviz.trace.format.model import Trace

#: Minimum number of repeats that are drawn once if that is asked for.
MIN_FOLDED: Final = 2


class AskedLayout(NamedTuple):
    """Layout of a graph.

    Attributes:
        engine: Graphviz's dot, gradviz itself, or the better one.
        timeout_s: Time limit of dot.
    """

    engine: LayoutEngine
    timeout_s: float


class AskedPart(NamedTuple):
    """Requested part of a graph.

    Attributes:
        around: The address of a node whose neighborhood is drawn; None: all.
        radius: Number of edges that it reaches.
        between: Addresses of two nodes, between which the paths are drawn; None: all.
        is_critical: True if the critical path is marked.
        is_critical_only: True if nothing else is drawn.
    """

    around: str | None
    radius: int
    between: tuple[str, str] | None
    is_critical: bool
    is_critical_only: bool

    def of(self, graph: Graph, trace: Trace) -> Graph:
        """The part of the graph of a pass.

        Raises:
            UserError: There is no such node.
        """
        if self.is_critical or self.is_critical_only:
            path = find_critical_path(trace, graph.task)
            graph = neighborhood.mark_critical(graph, path)
        if self.around is not None:
            node = find_node(trace, graph.task, self.around)
            graph = neighborhood.around(graph, node, self.radius)
        if self.between:
            one, other = (find_node(trace, graph.task, end) for end in self.between)
            graph = neighborhood.between(graph, one, other)
        return neighborhood.only_critical(graph) if self.is_critical_only else graph


class AskedDetail(NamedTuple):
    """Requested detail of a graph.

    Attributes:
        depth: Depth of the parts of models that become boxes; None: not set.
        is_folded: True if repeats are drawn once.
        is_contracted: True if chains are boxes.
        is_whole: True if every node is drawn, however many there are.
        max_nodes: Number of nodes drawn, or boxes of several.
        fit: Maximum width and height of the picture in pixels; None: not set.
    """

    depth: int | None
    is_folded: bool
    is_contracted: bool
    is_whole: bool
    max_nodes: int
    fit: tuple[int, int] | None

    @property
    def is_chosen(self) -> bool:
        """True if the user chose a simplification."""
        told = (self.is_whole, self.is_folded, self.is_contracted)
        return any(told) or self.depth is not None

    def of(self, graph: Graph, trace: Trace) -> Graph:
        """A graph, with the passes that its nodes called, in that much detail."""
        if self.is_chosen:
            graph = limit_nodes(self._simplified(graph), self.max_nodes)
            most = min(self.max_nodes, MAX_DETAILED)
            return nest_passes(graph, trace, self._simplified, most)
        if self.fit:
            return detailed_to_fit(graph, self.fit, trace, self.max_nodes)[0]
        return automatic(graph, trace, self.max_nodes)

    def _simplified(self, graph: Graph) -> Graph:
        graph = fold_repeats(graph, MIN_FOLDED) if self.is_folded else graph
        graph = graph if self.depth is None else collapse_modules(graph, self.depth)
        return contract_chains(graph) if self.is_contracted else graph


def pixels(text: str | None) -> tuple[int, int] | None:
    """The width and the height in ``1920x1080``."""
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text, re.ASCII)
    if found is None:
        raise click.BadParameter(
            f"expected a width and a height in pixels, as 1920x1080, got {text!r}"
        )
    return int(found[1]), int(found[2])


_LAYOUT_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(get_args(LayoutEngine)),
        default="auto",
        show_default=True,
        help="The layout program: Graphviz's dot, gradviz itself, or the better fit.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=20.0,
        show_default=True,
        metavar="SECONDS",
        help="The time limit for dot.",
    ),
)

_PART_OPTIONS = (
    click.option(
        "--around",
        metavar="NODE",
        shell_complete=complete_address,
        help="Draw only nodes near this one: MulBackward0:2, model.py:12, 27, ...",
    ),
    click.option(
        "--radius",
        type=click.IntRange(min=0),
        default=2,
        show_default=True,
        metavar="K",
        help="The distance in edges for --around.",
    ),
    click.option(
        "--between",
        nargs=2,
        metavar="NODE NODE",
        shell_complete=complete_address,
        help="Draw only nodes on a path from the first node to the second.",
    ),
    click.option(
        "--critical",
        "is_critical",
        is_flag=True,
        help="Mark the critical path, and show the slack of other nodes.",
    ),
    click.option(
        "--critical-only",
        "is_critical_only",
        is_flag=True,
        help="Draw only the nodes on the critical path.",
    ),
)

_DETAIL_OPTIONS = (
    click.option(
        "--depth",
        "--collapse",
        "depth",
        type=click.IntRange(min=0),
        metavar="DEPTH",
        help="Draw parts of models as boxes; 0: whole models, 1: parts, 2: theirs.",
    ),
    click.option(
        "--fold",
        "is_folded",
        is_flag=True,
        help="Draw repeated layers and time steps once, with their number.",
    ),
    click.option(
        "--contract",
        "is_contracted",
        is_flag=True,
        help="Draw each chain of nodes without branches as one box.",
    ),
    click.option(
        "--no-collapse",
        "is_whole",
        is_flag=True,
        help="Draw every node, even of a big graph.",
    ),
    click.option(
        "--limit",
        "--max-nodes",
        "max_nodes",
        type=click.IntRange(1, MAX_NODES),
        default=MAX_NODES,
        show_default=True,
        metavar="N",
        help="Draw at most the first N nodes or boxes.",
    ),
    click.option(
        "--fit",
        callback=lambda _context, _option, text: pixels(text),
        metavar="WIDTHxHEIGHT",
        help="Draw as much as can be read in so many pixels: 1920x1080.",
    ),
)


def graph_layout_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a `AskedLayout`, as its argument ``layout``."""
    return _with_options(command, "layout", AskedLayout, _LAYOUT_OPTIONS)


def graph_part_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a `AskedPart`, as its argument ``part``."""
    return _with_options(command, "part", AskedPart, _PART_OPTIONS)


def graph_detail_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a `AskedDetail`, as its argument ``detail``."""
    return _with_options(command, "detail", AskedDetail, _DETAIL_OPTIONS)


def _with_options(
    command: Callable[..., None],
    name: str,
    kind: type[AskedLayout] | type[AskedPart] | type[AskedDetail],
    options: tuple[Callable[[Any], Any], ...],
) -> Callable[..., None]:
    @functools.wraps(command)
    def with_value(**given: Any) -> None:  # noqa: ANN401 - what Click has parsed
        own = {field: given.pop(field) for field in kind._fields}
        command(**given, **{name: kind(**own)})

    for option in reversed(options):
        with_value = option(with_value)
    return with_value
