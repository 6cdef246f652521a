"""A picture of a graph as DOT text, by pure string functions.

Names in a trace are data: nodes are called ``n0``, ``n1`` and so on, every other text
is a quoted and escaped label, and no attribute that loads a file or links to anything
is ever written.
"""

import math
from collections.abc import Iterable
from typing import Final

from gradviz.analysis.ranks import longest_path_ranks
from gradviz.render import style
from gradviz.render.frames import LABEL_HEIGHT, place_frames
from gradviz.render.layout import Layout, Point
from gradviz.render.scene import Box, Entry, Outline, Scene
from gradviz.render.text import width

#: DOT measures boxes in inches and places in points.
POINTS: Final = 72.0
#: Of pictures made of pixels.
DPI: Final = 144
#: How far an arrow's tip lies beyond the end of its line, in points.
ARROW: Final = 6.0
#: How much more than others the edges of a backbone want to be straight.
SPINE_WEIGHT: Final = 20

#: What ends a line of a label: centred, or aligned to the left.
CENTRED: Final = "\\n"
LEFT: Final = "\\l"

_DEFAULTS: Final = f"""\
  graph [fontname="Helvetica", fontsize={style.TEXT_SIZE:g}, fontcolor="{style.INK}", \
bgcolor="{style.BACKGROUND}", labelloc="t", labeljust="l", nodesep=0.3, ranksep=0.4, \
pad=0.3]
  node [shape="box", style="rounded,filled", fontname="Helvetica", \
fontsize={style.TEXT_SIZE:g}, fontcolor="{style.INK}", height=0.36, margin="0.12,0.05"]
  edge [color="{style.LINE}", arrowsize=0.6]"""


def dot_source(scene: Scene, layout: Layout | None = None) -> str:
    """The picture as DOT text, with the places of `layout` if there is one."""
    places: Iterable[Point | None] = [None] * len(scene.boxes)
    routes: Iterable[tuple[Point, ...] | None] = [None] * len(scene.edges)
    if layout is not None:
        places, routes = layout.centres, layout.routes
    lines = [
        "digraph gradviz {",
        _DEFAULTS,
        f"  label={quoted(scene.title, scene.subtitle, end=LEFT)}",
        *([f"  dpi={DPI}"] if layout else []),
    ]
    lines += [
        f"  n{index} [{_box(box, at)}]"
        for index, (box, at) in enumerate(zip(scene.boxes, places, strict=True))
    ]
    lines += [
        f"  n{producer} -> n{consumer}{_route(route)}"
        for (producer, consumer), route in zip(scene.edges, routes, strict=True)
    ]
    lines += _clusters(scene, layout)
    lines += [*_legend(scene, is_placed=layout is not None), "}", ""]
    return "\n".join(lines)


def skeleton_source(scene: Scene) -> str:
    """Only the sizes of the boxes and the edges, for ``dot`` to lay out."""
    lines = [
        "digraph {",
        "  graph [nodesep=0.28, ranksep=0.42]",
        '  node [shape="box", fixedsize=true, label=""]',
        '  edge [arrowhead="none"]',
    ]
    lines += [
        f"  n{index} [width={box.width / POINTS:.4f}, height={box.height / POINTS:.4f}]"
        for index, box in enumerate(scene.boxes)
    ]
    lines += [
        f"  n{producer} -> n{consumer}{weight}"
        for (producer, consumer), weight in zip(
            scene.edges, _weights(scene), strict=True
        )
    ]
    lines += _clusters(scene, None)
    return "\n".join([*lines, "}", ""])


def parse_plain(text: str, scene: Scene) -> Layout:
    """The layout in the ``-Tplain`` output for `skeleton_source` of `scene`.

    Raises:
        ValueError: It is not the layout of that scene.
    """
    centres: dict[str, Point] = {}
    curves: dict[tuple[str, str], list[tuple[Point, ...]]] = {}
    wide = high = 0.0
    for line in text.splitlines():
        match line.split():
            case ["graph", _, across, down]:
                wide, high = float(across) * POINTS, float(down) * POINTS
            case ["node", name, x, y, *_]:
                centres[name] = (float(x) * POINTS, high - float(y) * POINTS)
            case ["edge", tail, head, count, *rest]:
                numbers = [float(one) * POINTS for one in rest[: 2 * int(count)]]
                points = zip(numbers[::2], numbers[1::2], strict=True)
                curve = tuple((x, high - y) for x, y in points)
                curves.setdefault((tail, head), []).append(curve)
            case _:
                pass  # the closing line
    try:
        return Layout(
            tuple(centres[f"n{index}"] for index in range(len(scene.boxes))),
            tuple(curves[f"n{a}", f"n{b}"].pop() for a, b in scene.edges),
            wide,
            high,
        )
    except (KeyError, IndexError) as error:
        raise ValueError(f"dot's layout lacks {error}") from error


