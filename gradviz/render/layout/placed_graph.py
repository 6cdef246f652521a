"""Places for the boxes of a graph, and ways for its edges: our own, in linear time.

It knows nothing of what the boxes stand for. `gradviz.render.layout.layers` sorts them
into layers, `gradviz.render.layout.layer_order` puts each in order,
`gradviz.render.layout.blocks` finds what shall stand exactly below each other,
`gradviz.render.layout.coordinates` places it all, and `gradviz.render.layout.routing`
leads the edges.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.render.layout.coordinates import x_coordinates, y_coordinates
from gradviz.render.layout.layer_order import ordered
from gradviz.render.layout.layers import LARGE, BoxSize, Skeleton
from gradviz.render.layout.routing import Point, routes

#: Maximum distance of the first box from the left: a picture opens at its left upper
#: corner.
FIRST_SCREEN: Final = 800.0
#: Between a box and what stands on its right.
SIDE_GAP: Final = 24.0


class BoxLayout(NamedTuple):
    """Positions of everything. Units are those of the sizes; y grows downwards.

    Attributes:
        centers: The center of each box.
        routes: For each edge its control points: a start, then three for every cubic
            Bézier curve.
        width: Width of the picture, which begins at 0, edges included.
        height: Height of the picture, which begins at 0, edges included.
        inside: The layouts inside of some boxes, by their positions.
    """

    centers: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    inside: Mapping[int, tuple["BoxLayout", ...]] = {}


@gc_paused()
def place(
    sizes: Sequence[BoxSize],
    edges: Sequence[tuple[int, int]],
    aside: Iterable[int] = (),
    order: Iterable[tuple[int, int]] = (),
) -> BoxLayout:
    """Lay out a graph in layers, every edge pointing down if it has no cycles.

    Args:
        sizes: Width and height of each box.
        edges: Pairs of positions in `sizes`. Parallel ones are fine.
        aside: Boxes that stand on the right of the one box that leads to them, if they
            lead nowhere; of several beside one box, the first stands there.
        order: Pairs of positions in `sizes`: the first stands above the second, though
            no edge leads from one to the other.

    Returns:
        The layout; the same for the same arguments.
    """
    if not sizes:
        return BoxLayout((), (), 0.0, 0.0)
    hosts = _hosts(edges, set(aside))
    boxes = [box for box in range(len(sizes)) if box not in hosts]
    place_of = {box: at for at, box in enumerate(boxes)}
    skeleton = Skeleton(
        [sizes[box] for box in boxes],
        [
            (place_of[one], place_of[other])
            for one, other in edges
            if other not in hosts
        ],
        {
            place_of[host]: (SIDE_GAP + sizes[box][0], sizes[box][1])
            for box, host in hosts.items()
        },
        [
            (place_of[one], place_of[other])
            for one, other in order
            if one in place_of and other in place_of
        ],
    )
    is_large = len(skeleton.ranks) > LARGE
    layers = ordered(skeleton, main_first=is_large)
    x = x_coordinates(skeleton, layers)
    if not is_large and x[0] - x.min() > FIRST_SCREEN:
        layers = ordered(skeleton, main_first=True)
        x = x_coordinates(skeleton, layers)
    halves = np.array(skeleton.widths) / 2
    x -= (x - halves).min()
    y, heights = y_coordinates(skeleton, x)
    rights = x + halves
    for host, (wide, _) in skeleton.annexes.items():
        rights[host] += wide
    ways, right = routes(skeleton, x, y, heights, float(rights.max()))
    places = zip(x.tolist(), y[skeleton.ranks].tolist(), strict=True)
    centers = dict(zip(boxes, places, strict=False))
    for box, host in hosts.items():
        at, level = centers[host]
        centers[box] = (at + (sizes[host][0] + sizes[box][0]) / 2 + SIDE_GAP, level)
    of_layers = iter(ways)
    return BoxLayout(
        tuple(centers[box] for box in range(len(sizes))),
        tuple(
            _sideways(centers[one], sizes[one][0])
            if other in hosts
            else next(of_layers)
            for one, other in edges
        ),
        right,
        float(y[-1] + heights[-1] / 2),
    )


def _hosts(edges: Sequence[tuple[int, int]], aside: Container[int]) -> dict[int, int]:
    """Of the boxes that stand on the right of another one, of which."""
    num_ways_in = Counter(consumer for _, consumer in edges)
    taken = {producer for producer, _ in edges if producer in aside}
    hosts = {}
    for producer, consumer in edges:
        is_end = consumer in aside and consumer not in taken
        if is_end and producer not in taken and num_ways_in[consumer] == 1:
            taken.add(producer)
            hosts[consumer] = producer
    return hosts


def _sideways(center: Point, wide: float) -> tuple[Point, ...]:
    """Return a route from the right side of a box to one beside it."""
    x, y = center[0] + wide / 2, center[1]
    return (x, y), (x + SIDE_GAP / 3, y), (x + 2 * SIDE_GAP / 3, y), (x + SIDE_GAP, y)
