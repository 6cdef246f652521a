"""The stage of a film: the places of all parts, and those that change."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gradviz.analysis.moments.event_replay import Replay, ReplayedEvent
from gradviz.analysis.nodes.inferred import inferred_passes
from gradviz.render import style
from gradviz.render.animation import Track
from gradviz.render.film.box_states import box_states
from gradviz.render.film.film_markup import (
    DEFINITIONS,
    LEGEND,
    ROW,
    box_markup,
    box_name,
    class_of,
    curve,
    in_place,
    panel_title,
    rectangle,
    row_markup,
    wrapped,
)
from gradviz.render.film.film_panels import (
    MAX_QUEUES,
    film_panels,
    rows_of,
)
from gradviz.render.film.filmed_graph import FilmedGraph, filmed_graph
from gradviz.render.graph.graph_scene import size
from gradviz.render.markup import element, number
from gradviz.render.replay.words import MAX_NESTED, ReplayWords
from gradviz.render.words.text import count, duration, fit, of_program, width
from gradviz.trace.events import GradientBuffered, NodeFailed, TaskFailed

_MARGIN: Final = 20.0
_HEAD: Final = 72.0
_FOOT: Final = 84.0
#: The part of the width that the graph has.
_GRAPH: Final = 0.56
#: A small graph is drawn larger, but no more than this: its texts would be too large.
MAX_SCALE: Final = 1.6
_GAP: Final = 8.0


class FilmStage:
    """Contents of a film, and where they stand.

    Args:
        replay: The events.
        task: The pass whose graph is drawn.
        places: Positions of the events that are frames.
        size: Its width and height, in pixels.
    """

    def __init__(
        self, replay: Replay, task: int, places: Sequence[int], size: tuple[int, int]
    ) -> None:
        self._replay, self._task = replay, task
        self._width, self._height = size
        self._words = ReplayWords(replay)
        self._body = (_HEAD, self._height - _FOOT)
        rows = int((self._body[1] - self._body[0]) // ROW)
        self._frames = [_kept(replay.at(place, most=rows)) for place in places]
        self._room = self._width * _GRAPH - _MARGIN, self._body[1] - self._body[0]
        self._graph = filmed_graph(replay.trace, task, self._room)
        self._move = self._into_room()
        seqs = [one.event.seq for one in self._frames]
        self._states = box_states(replay.trace, self._graph, seqs)
        self._panels = film_panels(self._frames, self._words, replay.trace, rows)
        queues = {one for shown in self._frames for one in shown.moment.num_queued}
        self._num_queues = len(queues)
        self._boxes_of = _boxes_of(self._graph)
        num_rows = sum(1 + panel.room for panel in self._panels)
        free = self._body[1] - self._body[0] - num_rows * ROW - 4
        self._gap = min(max(free / len(self._panels), 0.0), ROW)

    @property
    def title(self) -> str:
        """The name of the pass."""
        program = of_program(self._graph.graph.program)
        return f"Backward pass {self._task}{program}"

    def notes(self) -> Iterator[str]:
        """Sentences about what is not shown as it is."""
        total = len(self._replay)
        if len(self._frames) < total:
            yield f"{len(self._frames):,} of {count(total, 'event')} are shown"
        graph = self._graph.graph
        yield from graph.notes
        if graph.omitted:
            yield f"{count(graph.omitted, 'node')} left out of the graph"
        yield from (one.removesuffix(".") for one in self._words.missing())
        if more := max(self._num_queues - MAX_QUEUES, 0):
            yield f"{count(more, 'more queue')} not shown"
        if self._task in inferred_passes(self._replay.trace):
            yield "queues are inferred"

    def fullest(self) -> int:
        """The frame in which most nodes wait, in queues or for gradients."""
        waiting = [
            sum(one.moment.num_queued.values()) + one.moment.num_waiting
            for one in self._frames
        ]
        return waiting.index(max(waiting))

    # --- what stands still ---

    def below(self) -> Iterator[str]:
        """The head, the frames of modules, the edges."""
        yield DEFINITIONS
        yield element("text", self.title, class_="title", x=_MARGIN, y=30)
        about = " · ".join([size(self._graph.graph), *self.notes()])
        room = self._width - 2 * _MARGIN
        told = fit(about, room, style.TEXT_SIZE)
        yield element("text", told, class_="faint", x=_MARGIN, y=49)
        bottom = self._height - _FOOT + 14
        yield element("path", class_="rule", d=f"M0 {number(bottom)}H{self._width}")
        yield from self._legend()
        yield f'<g transform="{self._move}">'
        for left, label, border in self._graph.frames:
            yield rectangle("frame", border, rx=6)
            if label:
                baseline = border.top + 14
                yield element("text", label, class_="small faint", x=left, y=baseline)
        for edge in self._graph.edges:
            yield f'<path class="edge" d="{curve(edge.route)}"/>'
        yield "</g>"

    def above(self) -> Iterator[str]:
        """The names of the boxes."""
        yield f'<g transform="{self._move}">'
        for box in self._graph.boxes:
            yield box_name(box)
        yield "</g>"

    def _legend(self) -> Iterator[str]:
        """The looks of boxes, on the right of the title."""
        x = self._width - _MARGIN
        for stage in reversed(LEGEND):
            x -= width(stage, style.SMALL_SIZE)
            yield element("text", stage, class_="small faint", x=x, y=self._height - 8)
            x -= 16
            yield element(
                "rect",
                class_=class_of(stage),
                x=x,
                y=self._height - 17,
                width=11,
                height=10,
                rx=2,
            )
            x -= 14

    def _into_room(self) -> str:
        """The transform that puts the graph in the middle of its room, and fills it."""
        graph, (wide, high) = self._graph, self._room
        scale = min(wide / graph.width, high / graph.height, MAX_SCALE)
        left = _MARGIN + (wide - graph.width * scale) / 2
        top = self._body[0] + (high - graph.height * scale) / 2
        return f"translate({number(left)} {number(top)}) scale({scale:.4g})"

    # --- what changes ---

    def tracks(self) -> Iterator[Track]:
        """Everything that is not the same in each frame."""
        yield self._progress()
        yield [self._clock(one) for one in self._frames]
        yield [self._said(one) for one in self._frames]
        for box, states in zip(self._graph.boxes, self._states, strict=True):
            yield [in_place(self._move, box_markup(box, one)) for one in states]
        yield [in_place(self._move, self._pointed(one)) for one in self._frames]
        yield from self._panel_tracks()

    def _progress(self) -> Track:
        total = self._frames[-1].place - self._frames[0].place or 1
        room = self._width - 2 * _MARGIN
        first = self._frames[0].place
        return [
            element(
                "rect",
                class_="progress",
                x=_MARGIN,
                y=57,
                width=max(room * (one.place - first) / total, 1.0),
                height=3,
            )
            for one in self._frames
        ]

    def _clock(self, shown: ReplayedEvent) -> str:
        said = (
            f"event {shown.place + 1:,} of {len(self._replay):,} · "
            f"{duration(shown.after_ns)}"
        )
        right = self._width - _MARGIN
        return element("text", said, class_="end", x=right, y=30)

    def _said(self, shown: ReplayedEvent) -> str:
        """The event in words, and why it was this task, in three lines."""
        event = shown.event
        said = self._words.sentence(event)
        if len({one.event.thread for one in self._frames}) > 1:
            said = f"thread {self._words.thread(event.thread)}: {said}"
        why = "" if shown.choice is None else f"Why: {self._words.why(shown.choice)}"
        room = self._width - 2 * _MARGIN
        failed = isinstance(event, NodeFailed | TaskFailed)
        lines = [
            (line, "said failed" if failed else "said")
            for line in wrapped(said, room, 2, bold=True)
        ]
        lines += [(line, "why") for line in wrapped(why, room, 3 - len(lines))]
        top = self._height - _FOOT + 33
        return "".join(
            element("text", line, class_=look, x=_MARGIN, y=top + 16 * nth)
            for nth, (line, look) in enumerate(lines)
        )

    def _pointed(self, shown: ReplayedEvent) -> str:
        """A ring around what the event is about; the way of a gradient."""
        event = shown.event
        boxes = self._boxes_of.get((event.task, event.node), ())
        parts = []
        if isinstance(event, GradientBuffered):
            producers = self._boxes_of.get((event.task, event.producer), ())
            parts = [
                f'<path class="given" d="{curve(edge.route)}"/>'
                for edge in self._graph.edges
                if edge.producer in producers and edge.consumer in boxes
            ]
        for at in boxes:
            left, top, right, bottom = self._graph.boxes[at].place
            border = (left - 3, top - 3, right + 3, bottom + 3)
            parts.append(rectangle("ring", border, rx=8))
        return "".join(parts)

    def _panel_tracks(self) -> Iterator[Track]:
        left = self._width * _GRAPH + 2 * _GAP
        room = self._width - _MARGIN - left
        top = self._body[0] + 4
        for panel in self._panels:
            titles, rows = zip(*rows_of(panel), strict=True)
            yield [panel_title(title, left, top, room) for title in titles]
            top += ROW
            for slot in range(panel.room):
                yield [
                    row_markup(one[slot], left, top, room) if slot < len(one) else ""
                    for one in rows
                ]
                top += ROW
            top += self._gap


def _kept(shown: ReplayedEvent) -> ReplayedEvent:
    """Return a moment without what no frame shows: there are hundreds of them.

    Of the gradients of a node only the number is shown, so one stands for all.
    """
    moment = msgspec.structs.replace(
        shown.moment,
        workers=tuple(
            msgspec.structs.replace(one, running=one.running[-MAX_NESTED:])
            for one in shown.moment.workers
        ),
        countdowns=tuple(
            msgspec.structs.replace(
                one, gradients=one.gradients[:1] * len(one.gradients)
            )
            for one in shown.moment.countdowns
        ),
    )
    return msgspec.structs.replace(shown, moment=moment)


def _boxes_of(graph: FilmedGraph) -> dict[tuple[int, int], list[int]]:
    """By pass and node the boxes that stand for it."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, box in enumerate(graph.boxes):
        for task in graph.groups[box.group]:
            for node in box.nodes:
                found.setdefault((task, node), []).append(at)
    return found
