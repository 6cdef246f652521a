"""Arrows in a timeline: pushes, messages, and streams and ranks that wait."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from gradviz.analysis.tables.messages import SentMessage
from gradviz.analysis.timelines.idle_spans import StreamWait
from gradviz.analysis.timelines.queue_traffic import PushAcross
from gradviz.analysis.timelines.rank_waits import RankWait
from gradviz.analysis.timelines.timeline_lanes import Timeline
from gradviz.analysis.timelines.timeline_spans import Span
from gradviz.render.charts.bars import Scale
from gradviz.render.words.text import clean, duration, numbered, size

#: More would hide the bars, and each other.
MAX_ARROWS: Final = 300
#: Least size of a cell: of many arrows, those whose ends are in the same cells are one.
LEAST_CELL: Final = 3.0

ArrowKind: TypeAlias = Literal["push", "await", "send", "join"]


class Place(NamedTuple):
    """Upper and lower edge of the bars of a row."""

    top: float
    bottom: float


class Arrow(NamedTuple):
    """From one bar to another.

    Attributes:
        kind: A node that was pushed, a stream that waited, gradients that were sent to
            another worker, or the last rank that joined a collective.
        x: X coordinate of its start.
        y: Y coordinate of its start.
        to_x: X coordinate of its tip.
        to_y: Y coordinate of its tip.
        tooltip: Text that says what it means.
        num: Number of arrows that it stands for.
        via: Points at which it turns on its way.
    """

    kind: ArrowKind
    x: float
    y: float
    to_x: float
    to_y: float
    tooltip: str
    num: int = 1
    via: tuple[tuple[float, float], ...] = ()


class PushedRows(NamedTuple):
    """Positions of each lane's rows, and the rows of some nodes and collectives.

    Attributes:
        places: By thread, or by the stream's name.
        row_of: By thread or stream and node.
        collectives: By thread and name, if any rank waited in one.
    """

    places: Mapping[int | str, Sequence[Place]]
    row_of: Mapping[tuple[int | str, int, int], int]
    collectives: Mapping[tuple[int, str], Sequence[Span]]

    def place(self, lane: int | str, task: int, node: int) -> Place | None:
        """Return the row of a node, or the first of its lane; None if not shown."""
        rows = self.places.get(lane)
        if not rows:
            return None
        return rows[min(self.row_of.get((lane, task, node), 0), len(rows) - 1)]

    def of_collective(self, lane: int, name: str, at_ns: int) -> Place | None:
        """Return the row of the collective that runs at a moment; None if not shown."""
        rows = self.places.get(lane, ())
        for one in self.collectives.get((lane, name), ()):
            if one.start_ns <= at_ns <= one.end_ns and one.row < len(rows):
                return rows[one.row]
        return None


def rows_of_pushed(
    timeline: Timeline, places: Mapping[int | str, Sequence[Place]]
) -> PushedRows:
    """The rows of the nodes that were pushed or pushed them, and that sent messages."""
    wanted = {(one.from_thread, one.task, one.pushed_by) for one in timeline.pushes}
    wanted |= {(one.to_thread, one.task, one.node) for one in timeline.pushes}
    for sent in timeline.messages:
        wanted.add((sent.thread, sent.task, sent.node))
        wanted.add((sent.to_thread, sent.to_task, sent.to_node))
    found: dict[tuple[int | str, int, int], int] = {}
    collectives: dict[tuple[int, str], list[Span]] = defaultdict(list)
    for lane in timeline.lanes if timeline.rank_waits else ():
        for span in lane.spans:
            if span.kind == "collective":
                collectives[lane.thread, span.name].append(span)
    for lane in timeline.lanes:
        if wanted and lane.thread >= 0 and lane.num_rows > 1:
            for span in lane.spans:
                key = (lane.thread, span.task, span.node)
                if span.kind == "node" and key in wanted:
                    found[key] = span.row
    return PushedRows(places, found, collectives)


def arrows(timeline: Timeline, scale: Scale, rows: PushedRows) -> list[Arrow]:
    """An arrow for each push across threads, wait of a stream or rank, and message.

    Where there are very many, neighbors are one. What happened before or after the
    time that is shown has none.
    """
    wanted = {node for one in timeline.pushes for node in (one.node, one.pushed_by)}
    wanted |= {node for one in timeline.waits for node in (one.node, one.producer)}
    wanted |= {node for one in timeline.messages for node in (one.node, one.to_node)}
    names = {
        span.node: numbered(span.name, span.node, span.index)
        for lane in timeline.lanes
        for span in lane.spans
        if span.kind == "node" and span.node in wanted
    }
    pushes = [_push(one, timeline, scale, rows, names) for one in timeline.pushes]
    waits = [_wait(one, scale, rows, names) for one in timeline.waits]
    sent = [_send(one, scale, rows, names) for one in timeline.messages]
    joins = [_join(one, scale, rows) for one in timeline.rank_waits]
    found = [one for one in (*pushes, *waits, *sent, *joins) if one is not None]
    few, cell = found, LEAST_CELL
    while len(few) > MAX_ARROWS and cell < 2 * scale.right:
        few = _merged(found, cell)
        cell *= 2
    return few[:MAX_ARROWS]


def _merged(some: Sequence[Arrow], cell: float) -> list[Arrow]:
    """Those whose ends are in the same cells as one, the first of them."""
    found: dict[tuple[object, ...], Arrow] = {}
    for one in some:
        key = (one.kind, one.y, one.to_y, one.x // cell, one.to_x // cell)
        first = found.setdefault(key, one)
        if first is not one:
            found[key] = first._replace(num=first.num + 1)
    return [
        one
        if one.num == 1
        else one._replace(tooltip=f"{one.tooltip}\nand {one.num - 1:,} more like it")
        for one in found.values()
    ]


def _push(
    push: PushAcross,
    timeline: Timeline,
    scale: Scale,
    rows: PushedRows,
    names: Mapping[int, str],
) -> Arrow | None:
    source = rows.place(push.from_thread, push.task, push.pushed_by)
    target = rows.place(push.to_thread, push.task, push.node)
    by = f"by {_node(push.pushed_by, names)}" if push.pushed_by >= 0 else "as a root"
    threads = timeline.threads
    source_name = threads.get(push.from_thread, "?")
    lines = [
        f"{_node(push.node, names)} goes to {threads.get(push.to_thread, '?')}",
        f"pushed {by} on {source_name} at {duration(push.pushed_ns)}",
        f"started {duration(max(push.start_ns - push.pushed_ns, 0))} later",
    ]
    return _arrow("push", source, target, push.pushed_ns, push.start_ns, scale, lines)


def _wait(
    wait: StreamWait, scale: Scale, rows: PushedRows, names: Mapping[int, str]
) -> Arrow | None:
    lines = [f"{wait.stream} waits for {wait.awaited_stream}"]
    if wait.producer >= 0:
        lines.append(f"for the gradient of {_node(wait.producer, names)}")
    if wait.node >= 0:
        lines.append(f"asked for by {_node(wait.node, names)}")
    lines.append(f"ready at {duration(wait.ready_ns)}")
    source = rows.place(wait.awaited_stream, -1, -1)
    target = rows.place(wait.stream, -1, -1)
    return _arrow("await", source, target, wait.ready_ns, wait.begin_ns, scale, lines)


def _send(
    message: SentMessage, scale: Scale, rows: PushedRows, names: Mapping[int, str]
) -> Arrow | None:
    sent_ns, received_ns = message.sent_ns, message.received_ns
    if sent_ns is None or received_ns is None or message.start_ns is None:
        return None
    took = "came before it left: the clocks disagree"
    if not message.contradicts:
        took = f"came {duration(received_ns - sent_ns)} later"
    later = duration(max(message.start_ns - received_ns, 0))
    lines = [
        f"worker {message.worker} sends gradients to worker {message.peer}",
        f"{size(message.size_bytes)} at {duration(sent_ns)}, {took}",
        f"from {_node(message.node, names)}",
        f"to {_node(message.to_node, names)}, which started {later} after that",
    ]
    source = rows.place(message.thread, message.task, message.node)
    target = rows.place(message.to_thread, message.to_task, message.to_node)
    return _arrow("send", source, target, sent_ns, message.start_ns, scale, lines)


def _join(wait: RankWait, scale: Scale, rows: PushedRows) -> Arrow | None:
    until_ns = wait.until_ns
    last, waiting = (
        "a rank" if rank is None else f"rank {rank}"
        for rank in (wait.last_rank, wait.rank)
    )
    lines = [
        f"{last} is the last to begin {wait.name}, at {duration(until_ns)}",
        f"{waiting} has waited for {duration(wait.waited_ns)}",
    ]
    source = rows.of_collective(wait.last_thread, wait.name, until_ns)
    target = rows.of_collective(wait.thread, wait.name, until_ns)
    return _arrow("join", source, target, until_ns, until_ns, scale, lines)


def _arrow(
    kind: ArrowKind,
    source: Place | None,
    target: Place | None,
    begin_ns: int,
    end_ns: int,
    scale: Scale,
    lines: Sequence[str],
) -> Arrow | None:
    is_shown = scale.begin_ns <= begin_ns and end_ns <= scale.end_ns
    if source is None or target is None or not is_shown:
        return None
    is_below = target.top > source.top
    return Arrow(
        kind=kind,
        x=scale.x(begin_ns),
        y=source.bottom if is_below else source.top,
        to_x=scale.x(end_ns),
        to_y=target.top if is_below else target.bottom,
        tooltip="\n".join(map(clean, lines)),
    )


def _node(node: int, names: Mapping[int, str]) -> str:
    return names.get(node) or numbered("", node, None)
