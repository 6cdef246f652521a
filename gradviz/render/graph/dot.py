"""A picture of a graph as a `graphviz.Digraph`, and back: the places that dot found.

Names in a trace are data: nodes are called ``n0``, ``n1`` and so on, every other text
is an escaped label, and no attribute that loads a file or links to anything is ever
written.
"""

from collections.abc import Iterable
from typing import Final

import graphviz

from gradviz.analysis.graphs.ranks import longest_path_ranks
from gradviz.render import style
from gradviz.render.graph.graph_scene import Box, LegendEntry, Scene
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.routing import Point
from gradviz.render.style import Outline

#: DOT measures boxes in inches and places in points.
POINTS: Final = 72.0
#: Weight of a backbone's edges, which want to be straight, beside others.
SPINE_WEIGHT: Final = 20

#: End of a line of a label: centered, or aligned to the left.
CENTERED: Final = "\\n"
LEFT: Final = "\\l"

_GRAPH: Final = {
    "fontname": "Helvetica",
    "fontsize": f"{style.TEXT_SIZE:g}",
    "fontcolor": style.INK,
    "bgcolor": style.BACKGROUND,
    "labelloc": "t",
    "labeljust": "l",
    "nodesep": "0.3",
    "ranksep": "0.4",
    "pad": "0.3",
}
_NODE: Final = {
    "shape": "box",
    "style": "rounded,filled",
    "fontname": "Helvetica",
    "fontsize": f"{style.TEXT_SIZE:g}",
    "fontcolor": style.INK,
    "height": "0.36",
    "margin": "0.12,0.05",
}
_EDGE: Final = {"color": style.LINE, "arrowsize": "0.6"}
_CLUSTER: Final = {
    "label": "",
    "fontsize": f"{style.SMALL_SIZE:g}",
    "fontcolor": style.FAINT_INK,
    "color": style.FAINT_LINE,
    "bgcolor": style.PANEL,
    "style": "rounded",
}
_CARRIED: Final = {"style": "dashed", "constraint": "false"}
_BOLD: Final = {"color": style.INK, "penwidth": "3"}


def digraph(scene: Scene) -> graphviz.Digraph:
    """The picture as DOT."""
    picture = graphviz.Digraph(
        "gradviz",
        graph_attr=_GRAPH
        | {"label": label(scene.title, scene.subtitle, scene.notes, end=LEFT)},
        node_attr=_NODE,
        edge_attr=_EDGE,
    )
    _add_graph(picture, scene)
    _add_legend(picture, scene)
    return picture


def skeleton(scene: Scene) -> graphviz.Digraph:
    """Return only the sizes of boxes and the edges, for ``dot`` to lay out."""
    picture = graphviz.Digraph(
        graph_attr={"nodesep": "0.28", "ranksep": "0.42"},
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"arrowhead": "none"},
    )
    for index, box in enumerate(scene.boxes):
        picture.node(f"n{index}", **_size(box.width, box.height))
    for (producer, consumer), weight in zip(scene.edges, _weights(scene), strict=True):
        picture.edge(f"n{producer}", f"n{consumer}", weight=weight)
    for producer, consumer in scene.edges:
        if scene.boxes[consumer].is_aside:
            with picture.subgraph(graph_attr={"rank": "same"}) as level:
                level.node(f"n{producer}")
                level.node(f"n{consumer}")
    return picture


def parse_plain(text: str, scene: Scene) -> BoxLayout:
    """The layout in the ``-Tplain`` output for the `skeleton` of `scene`.

    Raises:
        ValueError: It is not the layout of that scene.
    """
    centers: dict[str, Point] = {}
    curves: dict[tuple[str, str], list[tuple[Point, ...]]] = {}
    wide = high = 0.0
    for line in text.splitlines():
        match line.split():
            case ["graph", _, across, down]:
                wide, high = float(across) * POINTS, float(down) * POINTS
            case ["node", name, x, y, *_]:
                centers[name] = (float(x) * POINTS, high - float(y) * POINTS)
            case ["edge", tail, head, count, *rest]:
                numbers = [float(one) * POINTS for one in rest[: 2 * int(count)]]
                points = zip(numbers[::2], numbers[1::2], strict=True)
                curve = tuple((x, high - y) for x, y in points)
                curves.setdefault((tail, head), []).append(curve)
            case _:
                pass  # the closing line
    try:
        return BoxLayout(
            tuple(centers[f"n{index}"] for index in range(len(scene.boxes))),
            tuple(curves[f"n{a}", f"n{b}"].pop() for a, b in scene.edges),
            wide,
            high,
        )
    except (KeyError, IndexError) as error:
        raise ValueError(f"dot's layout lacks {error}") from error


def label(*lines: str, end: str = CENTERED) -> str:
    """Lines of a label, each but empty ones ended by `end`, in which nothing acts.

    Backslashes begin escapes in a label, ampersands begin entities, and what stands in
    angle brackets is HTML: all are made literal. Quotes are graphviz's own concern, and
    the texts are clean of control characters already.
    """
    escaped = [graphviz.escape(line.replace("&", "&amp;")) for line in lines if line]
    text: str = graphviz.nohtml("".join(line + end for line in escaped))
    return text


