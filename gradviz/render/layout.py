"""Places for the boxes of a graph, and ways for its edges: our own, in linear time.

It knows nothing of what the boxes stand for. `gradviz.render.layers` sorts them into
layers, `gradviz.render.layer_order` puts each in order, `gradviz.render.blocks` finds
what shall stand exactly below each other, `gradviz.render.coordinates` places it all,
and `gradviz.render.routing` leads the edges.
"""

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from gradviz.analysis.uncollected import uncollected
from gradviz.render.coordinates import across, down
from gradviz.render.layer_order import ordered
from gradviz.render.layers import LARGE, BoxSize, Skeleton
from gradviz.render.routing import Point, routes

#: How far from the left the first box may be: a picture opens at its left upper corner.
FIRST_SCREEN: Final = 800.0


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


@uncollected()
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
    is_large = len(skeleton.ranks) > LARGE
    layers = ordered(skeleton, main_first=is_large)
    x = across(skeleton, layers)
    if not is_large and x[0] - x.min() > FIRST_SCREEN:
        layers = ordered(skeleton, main_first=True)
        x = across(skeleton, layers)
    halves = np.array(skeleton.widths) / 2
    x -= (x - halves).min()
    y, heights = down(skeleton, x)
    ways, right = routes(skeleton, edges, x, y, heights)
    places = zip(x.tolist(), y[skeleton.ranks].tolist(), strict=True)
    return BoxLayout(
        tuple(itertools.islice(places, len(sizes))),
        ways,
        right,
        float(y[-1] + heights[-1] / 2),
    )
