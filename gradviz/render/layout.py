"""Places for the boxes of a graph, and ways for its edges: our own, in linear time.

It knows nothing of what the boxes stand for. `gradviz.render.layers` sorts them into
layers, `gradviz.render.layer_order` puts each in order, `gradviz.render.blocks` finds
what shall stand exactly below each other, `gradviz.render.coordinates` places it all,
and here the edges are drawn.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gradviz.render.coordinates import across, down, layer_heights, spread
from gradviz.render.layer_order import ordered
from gradviz.render.layers import BoxSize, Skeleton

#: The part of a box's side at which edges start and end, and their distance there.
PORT_PART: Final = 0.6
PORT_GAP: Final = 26.0
#: Lanes on the right of all boxes, for edges that find no way between them.
MAX_LANES: Final = 40
LANE_GAP: Final = 5.0
#: How far from the left the first box may be: a picture opens at its left upper corner.
FIRST_SCREEN: Final = 800.0

Point = tuple[float, float]


class BoxLayout(NamedTuple):
    """Where everything is. Units are those of the sizes; y grows downwards.

    Attributes:
        centres: The centre of each box.
        routes: For each edge its control points: a start, then three for every cubic
            Bézier curve.
        width: Of the picture, which begins at 0, edges included.
        height: Of the picture, which begins at 0, edges included.
    """

    centres: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def place(sizes: Sequence[BoxSize], edges: Sequence[tuple[int, int]]) -> BoxLayout:
    """Lay out a graph in layers, every edge pointing down if it has no cycles.

    Args:
        sizes: Width and height of each box.
        edges: Pairs of positions in `sizes`. Parallel ones are fine.

    Returns:
        The layout; the same for the same arguments.
    """
    if not sizes:
        return BoxLayout((), (), 0.0, 0.0)
    skeleton = Skeleton(sizes, edges)
    layers = ordered(skeleton)
    x = across(skeleton, layers)
    if x[0] - min(x) > FIRST_SCREEN:
        layers = ordered(skeleton, main_first=True)
        x = across(skeleton, layers)
    y = down(skeleton, layers, x)
    heights = layer_heights(skeleton, layers)
    spans = [
        (at - wide / 2, at + wide / 2)
        for at, wide in zip(x, skeleton.widths, strict=True)
    ]
    left = min(start for start, _ in spans)
    points = [(at - left, y[rank]) for at, rank in zip(x, skeleton.ranks, strict=True)]
    routes = tuple(_routes(skeleton, edges, points, heights))
    ends = [max(end for _, end in spans) - left]
    ends += [x for route in routes for x, _ in route]
    return BoxLayout(
        tuple(points[: len(sizes)]), routes, max(ends), y[-1] + heights[-1] / 2
    )


def _routes(
    skeleton: Skeleton,
    edges: Sequence[tuple[int, int]],
    points: Sequence[Point],
    heights: Sequence[float],
) -> Iterable[tuple[Point, ...]]:
    """The way of each edge: down its bends' layers vertically, in curves between."""
    bends_of, ranks = skeleton.bends, skeleton.ranks
    y = dict(zip(ranks, (at for _, at in points), strict=True))
    right = max(
        x + wide / 2 for (x, _), wide in zip(points, skeleton.widths, strict=True)
    )
    towards = [
        (producer, points[bends[0] if bends else consumer][0])
        for (producer, consumer), bends in zip(edges, bends_of, strict=True)
    ]
    starts = _ports(skeleton, points, towards)
    back = [
        (consumer, points[bends[-1]][0] if bends else start)
        for (_, consumer), bends, start in zip(edges, bends_of, starts, strict=True)
    ]
    ends = _ports(skeleton, points, back)
    for index, (producer, consumer) in enumerate(edges):
        stops = [(starts[index], _side(skeleton, points, producer, 1))]
        stops.append((starts[index], _border(skeleton, points, heights, producer, 1)))
        if not bends_of[index] and ranks[consumer] > ranks[producer] + 1:
            # There are too many bends: it goes round all boxes, on their right.
            lane = right + LANE_GAP * (1 + index % MAX_LANES)
            upper, lower = ranks[producer] + 1, ranks[consumer] - 1
            stops += [
                (lane, y[upper] - heights[upper] / 2),
                (lane, y[lower] + heights[lower] / 2),
            ]
        for bend in bends_of[index]:
            x, middle = points[bend]
            half = heights[ranks[bend]] / 2
            stops += [(x, middle - half), (x, middle + half)]
        stops.append((ends[index], _border(skeleton, points, heights, consumer, -1)))
        stops.append((ends[index], _side(skeleton, points, consumer, -1)))
        yield _curve(_merged(stops))


def _border(
    skeleton: Skeleton,
    points: Sequence[Point],
    heights: Sequence[float],
    box: int,
    direction: int,
) -> float:
    """Where the layer of a box ends, up to which its edges pass others beside it."""
    return points[box][1] + direction * heights[skeleton.ranks[box]] / 2


def _merged(stops: Sequence[Point]) -> list[Point]:
    """`stops` without those in the middle of a vertical line."""
    kept = [stops[0]]
    for at, after in itertools.pairwise(stops[1:]):
        if not kept[-1][0] == at[0] == after[0] and at != kept[-1]:
            kept.append(at)
    return [*kept, stops[-1]]


def _side(
    skeleton: Skeleton, points: Sequence[Point], box: int, direction: int
) -> float:
    return points[box][1] + direction * skeleton.heights[box] / 2


def _ports(
    skeleton: Skeleton, points: Sequence[Point], ways: Sequence[tuple[int, float]]
) -> list[float]:
    """The x at which each edge touches its box, given the x that it leads to.

    The edges of one box are spread over its side in the order of where they lead, so
    that they do not cross there; one that can lead straight up or down does.
    """
    at_box: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for index, (box, leads_to) in enumerate(ways):
        at_box[box].append((leads_to, index))
    found = [0.0] * len(ways)
    for box, own in at_box.items():
        own.sort()
        middle = points[box][0]
        room = skeleton.widths[box] * PORT_PART / 2
        if len(own) == 1:
            x, index = own[0]
            found[index] = x if abs(x - middle) <= room else middle
            continue
        gap = min(2 * room / len(own), PORT_GAP)
        slack = room - gap * (len(own) - 1) / 2
        wishes = [min(max(x - middle, -room), room) for x, _ in own]
        spaced = spread(wishes, [1.0] * len(own), [gap] * (len(own) - 1))
        # Where all lead to one side they pile up there: move them back onto the box.
        lowest = -slack - gap * (len(own) - 1) / 2
        for place, ((_, index), wish) in enumerate(zip(own, spaced, strict=True)):
            first = lowest + gap * place
            found[index] = middle + min(max(wish, first), first + 2 * slack)
    return found


def _curve(stops: Iterable[Point]) -> tuple[Point, ...]:
    """A smooth way through `stops`, vertical at each of them."""
    (x0, y0), *rest = stops
    points = [(x0, y0)]
    for x1, y1 in rest:
        middle = (y0 + y1) / 2
        points += [(x0, middle), (x1, middle), (x1, y1)]
        x0, y0 = x1, y1
    return tuple(points)
