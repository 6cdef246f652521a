"""A picture of timelines as an SVG file."""

from collections.abc import Iterator, Sequence
from typing import Final

from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.render import style
from gradviz.render.markup import document, element, group, number
from gradviz.render.timeline.span_text import BAR_TEXT
from gradviz.render.timeline.timeline_arrows import Arrow
from gradviz.render.timeline.timeline_colors import Look
from gradviz.render.timeline.timeline_lanes import (
    BAR_HEIGHT,
    STRIP_HEIGHT,
    Note,
    PlacedBar,
    PlacedLane,
    Strip,
)
from gradviz.render.timeline.timeline_legend import SWATCH, SWATCH_GAP, PlacedItem
from gradviz.render.timeline.timeline_scene import (
    GUTTER_GAP,
    MARGIN,
    Panel,
    TimelineScene,
    TimelineView,
    timeline_scene,
)
from gradviz.render.words.text import fit

#: Narrower bars have no border and no round corners.
_SLIM: Final = 8.0
#: Of narrower bars whose border has a meaning: as drawn else, it would cover the fill.
_THIN_BORDER: Final = "stroke-width: 0.6"

_CLASSES: Final[dict[Look, str]] = {
    "bar": "bar",
    "failed": "bar failed",
    "captured": "bar captured",
    "wait": "wait",
    "blocked": "blocked",
    "idle": "idle",
    "queue": "queue",
    "blank": "lane",
    "push": "push",
    "await": "await",
    "send": "send",
    "join": "join",
    "gone": "bar gone",
    "new": "bar new",
}

_STYLE: Final = f"""\
.bar {{ stroke: {style.BACKGROUND}; stroke-width: 0.8 }}
.slim {{ stroke: none }}
.failed {{ stroke: {style.ALARM}; stroke-width: 2.5 }}
.gone {{ stroke: {style.INK}; stroke-width: 1.4; stroke-dasharray: 3 2 }}
.new {{ stroke: {style.INK}; stroke-width: 2.2 }}
.captured {{ fill-opacity: 0.35 }}
.alarm {{ fill: {style.ALARM} }}
.lane {{ fill: url(#dots) }}
.grid {{ stroke: {style.FAINT_LINE} }}
.label {{ font-size: {BAR_TEXT:g}px; text-anchor: middle; pointer-events: none }}
.haloed {{ stroke: {style.PANEL}; stroke-width: 4; paint-order: stroke }}
.note {{ font-size: {BAR_TEXT:g}px; font-weight: 600; fill: {style.ALARM} }}
.wait {{ fill: url(#asleep) }}
.blocked {{ fill: url(#crossed); stroke: {style.LINE}; stroke-width: 0.6 }}
.idle {{ fill: url(#lines) }}
.queue {{ fill: {style.FAINT_LINE}; stroke: {style.LINE}; stroke-width: 0.6 }}
.push {{ stroke: {style.FAINT_INK}; stroke-width: 1; fill: none }}
.await {{ stroke: {style.INK}; stroke-width: 1.2; stroke-dasharray: 4 2; fill: none }}
.send {{ stroke: {style.INK}; stroke-width: 1; fill: none }}
.join {{ stroke: {style.INK}; stroke-width: 0.8; stroke-dasharray: 1 2; fill: none }}
.halo {{ stroke: {style.BACKGROUND}; stroke-width: 3; stroke-opacity: 0.7; fill: none }}
"""


def _pattern(name: str, size: int, path: str, more: str = "") -> str:
    return (
        f'<pattern id="{name}" width="{size}" height="{size}" '
        f'patternUnits="userSpaceOnUse"{more}><path d="{path}" fill="none" '
        f'stroke="{style.LINE}" stroke-opacity="0.6" stroke-width="1.2"/></pattern>'
    )


def _head(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0.8L8 4L0 7.2Z" fill="{color}"/></marker>'
    )


_DEFINITIONS: Final = (
    "<defs>"
    + _pattern("asleep", 6, "M0 0V6", ' patternTransform="rotate(45)"')
    + _pattern("crossed", 5, "M0 0L5 5M5 0L0 5")
    + _pattern("lines", 4, "M0 2H4")
    + '<pattern id="dots" width="7" height="7" patternUnits="userSpaceOnUse">'
    f'<rect width="7" height="7" fill="{style.PANEL}"/>'
    f'<circle cx="2" cy="2" r="0.7" fill="{style.PASS}"/></pattern>'
    + _head("push", style.FAINT_INK)
    + _head("await", style.INK)
    + _head("send", style.INK)
    + _head("join", style.INK)
    + "</defs>"
)


def render_timeline(
    timelines: Timeline | Sequence[Timeline], view: TimelineView | None = None
) -> bytes:
    """Draw a timeline, or several one below the other.

    Args:
        timelines: Timelines to draw, at least one.
        view: Part of them to draw, and its look.

    Returns:
        An SVG file. Its size is bounded, however many spans there are.
    """
    many = [timelines] if isinstance(timelines, Timeline) else timelines
    return timeline_svg(timeline_scene(many, view or TimelineView()))


