"""The scene of a timeline: its words, its lanes, its arrows, with their places."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.analysis.timelines.worker_lanes import bubble
from gradviz.render import style
from gradviz.render.charts.bars import MIN_BAR, Scale, bar_starts, ticks
from gradviz.render.timeline.arrow_routes import label_rows, routed
from gradviz.render.timeline.timeline_arrows import (
    Arrow,
    Place,
    arrows,
    rows_of_pushed,
)
from gradviz.render.timeline.timeline_colors import (
    SpanColors,
    TimelineColor,
    span_colors,
)
from gradviz.render.timeline.timeline_lanes import (
    LaneContents,
    PlacedLane,
    lane_contents,
    pass_lanes,
    place_lane,
)
from gradviz.render.timeline.timeline_legend import (
    LEGEND_LINE,
    PlacedItem,
    arrow_items,
    legend,
    place_legend,
)
from gradviz.render.words.text import clean, count, duration, fit, place, width
from gradviz.render.words.timeline_text import (
    called,
    contents,
    missing,
    ran,
    title,
    took,
)

if TYPE_CHECKING:
    from gradviz.render.timeline.timeline_changes import Beside

MARGIN: Final = 20.0
TITLE_HEIGHT: Final = 22.0
LINE_HEIGHT: Final = 17.0
AXIS_HEIGHT: Final = 22.0
HEADING_HEIGHT: Final = 20.0
LANE_GAP: Final = 7.0
PANEL_GAP: Final = 16.0
#: Height of the message drawn where there is no lane.
EMPTY_HEIGHT: Final = 30.0

#: The names of lanes take no more than this part of the width.
GUTTER_PART: Final = 0.24
MIN_GUTTER: Final = 152.0
#: Between names and bars.
GUTTER_GAP: Final = 12.0
#: A picture has no more bars: they are made from wider cells then.
MAX_BARS: Final = 9_000


class TimelineView(NamedTuple):
    """Options of timelines.

    Attributes:
        width: Of the picture, in pixels.
        begin_ns: The first moment, after the start of each timeline.
        end_ns: The last one; None for the end.
        color_by: Meaning of the colors of nodes and kernels.
        has_queues: True if the lengths of queues are drawn.
        beside: Comparison that the timelines show, if they are of two traces.
        is_by_worker: True if lanes are workers: each says its bubble.
        micro_batches: The micro-batch of each node, from 0, by its id.
    """

    width: float = 960.0
    begin_ns: int = 0
    end_ns: int | None = None
    color_by: TimelineColor = "auto"
    has_queues: bool = True
    beside: "Beside | None" = None
    is_by_worker: bool = False
    micro_batches: Mapping[int, int] = MappingProxyType({})


class Panel(NamedTuple):
    """One timeline.

    Attributes:
        heading: Its title, if there are several.
        y: Its upper edge.
        top: That of its first lane, below the axis.
        bottom: The lower edge of its last lane.
        scale: From its times to places.
        ticks: Marks of the axis: the place and the text of each.
        lanes: First those of passes, then threads, then streams.
        arrows: Between them.
    """

    heading: str
    y: float
    top: float
    bottom: float
    scale: Scale
    ticks: tuple[tuple[float, str], ...]
    lanes: tuple[PlacedLane, ...]
    arrows: tuple[Arrow, ...]


class TimelineScene(NamedTuple):
    """Contents of a picture of timelines.

    Attributes:
        title: Its name and duration.
        words: Further notes, a line each.
        alarms: Missing parts.
        legend: Meaning of the drawing.
        panels: The timelines, one below the other, on one scale.
        width: Width of the picture.
        height: Height of the picture.
        left: Start of time; the names of lanes are left of it.
    """

    title: str
    words: tuple[str, ...]
    alarms: tuple[str, ...]
    legend: tuple[PlacedItem, ...]
    panels: tuple[Panel, ...]
    width: float
    height: float
    left: float


def timeline_scene(timelines: Sequence[Timeline], view: TimelineView) -> TimelineScene:
    """Decide on everything that a picture of timelines shows.

    Args:
        timelines: At least one; drawn one below the other, on one scale.
        view: Options of the picture.
    """
    room = view.width - 2 * MARGIN
    scales = _scales(timelines, view)
    lanes = [
        _contents(timeline, scale, view)
        for timeline, scale in zip(timelines, scales, strict=True)
    ]
    spans = [
        span for own in lanes for lane in own for row in lane.rows for span in row.spans
    ]
    colors = _colors(spans, timelines, view)
    cell = _cell(lanes, scales)

    def panels(y: float) -> list[Panel]:
        found = []
        for number, (timeline, scale, own) in enumerate(
            zip(timelines, scales, lanes, strict=True)
        ):
            head = _heading(timeline, room, view.beside, number)
            head = head if len(timelines) > 1 else ""
            found.append(_panel(timeline, scale, own, (head, y, cell), colors[number]))
            y = found[-1].bottom + PANEL_GAP
        return found

    at_top = panels(0)
    noun = "worker" if view.is_by_worker else "thread"
    told = [*(view.beside.words() if view.beside else contents(timelines, noun=noun))]
    if view.is_by_worker:
        told += _bubbles(timelines, scales)
    words = [*_wrapped([*told, *_merged(at_top)], room)]
    alarms = [
        fit(one, room, style.TEXT_SIZE) for one in _alarms(timelines, view.beside)
    ]
    y = MARGIN + TITLE_HEIGHT + LINE_HEIGHT * (len(words) + len(alarms)) + 6
    lanes_drawn = [lane for panel in at_top for lane in panel.lanes]
    items = place_legend(
        [
            *legend(
                spans, colors[0], has_queues=any(one.strips for one in lanes_drawn)
            ),
            *arrow_items({one.kind for panel in at_top for one in panel.arrows}),
        ],
        MARGIN,
        y,
        room,
    )
    placed = panels(items[-1].y + LEGEND_LINE + 4 if items else y + 4)
    return TimelineScene(
        title=fit(
            title(timelines) if view.beside is None else view.beside.title,
            room,
            style.TITLE_SIZE,
            bold=True,
        ),
        words=tuple(words),
        alarms=tuple(alarms),
        legend=tuple(items),
        panels=tuple(placed),
        width=view.width,
        height=placed[-1].bottom + MARGIN,
        left=scales[0].left,
    )


def _scales(timelines: Sequence[Timeline], view: TimelineView) -> list[Scale]:
    """Of each timeline the scale: a nanosecond is as long in all of them."""
    names = [clean(lane.name) for one in timelines for lane in one.lanes]
    widest = max((width(one, style.TEXT_SIZE, bold=True) for one in names), default=0)
    gutter = min(max(widest, MIN_GUTTER), GUTTER_PART * view.width)
    left = MARGIN + gutter + GUTTER_GAP
    ends = [
        max(min(view.end_ns or one.duration_ns, one.duration_ns), view.begin_ns)
        for one in timelines
    ]
    longest = max(max(ends) - view.begin_ns, 1)
    per_ns = (view.width - MARGIN - left) / longest
    return [Scale(left, per_ns, view.begin_ns, end) for end in ends]


def _contents(
    timeline: Timeline, scale: Scale, view: TimelineView
) -> list[LaneContents]:
    """Its lanes: those of passes, then those of threads and streams."""
    queues = timeline.queues if view.has_queues else ()
    return [
        *pass_lanes(timeline, scale),
        *(
            lane_contents(lane, scale, queues, is_by_worker=view.is_by_worker)
            for lane in timeline.lanes
        ),
    ]


def _cell(lanes: Sequence[Sequence[LaneContents]], scales: Sequence[Scale]) -> float:
    """Return a width of cells that keeps the number of bars low; see `bars`."""
    cell = MIN_BAR
    while cell < scales[0].right:
        num = sum(
            len(bar_starts(row, scale, cell))
            for own, scale in zip(lanes, scales, strict=True)
            for lane in own
            for row in lane.rows
        )
        if num <= MAX_BARS:
            break
        cell *= 2
    return cell


def _colors(
    spans: Sequence[Span], timelines: Sequence[Timeline], view: TimelineView
) -> list[SpanColors]:
    """Return the colors of each timeline; all have the same legend."""
    by = view.color_by
    if by == "auto" and view.beside is not None and view.beside.compared:
        return view.beside.colors()
    if by == "auto" and view.micro_batches:
        by = "microbatch"
    return [span_colors(spans, by, view.micro_batches)] * len(timelines)


def _alarms(timelines: Sequence[Timeline], beside: "Beside | None") -> Iterator[str]:
    """Yield what the timelines do not show, and ought to."""
    if beside is None:
        yield from missing(timelines)
        return
    yield from map(clean, beside.alarms)
    for side in dict.fromkeys(one.name for one in beside.sides):
        own = [
            timeline
            for timeline, one in zip(timelines, beside.sides, strict=True)
            if one.name == side
        ]
        yield from (f"{side}: {line}" for line in missing(own))


def _heading(
    timeline: Timeline, room: float, beside: "Beside | None" = None, number: int = 0
) -> str:
    lines = {place(one.location) for one in timeline.passes if one.parent < 0}
    line = clean(lines.pop()) if len(lines) == 1 else ""
    at = f", called at {line}" if line else ""
    text = f"{called(timeline)}: {took(timeline)}{at}"
    if beside is not None:
        text = f"{beside.sides[number].name} · {text}, {ran(timeline.lanes)}"
    return fit(text, room, style.TEXT_SIZE, bold=True)


def _panel(
    timeline: Timeline,
    scale: Scale,
    lanes: Sequence[LaneContents],
    head: tuple[str, float, float],
    colors: SpanColors,
) -> Panel:
    """A timeline, whose heading, upper edge and width of cells are given."""
    heading, y, cell = head
    top = y + AXIS_HEIGHT + (HEADING_HEIGHT if heading else 0)
    placed: list[PlacedLane] = []
    for lane in lanes:
        at = placed[-1].bottom + LANE_GAP if placed else top
        placed.append(place_lane(lane, scale, at, cell, colors))
    own = placed[len(placed) - len(timeline.lanes) :]
    places: dict[int | str, Sequence[Place]] = {
        lane.name if lane.thread < 0 else lane.thread: one.rows
        for lane, one in zip(timeline.lanes, own, strict=True)
    }
    written = label_rows(placed)
    return Panel(
        heading=heading,
        y=y,
        top=top,
        bottom=placed[-1].bottom if placed else top + EMPTY_HEIGHT,
        scale=scale,
        ticks=tuple((scale.x(ns), duration(ns) if ns else "0") for ns in ticks(scale)),
        lanes=tuple(placed),
        arrows=tuple(
            routed(one, written)
            for one in arrows(timeline, scale, rows_of_pushed(timeline, places))
        ),
    )


def _bubbles(timelines: Sequence[Timeline], scales: Sequence[Scale]) -> list[str]:
    """Return which part of the time of all workers they had nothing to run."""
    parts = [
        bubble(lane, scale.begin_ns, scale.end_ns)
        for timeline, scale in zip(timelines, scales, strict=True)
        for lane in timeline.lanes
        if lane.thread >= 0
    ]
    if not parts:
        return []
    whole = 100 * sum(parts) / len(parts)
    return [f"bubble: workers idle for {whole:.0f} % of the time"]


def _wrapped(parts: Sequence[str], room: float) -> Iterator[str]:
    """Words with dots between them, in lines no wider than `room`."""
    line = ""
    for part in parts:
        longer = f"{line} · {part}" if line else part
        if line and width(longer, style.TEXT_SIZE) > room:
            yield line
            longer = part
        line = longer
    if line:
        yield line


def _merged(panels: Sequence[Panel]) -> list[str]:
    """Return the notes on bars that stand for several spans, and on arrows."""
    bars = [bar for panel in panels for lane in panel.lanes for bar in lane.bars]
    several = [len(bar.spans) for bar in bars if len(bar.spans) > 1]
    told = []
    if several:
        num = f"{sum(several):,}"
        told.append(f"{num} narrow spans drawn as {count(len(several), 'bar')}")
    drawn = [one for panel in panels for one in panel.arrows]
    num_arrows = sum(one.num for one in drawn)
    if num_arrows > len(drawn):
        told.append(f"{num_arrows:,} arrows drawn as {len(drawn):,}")
    return told
