"""The ways of edges: down the layers vertically, past the boxes, in curves between.

All edges are led at once, as columns: a picture may have a hundred thousand.
"""

from typing import Final

import numpy as np

from gradviz.render.layout.layers import Skeleton
from gradviz.render.layout.packing import Coordinates, flat
from gradviz.trace.format.table import Column

#: The part of a box's side at which edges start and end, and their distance there.
PORT_PART: Final = 0.6
PORT_GAP: Final = 26.0
#: Lanes on the right of all boxes, for edges that find no way between them.
MAX_LANES: Final = 40
LANE_GAP: Final = 5.0

Point = tuple[float, float]


def routes(
    skeleton: Skeleton,
    x: Coordinates,
    y: Coordinates,
    heights: Coordinates,
    right: float,
) -> tuple[tuple[tuple[Point, ...], ...], float]:
    """The way of each edge, and how far to the right they go.

    A way is a start, then three control points for each curve.

    An edge goes straight down within the layer that it begins in, within those where
    it passes others and within that where it ends. Where there are too many bends, it
    goes round all boxes, on their right.

    Args:
        skeleton: The graph in layers.
        x: Of the middle of each box and bend.
        y: Of the middle of each layer.
        heights: Of each layer.
        right: Right end of all boxes.
    """
    ranks = np.array(skeleton.ranks)
    sizes = np.array(skeleton.heights)
    producer, consumer = np.array(skeleton.edges, np.int64).reshape(-1, 2).T
    bends = flat(skeleton.bends)
    num_bends = np.array([len(own) for own in skeleton.bends], np.int64)
    bend_ends = np.cumsum(num_bends)
    has_bends = num_bends > 0
    first, last = consumer.copy(), producer.copy()
    first[has_bends] = bends[(bend_ends - num_bends)[has_bends]]
    last[has_bends] = bends[bend_ends[has_bends] - 1]
    starts = _ports(skeleton, x, producer, x[first])
    ends = _ports(skeleton, x, consumer, np.where(has_bends, x[last], starts))
    goes_round = ~has_bends & (ranks[consumer] > ranks[producer] + 1)

    # The stops of each edge: two at its start, two for each bend, two at its end.
    until = np.cumsum(4 + 2 * num_bends + 2 * goes_round)
    since = np.append(0, until)[:-1]
    stops = np.empty((2, until[-1] if len(until) else 0))
    stops[:, since] = starts, y[ranks[producer]] + sizes[producer] / 2
    stops[:, since + 1] = starts, (y + heights / 2)[ranks[producer]]
    stops[:, until - 2] = ends, (y - heights / 2)[ranks[consumer]]
    stops[:, until - 1] = ends, y[ranks[consumer]] - sizes[consumer] / 2
    number = np.arange(len(bends)) - np.repeat(bend_ends - num_bends, num_bends)
    at = np.repeat(since, num_bends) + 2 + 2 * number
    stops[:, at] = x[bends], (y - heights / 2)[ranks[bends]]
    stops[:, at + 1] = x[bends], (y + heights / 2)[ranks[bends]]
    around = np.flatnonzero(goes_round)
    lanes = right + LANE_GAP * (1 + around % MAX_LANES)
    upper, lower = ranks[producer[around]] + 1, ranks[consumer[around]] - 1
    stops[:, since[around] + 2] = lanes, (y - heights / 2)[upper]
    stops[:, since[around] + 3] = lanes, (y + heights / 2)[lower]
    return _curves(stops[0], stops[1], until), float(lanes.max(initial=right))


def _ports(
    skeleton: Skeleton, x: Coordinates, boxes: Column, leads_to: Coordinates
) -> Coordinates:
    """The x at which each edge touches its box, given the x that it leads to.

    The edges of one box are spread over its side in the order of where they lead, so
    that they do not cross there; one that can lead straight up or down does. Each is
    between where it is if all give way to the right, and if all give way to the left.
    """
    order = np.lexsort((leads_to, boxes))
    box = boxes[order]
    is_first = np.append(True, box[1:] != box[:-1])[: len(box)]
    group = np.cumsum(is_first) - 1
    how_many = np.bincount(group)[group]
    number = np.arange(len(box)) - np.flatnonzero(is_first)[group]
    room = np.array(skeleton.widths)[box] * PORT_PART / 2
    gap = np.minimum(2 * room / how_many, PORT_GAP)
    wish = leads_to[order] - x[box]
    inside = np.clip(wish, -room, room) - number * gap
    # So far apart that the largest of a group is no larger than those of the next.
    apart = group * (4 * (np.abs(inside).max() + 1 if len(inside) else 0.0))
    pushed_right = np.maximum.accumulate(inside + apart) - apart
    pushed_left = np.minimum.accumulate((inside + apart)[::-1])[::-1] - apart
    spaced = (pushed_right + pushed_left) / 2 + number * gap
    # Where all lead to one side they pile up there: move them back onto the box.
    lowest = number * gap - room
    most = lowest + 2 * room - gap * (how_many - 1)
    spaced = np.minimum(np.maximum(spaced, lowest), most)
    spaced[(how_many == 1) & (np.abs(wish) > room)] = 0.0
    ports = np.empty(len(boxes))
    ports[order] = x[box] + spaced
    return ports


def _curves(
    x: Coordinates, y: Coordinates, until: Column
) -> tuple[tuple[Point, ...], ...]:
    """Smooth ways through stops, vertical at each of them.

    Args:
        x: Of the stops of all edges.
        y: Of the stops of all edges.
        until: Index at which the stops of each edge end.
    """
    # Without stops in the middle of a vertical line, and those that are there twice.
    is_inner = np.ones(len(x), np.bool_)
    is_inner[until - 1] = is_inner[np.append(0, until)[:-1]] = False
    same_x = np.append(x[1:] == x[:-1], False)
    same = same_x & np.append(y[1:] == y[:-1], False)
    is_straight = same_x & np.append(False, same_x)[:-1]
    is_twice = np.append(False, same)[:-1] | same
    kept = ~(is_inner & (is_straight | is_twice))
    until = np.cumsum(kept)[until - 1]
    x, y = x[kept], y[kept]
    points = np.repeat(np.stack([x, y]), 3, axis=1)
    # Of three points for each stop, the first two lead to it from the one before.
    points[0, 3::3] = x[:-1]
    points[1, 3::3] = points[1, 4::3] = (y[:-1] + y[1:]) / 2
    every = list(zip(*points.tolist(), strict=True))
    ends = (3 * until).tolist()
    return tuple(
        tuple(every[begin + 2 : end])
        for begin, end in zip([0, *ends], ends, strict=False)
    )
