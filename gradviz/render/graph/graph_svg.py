"""A laid out picture of a graph as an SVG file."""

from collections.abc import Iterable, Sequence
from typing import Final

from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.render import style
from gradviz.render.graph.carried_routes import carried_routes, length
from gradviz.render.graph.chips import CHIP_GAP, CHIP_HEIGHT, Chip, chips_size
from gradviz.render.graph.graph_scene import LINE_HEIGHT, Box, LegendEntry, Scene
from gradviz.render.graph.module_frames import (
    LABEL_HEIGHT,
    Rectangle,
    place_frames,
    place_labels,
)
from gradviz.render.graph.nesting import origin, panels, panels_height, reach_beyond
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.routing import Point
from gradviz.render.markup import document, element, escape, group, number
from gradviz.render.style import Outline
from gradviz.render.words.text import width

MARGIN: Final = 24.0
TITLE_HEIGHT: Final = 48.0
NOTES_HEIGHT: Final = 17.0
SWATCH: Final = 14.0
RAMP_WIDTH: Final = 120.0
MIN_WIDTH: Final = 360.0
#: Left and right of chips.
INDENT: Final = 6.0

BOLD: Final = ' class="bold"'
GONE: Final = ' class="gone"'
NEW: Final = ' class="new"'
#: Length of a dash and the gap behind it together.
DASHES: Final = 8.0

_STYLE: Final = f"""\
.edges path {{ fill: none; stroke: {style.LINE}; stroke-width: 1.2 }}
.edges path {{ marker-end: url(#arrow) }}
.edges path.carried {{ stroke-dasharray: 5 3 }}
.edges path.bold {{ stroke: {style.INK}; stroke-width: 2.4; marker-end: url(#bold) }}
"""

_ARROW: Final = (
    '<marker id="{}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="{}" '
    'markerHeight="{}" orient="auto"><path d="M0 1L9 5L0 9z" fill="{}"/></marker>'
)
_ARROWS: Final = (
    f"<defs>{_ARROW.format('arrow', 7, 7, style.LINE)}"
    f"{_ARROW.format('bold', 4, 4, style.INK)}</defs>"
)

#: Of a picture of two passes: edges that only one of them has.
_CHANGED_STYLE: Final = f"""\
.edges path.gone {{ stroke: {style.CHANGES["vanished"]}; stroke-dasharray: 5 3 }}
.edges path.new {{ stroke: {style.CHANGES["appeared"]}; stroke-width: 2.2 }}
.edges path.gone {{ marker-end: url(#gone) }}
.edges path.new {{ marker-end: url(#new) }}
"""
_CHANGED_ARROWS: Final = (
    f"<defs>{_ARROW.format('gone', 7, 7, style.CHANGES['vanished'])}"
    f"{_ARROW.format('new', 4, 4, style.CHANGES['appeared'])}</defs>"
)


def page_size(scene: Scene, layout: BoxLayout) -> tuple[float, float]:
    """Return the width and height of the whole picture, in pixels."""
    _, legend_width, _ = _legend(scene)
    beyond = max(reach_beyond(scene, layout)) - MARGIN / 2  # no frame meets the edge
    inner = max(
        layout.width + 2 * max(beyond, 0.0),
        MIN_WIDTH,
        legend_width,
        width(scene.title, style.TITLE_SIZE, bold=True),
        width(scene.subtitle, style.TEXT_SIZE),
        width(scene.notes, style.TEXT_SIZE),
    )
    return inner + 2 * MARGIN, _top(scene) + layout.height + MARGIN


@gc_paused()
def svg(scene: Scene, layout: BoxLayout, scale: float = 1.0) -> bytes:
    """The picture as an SVG file, shown so much larger or smaller than it is."""
    legend, _, _ = _legend(scene)
    page = page_size(scene, layout)
    top = _top(scene)
    left = (page[0] - layout.width) / 2
    looks = _Looks()
    is_changed = bool(scene.gone or scene.new)
    parts = [
        _ARROWS + (_CHANGED_ARROWS if is_changed else ""),
        element("text", scene.title, class_="title", x=MARGIN, y=MARGIN + 12),
        element("text", scene.subtitle, class_="faint", x=MARGIN, y=MARGIN + 31),
        *_notes(scene),
        group(legend, x=MARGIN, y=MARGIN + _head(scene)),
        f'<g transform="translate({number(left)} {number(top)})">',
        *_graph(scene, layout, looks),
        "</g>",
    ]
    rules = _STYLE + (_CHANGED_STYLE if is_changed else "") + looks.rules()
    return document(scene.title, *page, parts, rules, scale=scale)


