"""Arrows in a timeline: which stream's work waited for which of another stream."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from gradviz.analysis.stream_waits import StreamWait
from gradviz.analysis.timeline import Timeline
from gradviz.render import style
from gradviz.render.bars import Scale
from gradviz.render.markup import group, number
from gradviz.render.text import clean, count, duration

#: More would hide the bars, and each other.
MAX_ARROWS: Final = 300

ARROW_STYLE: Final = f"""\
.arrow {{ stroke: {style.INK}; stroke-width: 1.3; fill: none }}
.halo {{ stroke: {style.BACKGROUND}; stroke-width: 3.5; stroke-opacity: 0.75 }}
"""

ARROW_HEAD: Final = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
    'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
    f'<path d="M0 0.8L8 4L0 7.2Z" fill="{style.INK}"/></marker></defs>'
)


class Place(NamedTuple):
    """Where the bars of a stream are: their upper and their lower edge."""

    top: float
    bottom: float


def arrows(
    timeline: Timeline, scale: Scale, places: Mapping[str, Place]
) -> Iterator[str]:
    """An arrow for each wait, from the end of what was awaited; none if too many.

    Args:
        timeline: Has the waits.
        scale: From times to places.
        places: Of each stream.
    """
    if not are_drawn(timeline):
        return
    names = {
        span.node: span.name
        for lane in timeline.lanes
        for span in lane.spans
        if span.kind == "node"
    }
    for wait in timeline.waits:
        awaited, waiting = places[wait.awaited_stream], places[wait.stream]
        is_below = waiting.top > awaited.top
        begin = awaited.bottom if is_below else awaited.top
        end = waiting.top if is_below else waiting.bottom
        points = (scale.x(wait.ready_ns), begin, scale.x(wait.begin_ns), end)
        line = 'd="M{} {}L{} {}"'.format(*map(number, points))
        parts = (
            f'<path class="halo" {line}/>',
            f'<path class="arrow" {line} marker-end="url(#head)"/>',
        )
        yield group(parts, tooltip=_about(wait, names))


def are_drawn(timeline: Timeline) -> bool:
    """Whether there are waits, and not too many for a picture."""
    return 0 < len(timeline.waits) <= MAX_ARROWS


def told(timeline: Timeline) -> Sequence[str]:
    """What the head of a picture says of them."""
    if not timeline.waits:
        return ()
    waits = count(len(timeline.waits), "wait")
    if are_drawn(timeline):
        return (f"arrows: {waits} of a stream for another",)
    return (f"{waits} of streams for others, too many to draw",)


def _about(wait: StreamWait, names: Mapping[int, str]) -> str:
    lines = [f"{wait.stream} waits for {wait.awaited_stream}"]
    if wait.producer >= 0:
        lines.append(f"for the gradient of {_node(wait.producer, names)}")
    if wait.node >= 0:
        lines.append(f"asked for by {_node(wait.node, names)}")
    lines.append(f"ready at {duration(wait.ready_ns)}")
    return "\n".join(map(clean, lines))


def _node(node: int, names: Mapping[int, str]) -> str:
    return f"{names[node]}, node {node}" if node in names else f"node {node}"
