"""The common parts of pictures over time: head, legend, panels, axis."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from gradviz.render import style
from gradviz.render.charts.bars import Scale, ticks
from gradviz.render.markup import document, element, number
from gradviz.render.words.text import clean, count, duration, fit, lasted, width

MARGIN: Final = 20.0
#: Left of a panel: the names of what it shows.
GUTTER: Final = 132.0
PANEL_GAP: Final = 22.0
HEADING_HEIGHT: Final = 18.0
AXIS_HEIGHT: Final = 22.0
SWATCH: Final = 13.0
WIDTH: Final = 960
MIN_WIDTH: Final = 400
MAX_WIDTH: Final = 8_000

_LINE: Final = 17.0
_LEGEND_LINE: Final = 21.0

STYLE: Final = f"""\
.panel {{ fill: {style.PANEL} }}
.grid {{ stroke: {style.FAINT_LINE}; fill: none }}
.alarm {{ fill: {style.ALARM} }}
.hatched {{ fill: url(#hatch); stroke: {style.LINE}; stroke-width: 0.6 }}
"""

HATCH: Final = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><path d="M0 0V6" stroke="{style.LINE}" '
    'stroke-opacity="0.6" stroke-width="1.6"/></pattern></defs>'
)


class LegendKey(NamedTuple):
    """An entry of a legend: its meaning, and its swatch."""

    text: str
    look: dict[str, str]


class Drawn(NamedTuple):
    """Something drawn: its elements, for a place from which they are moved down."""

    elements: list[str]
    height: float


class PartOfTime(Protocol):
    """A part of the time of some passes, as `HeldMemory` and `QueuesOverTime` are."""

    @property
    def tasks(self) -> tuple[int, ...]:
        """The passes, the outermost first."""

    @property
    def took_ns(self) -> int | None:
        """Duration of the first pass; None if not known."""

    @property
    def duration_ns(self) -> int:
        """Time from its start to the last event of all."""

    @property
    def from_ns(self) -> int:
        """Start of the part."""

    @property
    def until_ns(self) -> int:
        """End of the part."""


class PanelHead(NamedTuple):
    """Head of a panel.

    Attributes:
        scale: Scale of its time.
        elements: Its elements, above the panel.
        top: Its height.
    """

    scale: Scale
    elements: list[str]
    top: float


def title_of(what: str, parts: Sequence[PartOfTime], program: str) -> str:
    """Return the title: ``Memory of backward pass 4 · 1.2 ms · train.py``."""
    if len(parts) == 1:
        of, took = f"backward pass {parts[0].tasks[0]}", _lasted(parts[0])
    else:
        of = count(len(parts), "backward pass")
        took = duration(sum(one.took_ns or one.duration_ns for one in parts))
    return " · ".join((f"{what} of {of}", took, *([clean(program)] if program else ())))


def shown(parts: Sequence[PartOfTime]) -> str:
    """Return the period shown; empty if that is all."""
    if all(one.until_ns - one.from_ns == one.duration_ns for one in parts):
        return ""
    until = max(one.until_ns for one in parts)
    return f"shown: {duration(parts[0].from_ns)} to {duration(until)} after the start"


def panel_head(one: PartOfTime, among: Sequence[PartOfTime], wide: float) -> PanelHead:
    """Begin the panel of one of several parts, all on one scale of time."""
    longest = max(part.until_ns - part.from_ns for part in among)
    left, right = MARGIN + GUTTER, wide - MARGIN
    scale = Scale(left, (right - left) / max(longest, 1), one.from_ns, one.until_ns)
    if len(among) == 1:
        return PanelHead(scale, [], 0.0)
    heading = f"Backward pass {one.tasks[0]}, {_lasted(one)}"
    text = element("text", heading, class_="bold", x=MARGIN, y=10)
    return PanelHead(scale, [text], HEADING_HEIGHT)


def _lasted(one: PartOfTime) -> str:
    return lasted(one.took_ns, one.until_ns - one.from_ns)


def chart(
    title: str,
    words: Sequence[str],
    alarms: Sequence[str],
    legend: Sequence[LegendKey],
    panels: Sequence[Drawn],
    wide: float,
) -> bytes:
    """An SVG file with panels one below the other.

    Args:
        title: Title of the chart. Texts are clean, but not yet escaped.
        words: Further notes, a line each.
        alarms: Warnings of what is missing or wrong, a line each.
        legend: Meanings of colors and hatches.
        panels: At least one.
        wide: The width of all of it.
    """
    room = wide - 2 * MARGIN
    y = MARGIN + 14
    parts = [
        HATCH,
        element(
            "text",
            fit(title, room, style.TITLE_SIZE, bold=True),
            class_="title",
            x=MARGIN,
            y=y,
        ),
    ]
    for line, class_ in [(one, "faint") for one in words] + [
        (one, "alarm") for one in alarms
    ]:
        y += _LINE
        shown = fit(line, room, style.TEXT_SIZE)
        parts.append(element("text", shown, class_=class_, x=MARGIN, y=y + 3))
    keys = _legend(legend, y + 14, room)
    parts += keys.elements
    y += 14 + keys.height
    for panel in panels:
        parts.append(f'<g transform="translate(0 {number(y)})">')
        parts += panel.elements
        parts.append("</g>")
        y += panel.height + PANEL_GAP
    return document(title, wide, y - PANEL_GAP + MARGIN, parts, STYLE)


def axis(scale: Scale, top: float, bottom: float) -> Iterator[str]:
    """Yield lines through a panel at round times, with labels below it."""
    for ns in ticks(scale):
        x = scale.x(ns)
        yield f'<path class="grid" d="M{number(x)} {number(top)}V{number(bottom)}"/>'
        text = duration(ns) if ns else "0"
        yield element("text", text, class_="small faint middle", x=x, y=bottom + 13)


def gutter_text(text: str, y: float, class_: str = "") -> str:
    """Return a name at the left edge, cut to its room."""
    size = style.SMALL_SIZE if "small" in class_ else style.TEXT_SIZE
    shown = fit(text, GUTTER - 10, size, bold="bold" in class_)
    return element("text", shown, class_=class_, x=MARGIN, y=y)


def _legend(keys: Sequence[LegendKey], top: float, room: float) -> Drawn:
    parts: list[str] = []
    x, y = 0.0, top
    for key in keys:
        text = fit(key.text, room - SWATCH - 7, style.TEXT_SIZE)
        wide = SWATCH + 7 + width(text, style.TEXT_SIZE) + 16
        if x and x + wide > room:
            x, y = 0.0, y + _LEGEND_LINE
        parts += [
            element("rect", x=MARGIN + x, y=y, width=SWATCH, height=SWATCH, **key.look),
            element("text", text, x=MARGIN + x + SWATCH + 7, y=y + 11),
        ]
        x += wide
    return Drawn(parts, y - top + _LEGEND_LINE + 8 if keys else 0.0)
