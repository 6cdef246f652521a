"""A timeline as an SVG file: a lane for each thread and stream, bars, a legend."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from gradviz.analysis.timeline import Lane, Timeline
from gradviz.analysis.timeline_spans import Span
from gradviz.render import style
from gradviz.render.bars import (
    BAR_TEXT,
    MIN_BAR,
    Bar,
    Scale,
    bars,
    fitting,
    ticks,
    tooltip,
)
from gradviz.render.markup import document, element, group, number
from gradviz.render.text import clean, count, duration, operation, shorten, width
from gradviz.render.timeline_text import failures, lasted
from gradviz.render.wait_arrows import (
    ARROW_HEAD,
    ARROW_STYLE,
    Place,
    are_drawn,
    arrows,
    told,
)

BarColour: TypeAlias = Literal["operation", "device"]

WIDTH: Final = 1180.0
MARGIN: Final = 24.0
TITLE_HEIGHT: Final = 48.0
ERROR_HEIGHT: Final = 17.0
AXIS_HEIGHT: Final = 22.0
ROW_HEIGHT: Final = 24.0
BAR_HEIGHT: Final = 20.0
LANE_PADDING: Final = 7.0
LANE_GAP: Final = 8.0
SWATCH: Final = 14.0
LEGEND_LINE: Final = 22.0
MAX_LANE_NAME: Final = 26
#: Characters; more do not fit the width of the picture.
MAX_ERROR: Final = 150

MAX_COLOURS: Final = len(style.PALETTE)

#: The nodes at which gradients end.
LEAF: Final = "AccumulateGrad"
OTHERS: Final = "others"
#: The classes of bars that are special.
BARS: Final = {
    "failed": "bar failed",
    "unfinished": "bar failed",
    "captured": "bar captured",
}
WAITING: Final = "waiting for work"

_STYLE: Final = f"""\
.bar {{ stroke: {style.BACKGROUND}; stroke-width: 0.8 }}
.failed {{ stroke: {style.ALARM}; stroke-width: 2.5 }}
.captured {{ fill-opacity: 0.35 }}
.error {{ fill: {style.ALARM} }}
.lane {{ fill: {style.PANEL} }}
.grid {{ stroke: {style.FAINT_LINE} }}
.label {{ font-size: {BAR_TEXT:g}px; text-anchor: middle; pointer-events: none }}
.wait {{ fill: url(#waiting) }}
"""

_PATTERN: Final = (
    '<defs><pattern id="waiting" width="6" height="6" patternUnits="userSpaceOnUse" '
    f'patternTransform="rotate(45)"><path d="M0 0V6" stroke="{style.LINE}" '
    'stroke-opacity="0.55" stroke-width="2"/></pattern></defs>'
)


def render_timeline(timeline: Timeline, *, colour_by: BarColour = "operation") -> bytes:
    """Draw a timeline.

    Args:
        timeline: What to draw.
        colour_by: What the colours of bars stand for.

    Returns:
        An SVG file. Its size is bounded by its width and lanes, not by the spans.
    """
    colours = _colours(timeline, colour_by)
    gutter = max(
        (
            width(_lane_name(lane), style.TEXT_SIZE, bold=True)
            for lane in timeline.lanes
        ),
        default=0.0,
    )
    left = MARGIN + max(gutter, 110.0) + 14
    room = WIDTH - left - MARGIN
    scale = Scale(left, room / max(timeline.duration_ns, 1))
    legend, legend_height = _legend(timeline, colours)
    errors = failures(timeline)
    title_height = TITLE_HEIGHT + ERROR_HEIGHT * len(errors)
    top = MARGIN + title_height + legend_height + AXIS_HEIGHT
    below: list[str] = []  # what the lines of the axis cross
    above: list[str] = []  # what hides them
    places: dict[str, Place] = {}
    y = top
    if sum(one.parent < 0 for one in timeline.passes) > 1:
        above += _passes(timeline, scale, y)
        y += ROW_HEIGHT + LANE_GAP
    for lane in timeline.lanes:
        below += _lane_head(lane, scale, y)
        above += _lane_bars(lane, scale, y, colours, colour_by)
        if lane.thread < 0:
            upper = y + LANE_PADDING
            places[lane.name] = Place(upper, upper + BAR_HEIGHT)
        y += _lane_height(lane) + LANE_GAP
    title = _title(timeline)
    parts = [
        _PATTERN,
        *([ARROW_HEAD] if are_drawn(timeline) else ()),
        element("text", title, class_="title", x=MARGIN, y=MARGIN + 12),
        element("text", _subtitle(timeline), class_="faint", x=MARGIN, y=MARGIN + 31),
        *_errors(errors),
        group(legend, x=MARGIN, y=MARGIN + title_height),
        *below,
        *_axis(timeline.duration_ns, scale, top, y - LANE_GAP),
        *above,
        *arrows(timeline, scale, places),
    ]
    look = _STYLE + ARROW_STYLE if are_drawn(timeline) else _STYLE
    return document(title, WIDTH, y - LANE_GAP + MARGIN, parts, look)


def _title(timeline: Timeline) -> str:
    if timeline.step is not None:
        return f"Timeline of step {timeline.step}"
    outermost = [one.task for one in timeline.passes if one.parent < 0]
    tasks = outermost or list(timeline.tasks)
    if len(tasks) == 1:
        return f"Timeline of backward pass {tasks[0]}"
    return f"Timeline of {count(len(tasks), 'backward pass')}"


def _subtitle(timeline: Timeline) -> str:
    num_nodes = sum(lane.num_nodes for lane in timeline.lanes)
    num_streams = sum(lane.thread < 0 for lane in timeline.lanes)
    parts = [
        lasted(timeline),
        count(num_nodes, "node"),
        count(len(timeline.lanes) - num_streams, "thread"),
        *([count(num_streams, "stream")] if num_streams else ()),
        "numbers: execution order",
        *told(timeline),
    ]
    if any(one.parent >= 0 for one in timeline.passes):
        parts.append("inner passes below the node that called them")
    return " · ".join(parts)


def _errors(lines: Sequence[str]) -> Iterator[str]:
    """What failed, below the title."""
    for index, line in enumerate(lines):
        y = MARGIN + 31 + ERROR_HEIGHT * (index + 1)
        text = shorten(line, MAX_ERROR)
        yield element("text", text, class_="error", x=MARGIN, y=y)


# --- lanes ----------------------------------------------------------------------


def _lane_head(lane: Lane, scale: Scale, y: float) -> list[str]:
    """A lane's name and background."""
    high = _lane_height(lane)
    busy = 100 * lane.busy_ns * scale.per_ns / (WIDTH - MARGIN - scale.left)
    num, what = (
        (lane.num_nodes, "node") if lane.thread >= 0 else (lane.num_kernels, "kernel")
    )
    about = f"{count(num, what)}, {busy:.0f} % busy"
    middle = y + high / 2
    return [
        element("text", _lane_name(lane), class_="bold", x=MARGIN, y=middle - 1),
        element("text", about, class_="small faint", x=MARGIN, y=middle + 12),
        element(
            "rect",
            class_="lane",
            x=scale.left,
            y=y,
            width=WIDTH - MARGIN - scale.left,
            height=high,
            rx=4,
        ),
    ]


def _lane_bars(
    lane: Lane,
    scale: Scale,
    y: float,
    colours: Mapping[str, str],
    colour_by: BarColour,
) -> Iterator[str]:
    for row in range(lane.num_rows):
        spans = [span for span in lane.spans if span.row == row]
        at = y + LANE_PADDING + row * ROW_HEIGHT
        for bar in bars(spans, scale):
            if bar.spans[0].kind == "wait":
                yield _wait(bar, at)
            else:
                yield _bar(bar, at, colours, colour_by)


def _lane_height(lane: Lane) -> float:
    return lane.num_rows * ROW_HEIGHT + 2 * LANE_PADDING - (ROW_HEIGHT - BAR_HEIGHT)


def _lane_name(lane: Lane) -> str:
    return shorten(clean(lane.name), MAX_LANE_NAME)


def _bar(bar: Bar, y: float, colours: Mapping[str, str], colour_by: BarColour) -> str:
    first = max(bar.spans, key=lambda span: span.end_ns - span.start_ns)
    colour = style.STEP.get(first.kind) or colours.get(
        _key(first, colour_by), style.REST
    )
    parts = [
        element(
            "rect",
            class_=BARS.get(first.status, "bar"),
            x=bar.x,
            y=y,
            width=bar.wide,
            height=BAR_HEIGHT,
            rx=2.5 if bar.wide > 8 else 0,
            fill=colour,
        )
    ]
    if len(bar.spans) == 1 and (text := fitting(first, bar.wide)):
        parts.append(
            element(
                "text",
                text,
                class_="label",
                x=bar.x + bar.wide / 2,
                y=y + BAR_HEIGHT / 2 + 4,
                style=f"fill: {style.text_on(colour)}",
            )
        )
    return group(parts, tooltip=tooltip(bar.spans))


def _wait(bar: Bar, y: float) -> str:
    waited = sum(span.end_ns - span.start_ns for span in bar.spans)
    rect = element(
        "rect", class_="wait", x=bar.x, y=y, width=bar.wide, height=BAR_HEIGHT
    )
    return group([rect], tooltip=f"waited for work: {duration(waited)}")


# --- passes, axis, legend -------------------------------------------------------


def _passes(timeline: Timeline, scale: Scale, y: float) -> Iterator[str]:
    """A band that says when which backward pass ran."""
    yield element("text", "backward passes", class_="faint", x=MARGIN, y=y + 15)
    reached = -math.inf
    for one in timeline.passes:
        end = timeline.duration_ns if one.end_ns is None else one.end_ns
        x = scale.x(one.begin_ns)
        if one.parent >= 0 or x < reached:
            continue  # nested, or too narrow to be seen beside the one before
        wide = max(scale.x(end) - x, 1.0)
        reached = x + MIN_BAR
        is_bad = one.status != "completed"
        parts = [
            element(
                "rect",
                class_="bar failed" if is_bad else "bar",
                x=x,
                y=y,
                width=wide,
                height=BAR_HEIGHT,
                rx=2.5 if wide > 8 else 0,
                fill=style.PASS,
            )
        ]
        if width(str(one.task), BAR_TEXT) + 4 <= wide:
            parts.append(
                element(
                    "text",
                    str(one.task),
                    class_="label",
                    x=x + wide / 2,
                    y=y + BAR_HEIGHT / 2 + 4,
                )
            )
        hint = f"backward pass {one.task}, {one.status}: {duration(end - one.begin_ns)}"
        yield group(parts, tooltip=hint)


def _axis(end_ns: int, scale: Scale, top: float, bottom: float) -> Iterator[str]:
    for ns in ticks(end_ns):
        x = number(scale.x(ns))
        yield f'<path class="grid" d="M{x} {number(top - 4)}V{number(bottom)}"/>'
        text = duration(ns) if ns else "0"
        yield element(
            "text", text, class_="small faint middle", x=scale.x(ns), y=top - 9
        )


def _key(span: Span, colour_by: BarColour) -> str:
    return clean(span.device if colour_by == "device" else operation(span.name))


def _colours(timeline: Timeline, colour_by: BarColour) -> dict[str, str]:
    """Colours for what took most time; the others share one."""
    took: Counter[str] = Counter()
    for lane in timeline.lanes:
        for span in lane.spans:
            if span.kind in {"node", "kernel"}:
                took[_key(span, colour_by)] += span.end_ns - span.start_ns
    has_leaves = took.pop(LEAF, 0) > 0
    names = [name for name, _ in took.most_common(MAX_COLOURS)]
    colours = dict(zip(names, style.PALETTE, strict=False))
    if colour_by == "device":
        colours = style.assign(names)
    if has_leaves:
        colours[LEAF] = style.LEAF
    if len(took) > len(names):
        colours[OTHERS] = style.REST
    return colours


def _legend(timeline: Timeline, colours: Mapping[str, str]) -> tuple[list[str], float]:
    entries = [(name, {"fill": colour}) for name, colour in colours.items()]
    spans = [span for lane in timeline.lanes for span in lane.spans]
    kinds = {span.kind for span in spans}
    entries += [
        (part, {"fill": colour}) for part, colour in style.STEP.items() if part in kinds
    ]
    if "wait" in kinds:
        entries.append((WAITING, {"class_": "wait"}))
    if any(span.status in {"failed", "unfinished"} for span in spans):
        bad = {"fill": style.BACKGROUND, "class_": "failed"}
        entries.append(("failed or unfinished", bad))
    if any(span.status == "captured" for span in spans):
        entries.append(("captured", {"fill": style.LEAF, "class_": "captured"}))
    parts = []
    x = y = 0.0
    for name, look in entries:
        wide = SWATCH + 7 + width(name, style.TEXT_SIZE) + 16
        if x and x + wide > WIDTH - 2 * MARGIN:
            x, y = 0.0, y + LEGEND_LINE
        parts += [
            element("rect", x=x, y=y, width=SWATCH, height=SWATCH, rx=3, **look),
            element("text", name, x=x + SWATCH + 7, y=y + 11.5),
        ]
        x += wide
    return parts, y + LEGEND_LINE + 10 if entries else 0.0