def timeline_svg(scene: TimelineScene) -> bytes:
    """The picture as an SVG file."""
    y = MARGIN + 14
    parts = [
        _DEFINITIONS,
        element("text", scene.title, class_="title", x=MARGIN, y=y),
    ]
    for word in scene.words:
        y += 17
        parts.append(element("text", word, class_="faint", x=MARGIN, y=y + 3))
    for alarm in scene.alarms:
        y += 17
        parts.append(element("text", alarm, class_="alarm", x=MARGIN, y=y + 3))
    for item in scene.legend:
        parts += _legend(item)
    for panel in scene.panels:
        parts += _panel(panel, scene)
    return document(scene.title, scene.width, scene.height, parts, _STYLE)


def _legend(placed: PlacedItem) -> Iterator[str]:
    item, x, y = placed
    if item.look in {"push", "await", "send", "join"}:
        line = f'd="M{number(x)} {number(y + 7)}h{number(SWATCH)}"'
        yield f'<path class="{item.look}" marker-end="url(#{item.look})" {line}/>'
    else:
        more = {} if item.look in _HATCHED else {"fill": item.fill}
        if item.look != "bar":
            more["class_"] = _CLASSES[item.look]
        yield element("rect", x=x, y=y, width=SWATCH, height=SWATCH, **more)
    text_x = x + SWATCH + SWATCH_GAP
    yield element("text", item.text, class_="key", x=text_x, y=y + 11.5)


#: Looks whose class says everything.
_HATCHED: Final[frozenset[Look]] = frozenset(
    {"wait", "blocked", "idle", "queue", "blank"}
)


def _panel(panel: Panel, scene: TimelineScene) -> Iterator[str]:
    if panel.heading:
        yield element("text", panel.heading, class_="bold", x=MARGIN, y=panel.y + 12)
    for lane in panel.lanes:
        yield from _lane_head(lane, panel, scene.left)
    for x, text in panel.ticks:
        top = number(panel.top - 4)
        yield f'<path class="grid" d="M{number(x)} {top}V{number(panel.bottom)}"/>'
        yield element("text", text, class_="small faint middle", x=x, y=panel.top - 8)
    for lane in panel.lanes:
        for strip in lane.strips:
            yield from _strip(strip, scene.left)
        yield from map(_bar, lane.bars)
    for lane in panel.lanes:
        yield from map(_note, lane.notes)
    yield from map(_arrow, panel.arrows)


def _lane_head(lane: PlacedLane, panel: Panel, left: float) -> Iterator[str]:
    """A lane's background, its name, and how much it did."""
    room = left - MARGIN - GUTTER_GAP
    yield element(
        "rect",
        class_="lane",
        x=left,
        y=lane.y,
        width=max(panel.scale.right - left, 1),
        height=lane.height,
    )
    middle = (lane.rows[0].top + lane.rows[0].bottom) / 2
    name = fit(lane.name, room, style.TEXT_SIZE, bold=True)
    about = fit(lane.about, room, style.SMALL_SIZE)
    yield element("text", name, class_="bold", x=MARGIN, y=middle)
    yield element("text", about, class_="small faint", x=MARGIN, y=middle + 12)


def _bar(bar: PlacedBar) -> str:
    class_ = _CLASSES[bar.look]
    look = {} if bar.look in _HATCHED else {"fill": bar.fill}
    if bar.look in {"bar", "captured"} and bar.width < _SLIM:
        class_ += " slim"
    elif bar.look in {"gone", "new"} and bar.width < _SLIM:
        look["style"] = _THIN_BORDER
    parts = [
        element(
            "rect",
            class_=class_,
            x=bar.x,
            y=bar.y,
            width=bar.width,
            height=BAR_HEIGHT,
            **look,
        )
    ]
    if bar.label:
        x, y = bar.x + bar.width / 2, bar.y + BAR_HEIGHT / 2 + 4
        parts.append(element("text", bar.label, **_ink(bar), x=x, y=y))
    return group(parts, tooltip=bar.tooltip)


def _ink(bar: PlacedBar) -> dict[str, str]:
    """Return the attributes that make the text on a bar legible."""
    if bar.look in _HATCHED:
        return {"class_": "label haloed"}
    return {"class_": "label", "style": f"fill: {style.text_on(bar.fill)}"}


def _strip(strip: Strip, left: float) -> Iterator[str]:
    """A queue's length as an area."""
    bottom = strip.y + STRIP_HEIGHT
    path = [f"M{number(left)} {number(bottom)}"]
    for x, part in strip.points:
        path.append(f"H{number(x)}V{number(bottom - part * STRIP_HEIGHT)}")
    shape = f'<path class="queue" d="{"".join(path)}V{number(bottom)}Z"/>'
    yield group([shape], tooltip=f"tasks in the queue {strip.name}")
    name = fit(strip.name, left - MARGIN - GUTTER_GAP, style.SMALL_SIZE)
    yield element("text", name, class_="small faint", x=MARGIN, y=bottom - 2)


def _note(note: Note) -> str:
    return element("text", note.text, class_="note", x=note.x, y=note.y)


def _arrow(arrow: Arrow) -> str:
    stops = ((arrow.x, arrow.y), *arrow.via, (arrow.to_x, arrow.to_y))
    line = f'd="M{"L".join(f"{number(x)} {number(y)}" for x, y in stops)}"'
    parts = (
        f'<path class="halo" {line}/>',
        f'<path class="{arrow.kind}" {line} marker-end="url(#{arrow.kind})"/>',
    )
    return group(parts, tooltip=arrow.tooltip)
