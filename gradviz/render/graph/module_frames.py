"""Frames around the nodes that one part of a model made.

Frames are drawn around a picture that was laid out without them, since those that have
a say in it push it apart. One is left out where it would hold the box of a stranger.
"""

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradviz.render.graph.graph_scene import Box, ModuleFrame, Scene
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.routing import Point
from gradviz.render.style import SMALL_SIZE
from gradviz.render.words.text import fit_end, width

#: Between a frame and its boxes.
PADDING: Final = 7.0
#: The room of its label, above the boxes.
LABEL_HEIGHT: Final = SMALL_SIZE + 6.0
#: Between a frame and the boxes above and below it.
CLEARANCE: Final = 5.0
#: By how much dot's curves may miss the boxes that they lead to.
TOLERANCE: Final = 1.5
#: Depth that letters reach below the line that they stand on.
BASELINE: Final = 3.0
#: Around a frame that lies in no other one.
_NO_FRAME: Final = ModuleFrame("", ())
#: In so many pieces a curve is looked at where it may pass a label.
PIECES: Final = 24


class Rectangle(NamedTuple):
    """A part of the plane; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Rectangle") -> bool:
        """Return whether two rectangles share more than an edge."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def with_room(scene: Scene, layout: BoxLayout) -> BoxLayout:
    """A layout with the room that its frames need, where they begin and end.

    Layers are moved down, and nothing is moved to the side: frames make no picture
    wider. Where several begin at one layer, because they lie in each other, they need
    room for the label of each.
    """
    if not scene.frames:
        return layout
    boxes = rectangles(scene, layout)
    ends, sizes = _gaps(boxes)
    tops, bottoms = [0.0] * (len(ends) + 1), [0.0] * (len(ends) + 1)
    above: dict[int, tuple[int, int]] = {}
    below: dict[int, tuple[int, int]] = {}
    for frame in sorted(scene.frames, key=lambda one: len(one.members)):
        place = _surrounding([boxes[member] for member in frame.members], 0.0, 0.0)
        first = bisect_right(ends, place.top + TOLERANCE) - 1
        last = bisect_right(ends, place.bottom)
        begun = _level(above, frame.members, first)
        ended = _level(below, frame.members, last)
        tops[first] = max(tops[first], begun * (PADDING + LABEL_HEIGHT))
        bottoms[last] = max(bottoms[last], ended * PADDING)
    more = [
        max(top + bottom - size + CLEARANCE, 0.0) if top or bottom else 0.0
        for top, bottom, size in zip(tops, bottoms, [*sizes, 0.0], strict=True)
    ]
    moved = [0.0, *itertools.accumulate(more)]

    def down(point: Point) -> Point:
        x, y = point
        return x, y + moved[bisect_right(ends, y + TOLERANCE)]

    return layout._replace(
        centers=tuple(
            (x, y + down((x, box.top))[1] - box.top)
            for (x, y), box in zip(layout.centers, boxes, strict=True)
        ),
        routes=tuple(tuple(map(down, route)) for route in layout.routes),
        height=layout.height + moved[-1],
    )


def place_frames(
    scene: Scene, layout: BoxLayout
) -> list[tuple[ModuleFrame, Rectangle]]:
    """The frames that can be drawn, and where: those outside before those inside.

    A frame lies around its boxes and the frames of its parts. One in another is called
    by what its name has more.
    """
    placed = [
        (frame, place)
        for frame, place, strangers in looked_at(scene, layout)
        if not strangers
    ]
    return _named(placed[::-1])


def looked_at(
    scene: Scene, layout: BoxLayout
) -> list[tuple[ModuleFrame, Rectangle, set[int]]]:
    """Return all frames, those inside first, with the boxes of strangers in each.

    One with strangers cannot be drawn.
    """
    if not scene.frames:
        return []
    boxes = rectangles(scene, layout)
    corners = np.array(boxes)
    found = []
    placed: list[tuple[ModuleFrame, Rectangle]] = []
    inner: dict[int, int] = {}
    inside_first = sorted(scene.frames, key=lambda one: -len(one.members))[::-1]
    for frame in inside_first:
        parts = {inner[member] for member in frame.members if member in inner}
        alone = [boxes[member] for member in frame.members if member not in inner]
        place = _surrounding([*alone, *(placed[part][1] for part in parts)])
        others = np.array([one for _, one in placed]).reshape(-1, 4)
        met_boxes = np.flatnonzero(_meet(place, corners)).tolist()
        met_frames = np.flatnonzero(_meet(place, others)).tolist()
        met_boxes += (one for at in met_frames for one in placed[at][0].members)
        strangers = set(met_boxes).difference(frame.members)
        found.append((frame, place, strangers))
        if not strangers:
            inner |= dict.fromkeys(frame.members, len(placed))
            placed.append((frame, place))
    return found