def _graph(scene: Scene, layout: BoxLayout, looks: "_Looks") -> Iterable[str]:
    """Yield frames, edges and boxes, background first."""
    path = _curve if scene.is_detailed else _line
    frames = place_frames(scene, layout)
    carried = carried_routes(scene, layout, frames)
    yield from (_frame_border(place) for _, place in frames)
    yield '<g class="edges">'
    for at, route in enumerate(layout.routes):
        yield f'<path{_class_of_edge(scene, at)} d="{path(route)}"/>'
    for route in carried:
        # Where several end alike their dashes lie on each other.
        offset = number(DASHES - length(route) % DASHES)
        yield f'<path class="carried" stroke-dashoffset="{offset}" d="{path(route)}"/>'
    yield "</g>"
    labels = place_labels(frames, [*layout.routes, *carried])
    for (left, text), (_, place) in zip(labels, frames, strict=True):
        if text:
            yield _frame_label(left, text, place)
    for at, (box, (x, y)) in enumerate(zip(scene.boxes, layout.centers, strict=True)):
        if scene.is_detailed:
            yield _box(box, looks, x, y, layout.inside.get(at, ()))
        else:
            yield _small_box(box, looks, x, y)


def _class_of_edge(scene: Scene, at: int) -> str:
    """Return the class of an edge that is unlike others."""
    if at in scene.bold:
        return BOLD
    if at in scene.gone:
        return GONE
    return NEW if at in scene.new else ""


def _head(scene: Scene) -> float:
    """Return the height of the title and the lines below it."""
    return TITLE_HEIGHT + (NOTES_HEIGHT if scene.notes else 0.0)


def _top(scene: Scene) -> float:
    """Return the top edge of the graph."""
    return MARGIN + _head(scene) + _legend(scene)[2]


def _notes(scene: Scene) -> list[str]:
    if not scene.notes:
        return []
    return [element("text", scene.notes, class_="faint", x=MARGIN, y=MARGIN + 48)]


# --- frames ---------------------------------------------------------------------


def _frame_border(place: Rectangle) -> str:
    left, top, right, bottom = place
    return element(
        "rect",
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        rx=8,
        fill=style.PANEL,
        stroke=style.FAINT_LINE,
    )


def _frame_label(left: float, text: str, place: Rectangle) -> str:
    baseline = place.top + LABEL_HEIGHT
    return element("text", text, class_="small faint", x=left, y=baseline)


# --- edges ----------------------------------------------------------------------


def _curve(route: Sequence[Point]) -> str:
    start, *rest = (f"{number(x)} {number(y)}" for x, y in route)
    return f"M{start}C{' '.join(rest)}"


def _line(route: Sequence[Point]) -> str:
    """Straight from stop to stop: every third of the control points is one."""
    return "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in route[::3])


# --- boxes ----------------------------------------------------------------------
# These run once a node and a picture may have 100,000 of them: the elements are
# written out instead of being put together by `element`.


def _box(
    box: Box, looks: "_Looks", x: float, y: float, inside: Sequence[BoxLayout] = ()
) -> str:
    look = looks.name(box)
    corner = box.height / 2 if box.is_leaf else 6.0
    middle = number((box.badge_width + box.width) / 2)
    wide, high, r = number(box.width), number(box.height), number(corner)
    head = box.height - panels_height(box, inside)
    text_height = head - chips_size(box.chips)[1]
    lines = box.title.split("\n")
    more = (len(lines) - 1) * LINE_HEIGHT
    baseline = 15.5 if box.subtitle else (text_height - more) / 2 + 4
    title = "".join(
        f'<text class="middle" x="{middle}" y="{number(baseline + at * LINE_HEIGHT)}">'
        f"{escape(line)}</text>"
        for at, line in enumerate(lines)
    )
    subtitle = (
        f'<text class="small faint middle" x="{middle}" y="{number(29 + more)}">'
        f"{escape(box.subtitle)}</text>"
    )
    return (
        f'<g transform="translate({number(x - box.width / 2)} '
        f'{number(y - box.height / 2)})"><title>{escape(box.tooltip)}</title>'
        f'<rect class="{look}" width="{wide}" height="{high}" rx="{r}"/>'
        f"{_badge(box, look, corner) if box.badge else ''}"
        f"{title}{subtitle if box.subtitle else ''}"
        f"{_chips(box, looks, text_height)}{_passes(box, looks, inside)}</g>"
    )


def _passes(box: Box, looks: "_Looks", inside: Sequence[BoxLayout]) -> str:
    """The passes that a box called, beside each other, an arrow to each."""
    parts = []
    places = panels(box, inside)
    for scene, layout, place in zip(box.passes, inside, places, strict=True):
        x, y = origin(scene, layout)
        begin, (middle, at) = scene.boxes[0], layout.centers[0]
        route = f"M{number(x + middle)} 0V{number(y + at - begin.height / 2)}"
        parts += [
            f'<g class="pass" transform="{_move(place.left, place.top)}">',
            element(
                "rect",
                width=place.right - place.left,
                height=place.bottom - place.top,
                rx=6,
                fill=style.BACKGROUND,
                stroke=style.FAINT_LINE,
            ),
            f'<g class="edges"><path d="{route}"/></g>',
            f'<g transform="{_move(x, y)}">',
            *_graph(scene, layout, looks),
            "</g></g>",
        ]
    return "".join(parts)


def _move(x: float, y: float) -> str:
    return f"translate({number(x)} {number(y)})"


