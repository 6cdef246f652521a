"""The places of all in one lane of a timeline: bars, errors, the queue below."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from gradviz.analysis.timelines.queue_traffic import QueueLength
from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline, busy_ns
from gradviz.analysis.timelines.timeline_spans import Span, SpanKind
from gradviz.analysis.timelines.worker_lanes import bubble
from gradviz.render import style
from gradviz.render.charts.bars import Bar, Row, Scale, bars, row_of
from gradviz.render.timeline.span_text import BAR_TEXT, fitting, tooltip
from gradviz.render.timeline.timeline_arrows import Place
from gradviz.render.timeline.timeline_colors import Look, SpanColors, look_of
from gradviz.render.words.text import clean, count, fit, nodes_ran, width
from gradviz.render.words.timeline_text import failure
from gradviz.trace.reading.worker_threads import name_at, owner_of

ROW_HEIGHT: Final = 24.0
BAR_HEIGHT: Final = 20.0
LANE_PADDING: Final = 6.0
STRIP_HEIGHT: Final = 13.0
STRIP_GAP: Final = 4.0
NOTE_HEIGHT: Final = 16.0

#: Maximum number of errors written below the bars of a lane.
MAX_NOTES: Final = 3
#: Maximum number of queues of one thread drawn.
MAX_STRIPS: Final = 3

#: Colors of bars, whatever the colors of nodes and kernels stand for.
_FILLS: Final[Mapping[str, str]] = {
    **style.STEP,
    "module": style.MODULE,
    "hook": style.HOOK,
    "collective": style.COLLECTIVE,
}


class PlacedBar(NamedTuple):
    """A rectangle; its height is `BAR_HEIGHT`.

    Attributes:
        x: Its left edge.
        y: Its upper edge.
        width: Its width.
        look: Style in which it is drawn.
        fill: Its color.
        label: Text written on it, if there is room.
        tooltip: Description of what it stands for.
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
        name: Name of the queue, and the most tasks that lay in it.
        y: Its upper edge, where the queue is longest.
        points: Positions, and the height from each on, from 0 to 1; the last ends it.
    """

    name: str
    y: float
    points: tuple[tuple[float, float], ...]


class PlacedLane(NamedTuple):
    """A thread, a stream, or a thread's passes.

    Attributes:
        name: Name of the lane.
        about: Summary of the work that it did.
        y: Its upper edge.
        height: Of all of it.
        rows: Places of its rows of bars.
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
    """Contents of a lane: its rows of spans, and the queues below them."""

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
    lane: Lane,
    scale: Scale,
    queues: Sequence[QueueLength],
    *,
    is_by_worker: bool = False,
) -> LaneContents:
    """Return the contents of a lane in the period shown.

    Args:
        lane: The lane.
        scale: The time.
        queues: All queues.
        is_by_worker: True if it is a worker, and not a thread.
    """
    rows = [
        row_of((span for span in lane.spans if span.row == number), scale)
        for number in range(lane.num_rows)
    ]
    while len(rows) > 1 and not rows[-1].spans:
        rows.pop()
    every = [span for row in rows for span in row.spans]
    kind = _work_of(lane, {span.kind for span in every})
    shown = [span for span in every if span.kind == kind]
    shown.sort(key=lambda span: span.start_ns)
    begin, end = scale.begin_ns, scale.end_ns
    busy = busy_ns((max(one.start_ns, begin), min(one.end_ns, end)) for one in shown)
    what = count(len(shown), kind)
    if kind == "node":
        what = nodes_ran(len(shown), len({span.node for span in shown}))
    part = 100 * busy / max(end - begin, 1)
    state = f"{part:.0f} % busy"
    if is_by_worker and lane.thread >= 0:
        state = f"bubble {100 * bubble(lane, begin, end):.0f} %"
    own = [one for one in queues if lane.thread >= 0 and one.thread == lane.thread]
    own.sort(key=lambda one: -one.longest)
    return LaneContents(clean(lane.name), f"{what}, {state}", rows, own[:MAX_STRIPS])


def _work_of(lane: Lane, kinds: Collection[SpanKind]) -> SpanKind:
    """Return the kind of spans that a lane is busy with: its title counts these."""
    if lane.thread < 0:
        return "kernel"
    is_of_backend = "collective" in kinds and "node" not in kinds
    return "collective" if is_of_backend else "node"


def place_lane(
    contents: LaneContents, scale: Scale, y: float, cell: float, colors: SpanColors
) -> PlacedLane:
    """Place the contents of a lane whose upper edge is at `y`."""
    top = y + LANE_PADDING
    rows = [
        Place(top + number * ROW_HEIGHT, top + number * ROW_HEIGHT + BAR_HEIGHT)
        for number in range(max(len(contents.rows), 1))
    ]
    placed = [
        _placed(bar, place.top, colors)
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


def _placed(bar: Bar, y: float, colors: SpanColors) -> PlacedBar:
    spans = tuple(bar.spans)
    main = max(spans, key=lambda one: (one.end_ns - one.start_ns, one.kind == "node"))
    look = colors.look(main) or look_of(main)
    if any(look_of(one) == "failed" for one in spans):
        look = "failed"
    is_module = main.kind in {"forward", "module"}
    if main.kind in {"node", "kernel"} or (colors.is_of_modules and is_module):
        fill = colors.of(main)
    else:
        fill = _FILLS.get(main.kind, style.BACKGROUND)
    label = fitting(main, bar.wide) if len(spans) == 1 else ""
    told = "\n".join([*map(clean, colors.words(spans)), tooltip(spans)])
    return PlacedBar(bar.x, y, bar.wide, look, fill, label, told, spans)


def _failed(rows: Sequence[Row]) -> list[Span]:
    found = [
        span
        for row in rows
        for span in row.spans
        if span.status == "failed" and span.kind == "node"
    ]
    return sorted(found, key=lambda one: one.start_ns)[:MAX_NOTES]


def _steps(queue: QueueLength, scale: Scale) -> tuple[tuple[float, float], ...]:
    """Return the steps of a queue's strip; the highest of each pixel."""
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