def _add_graph(picture: graphviz.Digraph, scene: Scene, prefix: str = "n") -> None:
    """Add boxes, edges and frames; a box's nested passes as clusters."""
    for index, box in enumerate(scene.boxes):
        picture.node(f"{prefix}{index}", **_box(box))
        for number, called in enumerate(box.passes):
            inner = f"{prefix}{index}_{number}"
            look = _CLUSTER | {"bgcolor": style.BACKGROUND}
            with picture.subgraph(name=f"cluster_{inner}", graph_attr=look) as one:
                _add_graph(one, called, f"{inner}_")
            picture.edge(f"{prefix}{index}", f"{inner}_0")
    for index, (producer, consumer) in enumerate(scene.edges):
        look = _look_of_edge(scene, index)
        picture.edge(f"{prefix}{producer}", f"{prefix}{consumer}", **look)
    for producer, consumer in scene.carried:
        picture.edge(f"{prefix}{producer}", f"{prefix}{consumer}", **_CARRIED)
    _add_clusters(picture, scene, prefix)


def _look_of_edge(scene: Scene, index: int) -> dict[str, str]:
    """Return the attributes of an edge that is unlike others."""
    if index in scene.bold:
        return _BOLD
    if index in scene.gone:
        return {"color": style.CHANGES["vanished"], "style": "dashed"}
    if index in scene.new:
        return {"color": style.CHANGES["appeared"], "penwidth": "2.2"}
    return {}


def _weights(scene: Scene) -> Iterable[str | None]:
    """Weight for the edge of each node that leads to most: backbones are straight."""
    heights = longest_path_ranks(
        len(scene.boxes), [(consumer, producer) for producer, consumer in scene.edges]
    )
    highest: dict[int, int] = {}
    for producer, consumer in scene.edges:
        highest[producer] = max(highest.get(producer, 0), heights[consumer])
    for producer, consumer in scene.edges:
        is_spine = heights[consumer] == highest[producer]
        yield str(SPINE_WEIGHT) if is_spine else None


def _add_clusters(picture: graphviz.Digraph, scene: Scene, prefix: str) -> None:
    """The frames, as clusters, in each other as those are."""
    frames = sorted(scene.frames, key=lambda one: len(one.members))
    parts: list[list[int]] = []
    outermost: dict[int, int] = {}
    for number, frame in enumerate(frames):
        inside = {outermost[one] for one in frame.members if one in outermost}
        parts.append(sorted(inside))
        outermost |= dict.fromkeys(frame.members, number)

    def add(within: graphviz.Digraph, number: int) -> None:
        look = _CLUSTER | {"label": label(frames[number].label, end=LEFT)}
        name = f"cluster_{prefix.removeprefix('n')}{number}"
        with within.subgraph(name=name, graph_attr=look) as one:
            for part in parts[number]:
                add(one, part)
            for member in frames[number].members:
                one.node(f"{prefix}{member}")

    for number in sorted(set(outermost.values())):
        add(picture, number)


def _box(box: Box) -> dict[str, str]:
    title = f"{box.badge}  {box.title}" if box.badge else box.title
    lines = [*title.split("\n"), box.subtitle, *(chip.text for chip in box.chips)]
    return {
        "label": label(*lines),
        "tooltip": label(*box.tooltip.splitlines()),
        "fillcolor": box.fill,
        **_border(box.outline, box.color),
    }


def _size(wide: float, high: float) -> dict[str, str]:
    return {"width": f"{wide / POINTS:.4f}", "height": f"{high / POINTS:.4f}"}


def _border(outline: Outline, color: str) -> dict[str, str]:
    match outline:
        case "alarm":
            return {"color": style.ALARM, "penwidth": "2.5"}
        case "dashed":
            return {"color": color, "style": "rounded,filled,dashed"}
        case "dotted":
            return {"color": color, "style": "rounded,filled,dotted"}
        case "bold":
            return {"color": color, "penwidth": "3"}
        case "plain":
            return {"color": color}


def _add_legend(picture: graphviz.Digraph, scene: Scene) -> None:
    """Add a legend of the colors, as boxes of its own."""
    entries = list(scene.legend)
    if scene.scale:
        low, high = scene.scale
        entries[:0] = [
            LegendEntry(low, style.RAMP[0], style.RAMP[0]),
            LegendEntry(high, style.RAMP[-1], style.RAMP[-1]),
        ]
    look = {"label": "", "color": style.FAINT_LINE}
    with picture.subgraph(name="cluster_legend", graph_attr=look) as legend:
        for index, entry in enumerate(entries):
            legend.node(
                f"k{index}",
                label=label(entry.text),
                fillcolor=entry.fill,
                fontcolor=style.text_on(entry.fill),
                **_border(entry.outline, entry.color),
            )