def _badge(box: Box, look: str, corner: float) -> str:
    """Draw the number at the left end of a box, along its round corners."""
    right, bottom, r = number(box.badge_width), number(box.height), number(corner)
    arc = f"A{r} {r} 0 0 0"
    lower = number(box.height - corner)
    return (
        f'<path class="{look}b" d="M{right} 0H{r}{arc} 0 {r}V{lower}{arc} {r} {bottom}'
        f'H{right}z"/><text class="bold middle {look}t" '
        f'x="{number(box.badge_width / 2 + 1)}" y="{number(box.height / 2 + 4)}">'
        f"{box.badge}</text>"
    )


def _chips(box: Box, looks: "_Looks", top: float) -> str:
    """The leaves of a box, one below the other, from `top` on."""
    left = box.badge_width + INDENT
    wide = box.width - left - INDENT
    parts = []
    for number_of, chip in enumerate(box.chips):
        y = top + number_of * (CHIP_HEIGHT + CHIP_GAP)
        parts.append(
            f'<g transform="translate({number(left)} {number(y)})">'
            f"<title>{escape(chip.tooltip)}</title>"
            f'<rect class="{looks.name(chip)}" width="{number(wide)}" '
            f'height="{CHIP_HEIGHT:g}" rx="{CHIP_HEIGHT / 2:g}"/>'
            f'<text class="small middle" x="{number(wide / 2)}" y="11.5">'
            f"{escape(chip.text)}</text></g>"
        )
    return "".join(parts)


def _small_box(box: Box, looks: "_Looks", x: float, y: float) -> str:
    look = looks.name(box)
    top = box.height - chips_size(box.chips)[1]
    return (
        f'<g transform="translate({x - box.width / 2:.0f} {y - box.height / 2:.0f})">'
        f"<title>{escape(box.tooltip)}</title>"
        f'<rect class="{look}" width="{box.width:.0f}" height="{box.height:.0f}"/>'
        f'<text x="7" y="17"><tspan class="bold">{box.badge}</tspan> '
        f"{escape(box.title)}</text>{_chips(box, looks, top)}</g>"
    )


class _Looks:
    """Short names for the colors and borders of boxes, and their CSS rules."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, Outline], str] = {}

    def name(self, one: Box | Chip) -> str:
        look = (one.color, one.fill, one.outline)
        return self._names.setdefault(look, f"k{len(self._names)}")

    def rules(self) -> str:
        rules = []
        for (color, fill, outline), name in self._names.items():
            border = ";".join(f"{k}:{v}" for k, v in _border(outline, color).items())
            rules += [
                f".{name} {{ fill: {fill}; {border} }}",
                f".{name}b {{ fill: {color} }}",
                f"text.{name}t {{ fill: {style.text_on(color)} }}",
            ]
        return "\n".join([*rules, ""])


def _border(outline: Outline, color: str) -> dict[str, str]:
    match outline:
        case "alarm":
            return {"stroke": style.ALARM, "stroke-width": "2.5"}
        case "dashed":
            return {"stroke": color, "stroke-dasharray": "4 3"}
        case "dotted":
            return {
                "stroke": color,
                "stroke-width": "2",
                "stroke-dasharray": "0.1 4",
                "stroke-linecap": "round",
            }
        case "bold":
            return {"stroke": color, "stroke-width": "3"}
        case "plain":
            return {"stroke": color, "stroke-width": "1.2"}


# --- legend ---------------------------------------------------------------------


def _legend(scene: Scene) -> tuple[list[str], float, float]:
    """The legend's elements, how wide and how high it is."""
    parts: list[str] = []
    x = 0.0
    if scene.scale:
        ramp, x = _ramp(*scene.scale)
        parts += ramp
    for entry in scene.legend:
        parts += _swatch(entry, x)
        x += SWATCH + 7 + width(entry.text, style.TEXT_SIZE) + 18
    return parts, x, SWATCH + 24 if parts else 0.0


def _swatch(entry: LegendEntry, x: float) -> list[str]:
    return [
        element(
            "rect",
            x=x,
            width=SWATCH,
            height=SWATCH,
            rx=3,
            fill=entry.fill,
            **_border(entry.outline, entry.color),
        ),
        element("text", entry.text, x=x + SWATCH + 7, y=11.5),
    ]


def _ramp(low: str, high: str) -> tuple[list[str], float]:
    """Return the scale of time as a strip of colors, and its right end."""
    stops = "".join(
        element("stop", offset=f"{index / (len(style.RAMP) - 1):g}", stop_color=color)
        for index, color in enumerate(style.RAMP)
    )
    strip = width(low, style.TEXT_SIZE) + 6
    after = strip + RAMP_WIDTH + 8
    parts = [
        f'<defs><linearGradient id="ramp">{stops}</linearGradient></defs>',
        element("text", low, class_="end", x=strip - 8, y=11.5),
        element(
            "rect", x=strip, width=RAMP_WIDTH, height=SWATCH, rx=3, fill="url(#ramp)"
        ),
        element("text", high, x=after, y=11.5),
    ]
    return parts, after + width(high, style.TEXT_SIZE) + 18