def place_labels(
    placed: Sequence[tuple[ModuleFrame, Rectangle]], routes: Sequence[Sequence[Point]]
) -> list[tuple[float, str]]:
    """Return the start of each frame's label, and the part that fits.

    It stands above the boxes, as far left as it can without an edge through it.
    """
    if not placed:
        return []
    lines = _lines(routes)
    found = []
    for frame, place in placed:
        band = place._replace(bottom=place.top + LABEL_HEIGHT + BASELINE)
        passed = lines[_meet(band, lines)]
        order = passed[:, 0].argsort()
        ends = np.maximum.accumulate(passed[order, 2]) + CLEARANCE
        begins = [place.left + PADDING, *ends.tolist()]
        until = [*(passed[order, 0] - CLEARANCE).tolist(), place.right - PADDING]
        rooms = [
            (max(begin, place.left + PADDING), min(end, place.right - PADDING))
            for begin, end in zip(begins, until, strict=True)
        ]
        wide = width(frame.label, SMALL_SIZE)
        widest = max(rooms, key=lambda room: room[1] - room[0])
        left, right = next((one for one in rooms if one[1] - one[0] >= wide), widest)
        found.append((left, fit_end(frame.label, right - left, SMALL_SIZE)))
    return found


def _lines(routes: Sequence[Sequence[Point]]) -> NDArray[np.float64]:
    """Rectangles around short pieces of all curves."""
    curves = [
        route[at : at + 4] for route in routes for at in range(0, len(route) - 1, 3)
    ]
    part = np.linspace(0.0, 1.0, PIECES + 1)[:, None]
    shares = np.hstack(
        [(1 - part) ** 3, 3 * (1 - part) ** 2 * part, 3 * (1 - part) * part**2, part**3]
    )
    points = shares @ np.array(curves, np.float64).reshape(-1, 4, 2)
    ends = np.stack([points[:, :-1], points[:, 1:]])
    return np.concatenate([ends.min(axis=0), ends.max(axis=0)], axis=2).reshape(-1, 4)


def _named(
    placed: list[tuple[ModuleFrame, Rectangle]],
) -> list[tuple[ModuleFrame, Rectangle]]:
    """Return frames named without the names of their enclosing frames."""
    around: dict[int, ModuleFrame] = {}
    named = []
    for frame, place in placed:
        outer = around.get(frame.members[0], _NO_FRAME)
        if frame.label == outer.label:  # what is left of a part between its own parts
            continue
        module = frame.module.removeprefix(f"{outer.module}.")
        named.append((frame._replace(module=module), place))
        around |= dict.fromkeys(frame.members, frame)
    return named


def _level(levels: dict[int, tuple[int, int]], members: Sequence[int], at: int) -> int:
    """Return the number of frames of these members at gap `at`, one more included."""
    inner = (levels[member] for member in members if member in levels)
    level = 1 + max((number for gap, number in inner if gap == at), default=0)
    levels |= dict.fromkeys(members, (at, level))
    return level


def _gaps(boxes: Sequence[Rectangle]) -> tuple[list[float], list[float]]:
    """Return the ends and heights of gaps across the picture, top to bottom.

    The first one is above everything, and has no height.
    """
    ends, sizes = [], []
    lowest = None
    for box in sorted(boxes, key=lambda one: one.top):
        if lowest is None or box.top > lowest:
            ends.append(box.top)
            sizes.append(0.0 if lowest is None else box.top - lowest)
        lowest = max(lowest or box.bottom, box.bottom)
    return ends, sizes


def _meet(place: Rectangle, others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which of `others` share more than an edge with `place`."""
    return (
        (place.left < others[:, 2])
        & (others[:, 0] < place.right)
        & (place.top < others[:, 3])
        & (others[:, 1] < place.bottom)
    )


def rectangles(scene: Scene, layout: BoxLayout) -> list[Rectangle]:
    """Return the place of each box."""
    return [
        _around(box, center)
        for box, center in zip(scene.boxes, layout.centers, strict=True)
    ]


def _around(box: Box, center: Point) -> Rectangle:
    x, y = center
    wide, high = box.width / 2, box.height / 2
    return Rectangle(x - wide, y - high, x + wide, y + high)


def _surrounding(
    boxes: Sequence[Rectangle],
    padding: float = PADDING,
    label_height: float = LABEL_HEIGHT,
) -> Rectangle:
    return Rectangle(
        min(box.left for box in boxes) - padding,
        min(box.top for box in boxes) - padding - label_height,
        max(box.right for box in boxes) + padding,
        max(box.bottom for box in boxes) + padding,
    )
