"""Where everything of one lane of a timeline is: bars, errors, the queue below."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from gradviz.analysis.queue_lengths import QueueLength
from gradviz.analysis.thread_owners import name_at, owner_of
from gradviz.analysis.timeline import Lane, Timeline, busy_ns
from gradviz.analysis.timeline_spans import Span
from gradviz.render import style
from gradviz.render.bars import Bar, Row, Scale, bars, row_of
from gradviz.render.span_text import BAR_TEXT, fitting, tooltip
from gradviz.render.text import clean, count, fit, width
from gradviz.render.timeline_arrows import Place
from gradviz.render.timeline_colours import Look, SpanColours, look_of
from gradviz.render.timeline_text import failure

ROW_HEIGHT: Final = 24.0
BAR_HEIGHT: Final = 20.0
LANE_PADDING: Final = 6.0
STRIP_HEIGHT: Final = 13.0
STRIP_GAP: Final = 4.0
NOTE_HEIGHT: Final = 16.0

#: So many errors are written below their bars, of each lane.
MAX_NOTES: Final = 3
#: So many queues of one thread are drawn.
MAX_STRIPS: Final = 3


class PlacedBar(NamedTuple):
    """A rectangle; its height is `BAR_HEIGHT`.

    Attributes:
        x: Its left edge.
        y: Its upper edge.
        width: Its width.
        look: How it is drawn.
        fill: Its colour.
        label: What is written on it, if there is room.
        tooltip: What it stands for.
        spans: All that it stands for.
    """

    x: float
    y: float
    width: float
    look: Look
    fill: str
    label: str
    tooltip: str
    spans: tuple[Span, ...]


class Note(NamedTuple):
    """Words in a lane, from a place to the right."""

    text: str
    x: float
    y: float


class Strip(NamedTuple):
    """The length of a queue over time, below the lane of who takes from it.

    Attributes:
        name: What the queue is called, and the most that lay in it.
        y: Its upper edge, where the queue is longest.
        points: From where on it is how high, from 0 to 1; the last ends it.
    """

    name: str
    y: float
    points: tuple[tuple[float, float], ...]


class PlacedLane(NamedTuple):
    """A thread, a stream, or a thread's passes.

    Attributes:
        name: What it is called.
        about: How much it did.
        y: Its upper edge.
        height: Of all of it.
        rows: Where its rows of bars are.
        bars: From left to right, row by row.
        strips: Its queues.
        notes: Its errors.
    """

    name: str
    about: str
    y: float
    height: float
    rows: tuple[Place, ...]
    bars: tuple[PlacedBar, ...]
    strips: tuple[Strip, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


class LaneContents(NamedTuple):
    """What a lane will show: its rows of spans, and the queues below them."""

    name: str
    about: str
    rows: Sequence[Row]
    queues: Sequence[QueueLength] = ()


def pass_lanes(timeline: Timeline, scale: Scale) -> Iterator[LaneContents]:
    """A lane of passes for each thread that called for any, if there are several."""
    outer = [one for one in timeline.passes if one.parent < 0]
    if timeline.step is not None or len(outer) < 2:
        return
    place = {lane.thread: number for number, lane in enumerate(timeline.lanes)}
    last = len(place)
    outer.sort(key=lambda one: (place.get(one.thread, last), one.thread, one.begin_ns))
    for thread, own in groupby(outer, key=lambda one: one.thread):
        spans = [
            Span(
                kind="backward",
                task=one.task,
                node=-1,
                index=-1,
                name=f"pass {one.task}",
                device="",
                row=0,
                start_ns=one.begin_ns,
                end_ns=timeline.duration_ns if one.end_ns is None else one.end_ns,
                waited_ns=None,
                status=one.status,
            )
            for one in own
        ]
        name = clean(timeline.threads.get(thread, f"thread {thread}"))
        about = f"calls {count(len(spans), 'pass')}"
        yield LaneContents(name, about, [row_of(spans, scale)])


def lane_contents(
    lane: Lane, scale: Scale, queues: Sequence[QueueLength]
) -> LaneContents:
    """What a lane shows of the time that is shown."""
    rows = [
        row_of((span for span in lane.spans if span.row == number), scale)
        for number in range(lane.num_rows)
    ]
    while len(rows) > 1 and not rows[-1].spans:
        rows.pop()
    shown = [
        span
        for row in rows
        for span in row.spans
        if span.kind == ("node" if lane.thread >= 0 else "kernel")
    ]
    shown.sort(key=lambda span: span.start_ns)
    begin, end = scale.begin_ns, scale.end_ns
    busy = busy_ns((max(one.start_ns, begin), min(one.end_ns, end)) for one in shown)
    what = count(len(shown), "node" if lane.thread >= 0 else "kernel")
    part = 100 * busy / max(end - begin, 1)
    own = [one for one in queues if lane.thread >= 0 and one.thread == lane.thread]
    own.sort(key=lambda one: -one.longest)
    return LaneContents(
        clean(lane.name), f"{what}, {part:.0f} % busy", rows, own[:MAX_STRIPS]
    )


def place_lane(
    contents: LaneContents, scale: Scale, y: float, cell: float, colours: SpanColours
) -> PlacedLane:
    """Where everything of a lane is, if its upper edge is at `y`."""
    top = y + LANE_PADDING
    rows = [
        Place(top + number * ROW_HEIGHT, top + number * ROW_HEIGHT + BAR_HEIGHT)
        for number in range(max(len(contents.rows), 1))
    ]
    placed = [
        _placed(bar, place.top, colours)
        for place, row in zip(rows, contents.rows, strict=False)
        for bar in bars(row, scale, cell)
    ]
    bottom = rows[-1].bottom
    notes = []
    for span in _failed(contents.rows):
        text = fit(
            f"✕ {failure(span)}", scale.right - scale.left - 4, BAR_TEXT, bold=True
        )
        x = scale.right - 2 - width(text, BAR_TEXT, bold=True)
        x = max(min(scale.x(span.start_ns), x), scale.left + 2)
        bottom += NOTE_HEIGHT
        notes.append(Note(text, x, bottom - 4))
    strips = []
    owner = owner_of(contents.name)
    of_lane = f" of {name_at(owner, contents.name)}"  # which stands above it already
    for queue in contents.queues:
        bottom += STRIP_GAP
        name = name_at(owner, queue.name).replace(of_lane, "", 1)
        strips.append(
            Strip(
                f"{clean(name)}: at most {queue.longest:,}",
                bottom,
                _steps(queue, scale),
            )
        )
        bottom += STRIP_HEIGHT
    height = bottom + LANE_PADDING - y
    return PlacedLane(
        contents.name,
        contents.about,
        y,
        height,
        tuple(rows),
        tuple(placed),
        tuple(strips),
        tuple(notes),
    )


def _placed(bar: Bar, y: float, colours: SpanColours) -> PlacedBar:
    spans = tuple(bar.spans)
    main = max(spans, key=lambda one: (one.end_ns - one.start_ns, one.kind == "node"))
    look = look_of(main)
    if any(look_of(one) == "failed" for one in spans):
        look = "failed"
    fill = style.STEP.get(main.kind) or style.BACKGROUND
    if main.kind in {"node", "kernel"}:
        fill = colours.of(main)
    label = fitting(main, bar.wide) if len(spans) == 1 else ""
    return PlacedBar(bar.x, y, bar.wide, look, fill, label, tooltip(spans), spans)


def _failed(rows: Sequence[Row]) -> list[Span]:
    found = [
        span
        for row in rows
        for span in row.spans
        if span.status == "failed" and span.kind == "node"
    ]
    return sorted(found, key=lambda one: one.start_ns)[:MAX_NOTES]


def _steps(queue: QueueLength, scale: Scale) -> tuple[tuple[float, float], ...]:
    """How high a queue's strip is from where on; of each pixel the highest."""
    part = 0.0
    points = [(scale.left, part)]
    for pixel, changes in groupby(
        ((scale.x(when), when, length) for when, length in queue.lengths),
        key=lambda one: math.floor(one[0]),
    ):
        some = [(x, length) for x, when, length in changes if when <= scale.end_ns]
        if some:
            x, highest = some[0][0], max(length for _, length in some)
            part = some[-1][1] / max(queue.longest, 1)
            points.append((x, highest / max(queue.longest, 1)))
            points.append((max(x, min(pixel + 1.0, scale.right)), part))
    return (*points, (scale.right, part))
