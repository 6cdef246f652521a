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

from gradviz.render.layout import BoxLayout
from gradviz.render.routing import Point
from gradviz.render.scene import Box, ModuleFrame, Scene
from gradviz.render.style import SMALL_SIZE
from gradviz.render.text import fit, width

#: Between a frame and its boxes.
PADDING: Final = 7.0
#: The room of its label, above the boxes.
LABEL_HEIGHT: Final = SMALL_SIZE + 6.0
#: Between a frame and the boxes above and below it.
CLEARANCE: Final = 5.0
#: By how much dot's curves may miss the boxes that they lead to.
TOLERANCE: Final = 1.5
#: How far letters reach below the line that they stand on.
BASELINE: Final = 3.0
#: In so many pieces a curve is looked at where it may pass a label.
PIECES: Final = 24


class Rectangle(NamedTuple):
    """A part of the plane; y grows downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Rectangle") -> bool:
        """Whether they have more than an edge in common."""
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
    boxes = _rectangles(scene, layout)
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
        centres=tuple(
            (x, y + down((x, box.top))[1] - box.top)
            for (x, y), box in zip(layout.centres, boxes, strict=True)
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
    if not scene.frames:
        return []
    boxes = _rectangles(scene, layout)
    corners = np.array(boxes)
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
        own = set(frame.members)
        if own.issuperset(met_boxes) and all(
            own.issuperset(placed[other][0].members) for other in met_frames
        ):
            inner |= dict.fromkeys(frame.members, len(placed))
            placed.append((frame, place))
    return _named(placed[::-1])


def place_labels(
    placed: Sequence[tuple[ModuleFrame, Rectangle]], layout: BoxLayout
) -> list[tuple[float, str]]:
    """Where the label of each frame begins, and as much of it as there is room for.

    It stands above the boxes, as far left as it can without an edge through it.
    """
    if not placed:
        return []
    lines = _lines(layout)
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
        found.append((left, fit(frame.label, right - left, SMALL_SIZE)))
    return found


def _lines(layout: BoxLayout) -> NDArray[np.float64]:
    """Rectangles around short pieces of all curves."""
    curves = [
        route[at : at + 4]
        for route in layout.routes
        for at in range(0, len(route) - 1, 3)
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
    """The same, each called by what it adds to the name of the frame that it is in."""
    around: dict[int, str] = {}
    named = []
    for frame, place in placed:
        outer = around.get(frame.members[0])
        if frame.label == outer:  # what is left of a part between its own parts
            continue
        label = frame.label if outer is None else frame.label.removeprefix(f"{outer}.")
        named.append((frame._replace(label=label), place))
        around |= dict.fromkeys(frame.members, frame.label)
    return named


def _level(levels: dict[int, tuple[int, int]], members: Sequence[int], at: int) -> int:
    """How many frames of these members end at gap `at`, one more included."""
    inner = (levels[member] for member in members if member in levels)
    level = 1 + max((number for gap, number in inner if gap == at), default=0)
    levels |= dict.fromkeys(members, (at, level))
    return level


def _gaps(boxes: Sequence[Rectangle]) -> tuple[list[float], list[float]]:
    """Where, from top to bottom, gaps across the whole picture end, and how high.

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
    """Which of `others` have more than an edge in common with `place`."""
    return (
        (place.left < others[:, 2])
        & (others[:, 0] < place.right)
        & (place.top < others[:, 3])
        & (others[:, 1] < place.bottom)
    )


def _rectangles(scene: Scene, layout: BoxLayout) -> list[Rectangle]:
    return [
        _around(box, centre)
        for box, centre in zip(scene.boxes, layout.centres, strict=True)
    ]


def _around(box: Box, centre: Point) -> Rectangle:
    x, y = centre
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
