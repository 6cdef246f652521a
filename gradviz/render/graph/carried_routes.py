"""Ways from one repeat to the next one, drawn around what repeats, on its left.

They lead against the direction of all other edges, so no layout has room for them. Each
leaves its box on the left, or below where another box stands in its way, goes up in a
lane on the left of all boxes and frames that it passes, and enters the other box from
the left.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gradviz.render.graph.graph_scene import ModuleFrame, Scene
from gradviz.render.graph.module_frames import Rectangle, rectangles
from gradviz.render.layout.placed_graph import BoxLayout
from gradviz.render.layout.routing import Point

#: Between a lane and what is on its right, and between lanes.
LANE_GAP: Final = 9.0
#: Between a lane and the border of a frame that it is in.
BORDER_GAP: Final = 4.0
#: Distance of an edge from the boxes of a row that it passes.
ROW_GAP: Final = 3.5
#: Frames reach so far beyond the boxes in them, up and down.
FRAME_REACH: Final = 60.0
CORNER: Final = 5.0
#: Points of a curve between which it is nearly straight.
PIECES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


class _Lane(NamedTuple):
    x: float
    top: float
    bottom: float


def carried_routes(
    scene: Scene,
    layout: BoxLayout,
    placed: Sequence[tuple[ModuleFrame, Rectangle]],
) -> list[tuple[Point, ...]]:
    """Return the control points of each of `Scene.carried`; see `BoxLayout.routes`.

    Args:
        scene: The scene.
        layout: Layout of its boxes.
        placed: Its frames, each with its borders.
    """
    if not scene.carried:
        return []
    boxes = rectangles(scene, layout)
    producers: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in scene.carried:
        producers[consumer].append(producer)
    lanes: list[_Lane] = []
    routes = {}
    for consumer in sorted(producers, key=lambda one: -boxes[one].top):
        lowest = max(boxes[one].bottom for one in producers[consumer])
        lane = _lane(boxes[consumer].top, lowest, boxes, placed, lanes)
        lanes.append(lane)
        entry = _entry(boxes, consumer, lane.x)
        for producer in producers[consumer]:
            stops = [*_exit(boxes, producer, lane.x), *entry]
            routes[producer, consumer] = _rounded(stops)
    return [routes[way] for way in scene.carried]


def length(route: Sequence[Point]) -> float:
    """Return how long a way is, as pieces of straight lines."""
    stops = [
        _middle(route[at : at + 4], part)
        for at in range(0, len(route) - 1, 3)
        for part in PIECES
    ]
    return sum(math.dist(one, other) for one, other in itertools.pairwise(stops))


def _middle(curve: Sequence[Point], part: float) -> Point:
    """Return a point of a cubic Bézier curve."""
    rest = 1 - part
    shares = rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3
    x, y = (
        sum(share * point[axis] for share, point in zip(shares, curve, strict=True))
        for axis in (0, 1)
    )
    return x, y


def _lane(
    top: float,
    bottom: float,
    boxes: Sequence[Rectangle],
    placed: Sequence[tuple[ModuleFrame, Rectangle]],
    lanes: Sequence[_Lane],
) -> _Lane:
    """Return a lane on the left of all between two heights, frames around it aside."""
    top, bottom = min(top, bottom), max(top, bottom) + FRAME_REACH / 2
    passed = [box for box in boxes if box.top < bottom and top < box.bottom]
    borders = [
        place for _, place in placed if place.top < bottom and top < place.bottom
    ]
    passed += [
        place
        for place in borders
        if top - FRAME_REACH < place.top and place.bottom < bottom + FRAME_REACH
    ]
    x = min(place.left for place in passed) - LANE_GAP
    taken = [
        (lane.x, LANE_GAP) for lane in lanes if lane.top < bottom and top < lane.bottom
    ]
    taken += [(place.left, BORDER_GAP) for place in borders]
    for other, gap in sorted(taken, reverse=True):
        if abs(x - other) < gap:
            x = other - gap
    return _Lane(x, top, bottom)


def _exit(boxes: Sequence[Rectangle], producer: int, lane: float) -> list[Point]:
    """Return the stops from a box to the lane."""
    box = boxes[producer]
    level = box.top + 0.75 * (box.bottom - box.top)
    if _is_free(boxes, Rectangle(lane, level - 1, box.left - 1, level + 1)):
        return [(box.left, level), (lane, level)]
    port = box.left + 0.2 * (box.right - box.left)
    below = max(_row(boxes, producer), key=lambda one: one.bottom).bottom + ROW_GAP
    return [(port, box.bottom), (port, below), (lane, below)]


def _entry(boxes: Sequence[Rectangle], consumer: int, lane: float) -> list[Point]:
    """Return the stops from the lane to a box."""
    box = boxes[consumer]
    level = box.top + 0.25 * (box.bottom - box.top)
    if _is_free(boxes, Rectangle(lane, level - 1, box.left - 1, level + 1)):
        return [(lane, level), (box.left, level)]
    above = min(_row(boxes, consumer), key=lambda one: one.top).top - ROW_GAP
    beside = box.left - LANE_GAP
    return [(lane, above), (beside, above), (beside, level), (box.left, level)]


def _row(boxes: Sequence[Rectangle], member: int) -> list[Rectangle]:
    """Return the boxes between the same two gaps across the whole picture."""
    row: list[Rectangle] = []
    lowest = float("-inf")
    has_member = False
    for box in sorted(boxes, key=lambda one: one.top):
        if box.top > lowest:
            if has_member:
                break
            row = []
        row.append(box)
        lowest = max(lowest, box.bottom)
        has_member = has_member or box == boxes[member]
    return row


def _is_free(boxes: Sequence[Rectangle], strip: Rectangle) -> bool:
    return not any(strip.meets(box) for box in boxes)


def _rounded(stops: Sequence[Point]) -> tuple[Point, ...]:
    """Return control points of straight lines between stops, with round corners."""
    points = [stops[0]]
    for before, corner, after in zip(stops, stops[1:], stops[2:], strict=False):
        points += _line(points[-1], _towards(corner, before))
        points += (corner, corner, _towards(corner, after))
    return (*points, *_line(points[-1], stops[-1]))


def _line(one: Point, other: Point) -> Iterator[Point]:
    for part in (1 / 3, 2 / 3, 1.0):
        x, y = (a + part * (b - a) for a, b in zip(one, other, strict=True))
        yield x, y


def _towards(corner: Point, other: Point) -> Point:
    """Return the point where a round corner begins, or ends."""
    (x, y), (to_x, to_y) = corner, other
    length = abs(to_x - x) + abs(to_y - y)
    part = min(CORNER, length / 2) / length if length else 0.0
    return x + part * (to_x - x), y + part * (to_y - y)
