"""Markup of the parts of a film: boxes, rows, lines of text, and their style."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.moments.node_stages import STAGES, NodeStage
from gradviz.render import style
from gradviz.render.film.box_states import BoxState
from gradviz.render.film.film_panels import PanelRow, dots
from gradviz.render.film.filmed_graph import FilmedBox
from gradviz.render.film.small_boxes import CHIP_SIZE, HEAD_HEIGHT
from gradviz.render.markup import element, escape, number
from gradviz.render.words.text import fit, width

#: The height of a row of a panel.
ROW: Final = 22.0
#: Of the words that say what happens.
SAID_SIZE: Final = 13.0


class _BoxLook(NamedTuple):
    """The look of a box at some stage."""

    fill: str
    stroke: str
    width: float = 1.2
    dashes: str = ""


_WAITING: Final = "#d99a00"
_RUNNING: Final = "#1a9e63"
_QUEUED: Final = style.PALETTE[0]
_GIVEN: Final = style.PALETTE[3]

_LOOKS: Final[dict[NodeStage, _BoxLook]] = {
    "not reached": _BoxLook(style.BACKGROUND, style.FAINT_LINE),
    "waiting": _BoxLook(style.tint(_WAITING, 0.1), _WAITING, dashes="4 2"),
    "queued": _BoxLook(style.tint(_QUEUED, 0.2), _QUEUED),
    "popped": _BoxLook(style.tint(_WAITING, 0.55), _WAITING, 2.4),
    "running": _BoxLook(style.tint(_RUNNING, 0.55), _RUNNING, 2.4),
    "completed": _BoxLook(
        style.tint(_RUNNING, 0.09), style.mix(_RUNNING, "#ffffff", 0.5)
    ),
    "captured": _BoxLook(style.tint(_RUNNING, 0.09), _RUNNING, 2.0, "0.1 4"),
    "failed": _BoxLook(style.tint(style.ALARM, 0.1), style.ALARM, 2.8),
    "skipped": _BoxLook(style.BACKGROUND, style.LINE, dashes="2 3"),
    "left over": _BoxLook(style.BACKGROUND, style.LINE, dashes="2 3"),
}

#: Stages of which the legend tells, in the order in which a node goes through them.
LEGEND: Final[tuple[NodeStage, ...]] = (
    *("waiting", "queued", "popped", "running", "completed"),
)

#: From this stage on the number of a node in the order of execution is seen.
_NUMBERED: Final[frozenset[NodeStage]] = frozenset(
    {"running", "completed", "captured", "failed"}
)


def in_place(move: str, markup: str) -> str:
    """Return markup moved to a place; nothing stays nothing."""
    return markup and f'<g transform="{move}">{markup}</g>'


def box_markup(box: FilmedBox, state: BoxState) -> str:
    """Return a box at some moment, without its name."""
    left, top, right, _ = box.place
    parts = [rectangle(class_of(state.stage), box.place, rx=7 if box.is_chip else 5)]
    if box.is_chip:
        return parts[0]
    baseline = top + HEAD_HEIGHT / 2 + 4
    if box.badge and state.stage in _NUMBERED:
        middle = left + box.badge_width / 2 + 2
        look = "bold middle"
        parts.append(element("text", box.badge, class_=look, x=middle, y=baseline))
    if told := _beside(state):
        parts.append(element("text", told, class_="small end", x=right - 5, y=baseline))
    return "".join(parts)


def _beside(state: BoxState) -> str:
    """The gradients of a node that waits; of several nodes how many are over."""
    if state.num_nodes > 1 and 0 < state.num_over < state.num_nodes:
        return f"{state.num_over:,}/{state.num_nodes:,}"
    return dots(state.has, state.remaining) if state.remaining else ""


def box_name(box: FilmedBox) -> str:
    """Return the name of a box, which is above all its looks."""
    left, top, right, bottom = box.place
    if box.is_chip:
        y = (top + bottom) / 2 + 3.3
        return element("text", box.title, class_="chip", x=(left + right) / 2, y=y)
    x, y = left + box.badge_width + 8, top + HEAD_HEIGHT / 2 + 4
    return element("text", box.title, x=x, y=y)


def class_of(stage: NodeStage) -> str:
    """Return the class of the look that boxes have at a stage."""
    return f"s{STAGES.index(stage)}"


def rectangle(
    look: str, border: tuple[float, float, float, float], *, rx: float
) -> str:
    """Return a rectangle of a class: left, top, right and bottom."""
    left, top, right, bottom = border
    wide, high = right - left, bottom - top
    return element("rect", class_=look, x=left, y=top, width=wide, height=high, rx=rx)


def curve(route: Sequence[tuple[float, float]]) -> str:
    """Return the path of a way: a start, then three points for each curve."""
    start, *rest = (f"{number(x)} {number(y)}" for x, y in route)
    return f"M{start}C{' '.join(rest)}"


def panel_title(title: str, left: float, top: float, room: float) -> str:
    """Return the title of a panel, as much of it as there is room for."""
    told = fit(title, room, style.TEXT_SIZE, bold=True)
    return element("text", told, class_="bold", x=left, y=top + 15)


def row_markup(row: PanelRow, left: float, top: float, room: float) -> str:
    """Return a row of a panel, as much of its texts as there is room for."""
    right = left + room
    parts = []
    if row.stage is not None:
        border = (left, top + 1, right, top + ROW - 2)
        parts.append(rectangle(class_of(row.stage), border, rx=5))
    inner = room - 14
    told = fit(row.right, inner * 0.6, style.SMALL_SIZE)
    inner -= width(told, style.SMALL_SIZE) + 10
    name = fit(row.left, inner, style.TEXT_SIZE)
    inner -= width(name, style.TEXT_SIZE) + 8
    detail = fit(row.detail, inner, style.SMALL_SIZE) if inner > 30 else ""
    more = (
        f'<tspan class="small faint" dx="6">{escape(detail)}</tspan>' if detail else ""
    )
    y = top + 15
    x = left + 7
    parts.append(f'<text x="{number(x)}" y="{number(y)}">{escape(name)}{more}</text>')
    if told:
        parts.append(element("text", told, class_="small end", x=right - 7, y=y))
    return "".join(parts)


def wrapped(said: str, room: float, most: int, *, bold: bool = False) -> list[str]:
    """Break words into at most so many lines, the last cut where there are more."""
    lines: list[str] = []
    for word in said.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (
            len(lines) == most or width(longer, SAID_SIZE, bold=bold) <= room
        ):
            lines[-1] = longer
        else:
            lines.append(word)
    return [fit(line, room, SAID_SIZE, bold=bold) for line in lines[:most]]


DEFINITIONS: Final = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    f'markerHeight="7" orient="auto"><path d="M0 1L9 5L0 9z" fill="{style.LINE}"/>'
    "</marker></defs>"
)


def _rules() -> Iterator[str]:
    for stage, look in _LOOKS.items():
        dashes = f"; stroke-dasharray: {look.dashes}" if look.dashes else ""
        yield (
            f".{class_of(stage)} {{ fill: {look.fill}; stroke: {look.stroke}; "
            f"stroke-width: {look.width:g}{dashes} }}"
        )


FILM_STYLE: Final = "\n".join(
    (
        *_rules(),
        f".chip {{ font-size: {CHIP_SIZE:g}px; text-anchor: middle }}",
        f".said {{ font-size: {SAID_SIZE:g}px; font-weight: 600 }}",
        f".why {{ font-size: {SAID_SIZE:g}px; fill: #7a5600 }}",
        f".failed {{ fill: {style.ALARM} }}",
        f".progress {{ fill: {style.PALETTE[0]} }}",
        f".rule {{ stroke: {style.FAINT_LINE} }}",
        f".frame {{ fill: {style.PANEL}; stroke: {style.FAINT_LINE} }}",
        f".edge {{ fill: none; stroke: {style.LINE}; stroke-width: 1.1 }}",
        ".edge { marker-end: url(#arrow) }",
        f".given {{ fill: none; stroke: {_GIVEN}; stroke-width: 3 }}",
        f".ring {{ fill: none; stroke: {_GIVEN}; stroke-width: 2 }}",
        "",
    )
)