def quoted(*lines: str, end: str = CENTRED) -> str:
    """Lines of a label as a DOT string, each but empty ones ended by `end`.

    Backslashes begin escapes in a label and ampersands begin entities: both are made
    literal. The texts are clean of control characters already.
    """
    escaped = [
        line.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
        for line in lines
        if line
    ]
    return '"' + "".join(line + end for line in escaped) + '"'


def _weights(scene: Scene) -> Iterable[str]:
    """Weight for the edge of each node that leads to most: backbones are straight."""
    heights = longest_path_ranks(
        len(scene.boxes), [(consumer, producer) for producer, consumer in scene.edges]
    )
    highest: dict[int, int] = {}
    for producer, consumer in scene.edges:
        highest[producer] = max(highest.get(producer, 0), heights[consumer])
    for producer, consumer in scene.edges:
        is_spine = heights[consumer] == highest[producer]
        yield f" [weight={SPINE_WEIGHT}]" if is_spine else ""


def _clusters(scene: Scene, layout: Layout | None) -> list[str]:
    """The frames, as clusters; with the places of `layout` if there is one."""
    places = dict(place_frames(scene, layout)) if layout else {}
    lines = []
    for index, frame in enumerate(scene.frames):
        if layout is not None and frame not in places:
            continue
        attributes = {
            "label": quoted(frame.label, end=LEFT),
            "fontsize": f"{style.SMALL_SIZE:g}",
            "fontcolor": f'"{style.FAINT_INK}"',
            "color": f'"{style.FAINT_LINE}"',
            "bgcolor": f'"{style.PANEL}"',
            "style": '"rounded"',
        }
        if layout is not None:
            left, top, right, bottom = places[frame]
            corners = _point((left, bottom)), _point((right, top))
            middle = left + 8 + width(frame.label, style.SMALL_SIZE) / 2
            attributes["bb"] = f'"{",".join(corners)}"'
            attributes["lp"] = f'"{_point((middle, top + LABEL_HEIGHT / 2))}"'
        members = " ".join(f"n{member};" for member in frame.members)
        graph = f"graph [{_joined(attributes)}]"
        lines.append(f"  subgraph cluster_{index} {{ {graph} {members} }}")
    return lines


def _box(box: Box, at: Point | None) -> str:
    label = f"{box.badge}  {box.title}" if box.badge else box.title
    attributes = {
        "label": quoted(label, box.subtitle),
        "tooltip": quoted(*box.tooltip.splitlines()),
        "fillcolor": f'"{box.fill}"',
        **_border(box.outline, box.colour),
    }
    if at is not None:
        attributes["pos"] = f'"{_point(at)}"'
        attributes["width"] = f"{box.width / POINTS:.4f}"
        attributes["height"] = f"{box.height / POINTS:.4f}"
        attributes["fixedsize"] = "true"
    return _joined(attributes)


def _border(outline: Outline, colour: str) -> dict[str, str]:
    match outline:
        case "alarm":
            return {"color": f'"{style.ALARM}"', "penwidth": "2.5"}
        case "dashed":
            return {"color": f'"{colour}"', "style": '"rounded,filled,dashed"'}
        case "dotted":
            return {"color": f'"{colour}"', "style": '"rounded,filled,dotted"'}
        case "plain":
            return {"color": f'"{colour}"'}


def _route(route: tuple[Point, ...] | None) -> str:
    if route is None:
        return ""
    (x0, y0), (x1, y1) = route[-2:]
    part = min(ARROW / max(math.dist((x0, y0), (x1, y1)), ARROW), 1.0)
    end = (x1 + (x0 - x1) * part, y1 + (y0 - y1) * part)
    points = " ".join(map(_point, (*route[:-1], end)))
    return f' [pos="e,{_point((x1, y1))} {points}"]'


def _point(point: Point) -> str:
    return f"{point[0]:.1f},{-point[1]:.1f}"  # y grows upwards in DOT


def _joined(attributes: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in attributes.items())


def _legend(scene: Scene, *, is_placed: bool) -> list[str]:
    """What the colours mean, as boxes of their own."""
    entries = list(scene.legend)
    if scene.scale:
        low, high = scene.scale
        entries[:0] = [
            Entry(low, style.RAMP[0], style.RAMP[0]),
            Entry(high, style.RAMP[-1], style.RAMP[-1]),
        ]
    lines = [
        "  subgraph cluster_legend {",
        f'    label=""; color="{style.BACKGROUND if is_placed else style.FAINT_LINE}"',
    ]
    x = 0.0
    for index, entry in enumerate(entries):
        wide = width(entry.text, style.TEXT_SIZE) + 24
        attributes = {
            "label": quoted(entry.text),
            "fillcolor": f'"{entry.fill}"',
            "fontcolor": f'"{style.text_on(entry.fill)}"',
            **_border(entry.outline, entry.colour),
        }
        if is_placed:
            attributes["pos"] = f'"{_point((x + wide / 2, -50))}"'
            attributes["width"] = f"{wide / POINTS:.4f}"
        lines.append(f"    k{index} [{_joined(attributes)}]")
        x += wide + 12
    return [*lines, "  }"]
