"""The timeline as lanes of bars, one column a slice of time."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from gradviz.analysis.timelines.timeline_lanes import Lane, Timeline
from gradviz.analysis.timelines.timeline_spans import (
    STEP_PARTS,
    Span,
    SpanKind,
    StepPart,
)
from gradviz.render.terminal.cells import EIGHTHS, make_console, print_wrapped
from gradviz.render.words.text import (
    MAX_TITLE,
    clean,
    count,
    duration,
    operation,
    shorten,
)
from gradviz.render.words.timeline_text import called, failures, ran, took

MAX_LANE_NAME: Final = 18
MIN_COLUMNS: Final = 20
MAX_FAILURE: Final = 200
SPACE: Final = "   "
#: A node that only had its gradient taken.
CAPTURED: Final = "bright_black"
#: Parts of a step.
PARTS: Final[Mapping[StepPart, str]] = {
    "forward": "bright_cyan",
    "backward": "white",
    "optimizer": "bright_yellow",
}
#: Drawing of the time in which a lane could not go on, or its pass ran no node.
IDLE: Final[Mapping[SpanKind, tuple[str, str]]] = {
    "wait": ("·", "waiting for work"),
    "blocked": ("×", "waits for another stream"),  # noqa: RUF001 - a mark
    "setup": ("╌", "setup and end of a pass"),
    "finish": ("╌", "setup and end of a pass"),
}
COLORS: Final = ("blue", "yellow", "green", "magenta", "cyan", "red")


def print_timeline(timeline: Timeline, console: Console | None = None) -> None:
    """Print a timeline, as wide as the console is.

    A column shows the span that took most of it, filled as far as anything ran.
    """
    console = console or make_console()
    names = [shorten(clean(lane.name), MAX_LANE_NAME) for lane in timeline.lanes]
    gutter = max(map(len, names), default=0) + 2
    columns = max(console.width - gutter, MIN_COLUMNS)
    colors = _colors(timeline)
    head = (
        f"{called(timeline)}: {took(timeline)}, "
        f"{ran(timeline.lanes)}, {_lanes_named(timeline)}"
    )
    ruler = " " * gutter + _ruler(timeline.duration_ns, columns)
    print_wrapped(console, head, "bold", "")
    console.print(Text(ruler, style="dim"), no_wrap=True, overflow="crop")
    for lane, name in zip(timeline.lanes, names, strict=True):
        for row in range(lane.num_rows):
            label = (name if row == 0 else "").ljust(gutter)
            bars = _bars(lane, row, timeline.duration_ns, columns, colors)
            line = Text.assemble((label, "bold"), bars)
            console.print(line, no_wrap=True, overflow="crop")
    for legend in _legend(timeline, colors, console.width):
        console.print(legend)
    for failure in failures(timeline):
        print_wrapped(console, shorten(failure, MAX_FAILURE), "bold red", "")


def _lanes_named(timeline: Timeline) -> str:
    num_streams = sum(lane.thread < 0 for lane in timeline.lanes)
    threads = count(len(timeline.lanes) - num_streams, "thread")
    return f"{threads}, {count(num_streams, 'stream')}" if num_streams else threads


def _ruler(end_ns: int, columns: int) -> str:
    """The axis of time: marks at quarters, and the end at the right."""
    end = f"{duration(end_ns)}╷"
    line = ""
    for quarter in range(4):
        line = line.ljust(columns * quarter // 4)
        mark = f"╷{duration(end_ns * quarter / 4)}"
        if len(line) + len(mark) + len(end) < columns:
            line += mark
    return line.ljust(columns - len(end)) + end


# --- bars -----------------------------------------------------------------------


def _bars(
    lane: Lane, row: int, end_ns: int, columns: int, colors: Mapping[str, str]
) -> Text:
    """One row of a lane."""
    per_column = max(end_ns, 1) / columns
    shown: list[Span | None] = [None] * columns
    longest = [0.0] * columns
    busy_ns = [0.0] * columns
    for span in lane.spans:
        if span.row != row:
            continue
        first = min(max(int(span.start_ns / per_column), 0), columns - 1)
        last = min(max(math.ceil(span.end_ns / per_column) - 1, first), columns - 1)
        for column in range(first, last + 1):
            start = max(span.start_ns, column * per_column)
            part = min(span.end_ns, (column + 1) * per_column) - start
            if span.kind not in IDLE:
                busy_ns[column] += part
            if shown[column] is None or part > longest[column]:
                shown[column], longest[column] = span, part
    text = Text()
    begin = 0
    for end in range(1, columns + 1):
        if end == columns or shown[end] is not shown[begin]:
            parts = [one / per_column for one in busy_ns[begin:end]]
            text.append_text(_bar(shown[begin], parts, colors))
            begin = end
    return text


def _bar(span: Span | None, filled: Sequence[float], colors: Mapping[str, str]) -> Text:
    """The columns of one span, with its number and name if there is room.

    Args:
        span: Span whose columns they are, None for nobody's.
        filled: For each column the part of its time in which anything ran.
        colors: See `_colors`.
    """
    room = len(filled)
    if span is None:
        return Text(" " * room)
    if span.kind in IDLE:
        return Text(IDLE[span.kind][0] * room, style="dim")
    blocks = "".join(EIGHTHS[max(round(8 * min(part, 1)), 1)] for part in filled)
    name = _operation(span)
    for label in (
        (f"{span.index} {name}", str(span.index))
        if span.index >= 0
        else (name, name.rpartition(".")[2])
    ):
        if len(label) + 3 <= room:
            blocks = f"{blocks[0]} {label} {blocks[len(label) + 3 :]}"
            break
    return Text(blocks, style=_style(span, colors))


def _style(span: Span, colors: Mapping[str, str]) -> str:
    if span.status == "captured":
        return CAPTURED
    if span.status != "completed":
        return "bold red"
    if span.kind in STEP_PARTS:
        return PARTS[span.kind]
    return colors.get(_operation(span), "default")


def _colors(timeline: Timeline) -> dict[str, str]:
    """Colors for the operations that took most time."""
    took: Counter[str] = Counter()
    for lane in timeline.lanes:
        for span in lane.spans:
            if span.kind in {"node", "kernel"}:
                took[_operation(span)] += span.end_ns - span.start_ns
    names = [name for name, _ in took.most_common(len(COLORS))]
    return dict(zip(names, COLORS, strict=False))


def _operation(span: Span) -> str:
    return shorten(clean(operation(span.name)), MAX_TITLE)


def _legend(
    timeline: Timeline, colors: Mapping[str, str], width: int
) -> Iterator[Text]:
    """Yield the meanings of the bars, in lines that break between two only."""
    parts = [
        Text.assemble(("█", color), f" {shorten(name, width - 2)}")
        for name, color in colors.items()
    ]
    spans = [span for lane in timeline.lanes for span in lane.spans]
    kinds = {span.kind for span in spans}
    parts += [
        Text.assemble(("█", PARTS[kind]), f" {kind}")
        for kind in STEP_PARTS
        if kind in kinds
    ]
    marks = {mark: text for kind, (mark, text) in IDLE.items() if kind in kinds}
    parts += [
        Text.assemble((2 * mark, "dim"), f" {text}") for mark, text in marks.items()
    ]
    parts += [
        Text(f"{span.index} {_operation(span)} unfinished", style="bold red")
        for span in spans
        if span.status == "unfinished" and span.kind == "node"
    ]
    if any(span.status == "captured" for span in spans):
        parts.append(Text.assemble(("█", CAPTURED), " captured"))
    parts.append(Text("numbers: execution order", style="dim"))
    line = Text()
    for part in parts:
        if line and line.cell_len + len(SPACE) + part.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, SPACE if line else "", part)
    yield line
