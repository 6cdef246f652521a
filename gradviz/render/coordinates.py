"""Coordinates for the layers of a graph: straight edges first, then little space."""

import itertools
from collections.abc import Sequence
from typing import Final

from gradviz.render.layers import SMALL, Skeleton

NODE_GAP: Final = 22.0
LANE_GAP: Final = 12.0
MIN_LAYER_GAP: Final = 34.0
MAX_LAYER_GAP: Final = 110.0

#: How much an edge wants to be straight: any edge, one at a bend of a long edge, and
#: one along a long edge or a spine.
PULL: Final = 1.0
BEND_PULL: Final = 2.0
STRAIGHT_PULL: Final = 2_000.0
#: How much a box without neighbours in the layer beside it wants to stay.
INERTIA: Final = 0.05

Layers = Sequence[Sequence[int]]


def across(skeleton: Skeleton, layers: Layers) -> list[float]:
    """The x of every box and bend: as near to its neighbours as its layer allows."""
    x = [0.0] * len(skeleton.ranks)
    gaps = []
    for layer in layers:
        gaps.append([_gap(skeleton, *pair) for pair in itertools.pairwise(layer)])
        centred = itertools.accumulate(gaps[-1], initial=-sum(gaps[-1]) / 2)
        for item, at in zip(layer, centred, strict=True):
            x[item] = at
    # Upwards centres parents over what hangs below them; downwards, last, puts
    # children right under their parents.
    for _ in range(8 if len(x) <= SMALL else 1):
        for rank in range(len(layers) - 2, -1, -1):
            _settle(skeleton, layers[rank], gaps[rank], skeleton.below, x)
        for rank in range(1, len(layers)):
            _settle(skeleton, layers[rank], gaps[rank], skeleton.above, x)
    return x


def down(skeleton: Skeleton, layers: Layers, x: Sequence[float]) -> list[float]:
    """The y of each layer's middle; layers far apart in x get more room for curves."""
    heights = layer_heights(skeleton, layers)
    y = [heights[0] / 2]
    for rank in range(1, len(layers)):
        reach = max(
            (
                abs(x[item] - x[other])
                for item in layers[rank]
                for other in skeleton.above[item]
            ),
            default=0.0,
        )
        gap = min(max(reach / 7, MIN_LAYER_GAP), MAX_LAYER_GAP)
        y.append(y[-1] + (heights[rank - 1] + heights[rank]) / 2 + gap)
    return y


def layer_heights(skeleton: Skeleton, layers: Layers) -> list[float]:
    """The height of the highest box of each layer."""
    return [max(skeleton.heights[item] for item in layer) for layer in layers]


def spread(
    wishes: Sequence[float], weights: Sequence[float], gaps: Sequence[float]
) -> list[float]:
    """Places in the given order, each as near to its wish as the gaps allow.

    Note [Isotonic coordinates]
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~
    Each place has a wish, with a weight, and must keep its gap to the place on its
    left. Less the gaps so far, that reads: find numbers that never fall and are, in
    least squares, nearest to the wishes. Going from left to right and merging every
    block that falls below the one before it, at their mean, gives exactly that in
    linear time (pool adjacent violators).

    Args:
        wishes: Where each would like to be.
        weights: How much it would; positive.
        gaps: From each to the next, at least; one less than wishes.
    """
    offsets = list(itertools.accumulate(gaps, initial=0.0))
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, size = wish - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            left_mean, left_total, left_size = blocks.pop()
            mean = (mean * total + left_mean * left_total) / (total + left_total)
            total += left_total
            size += left_size
        blocks.append((mean, total, size))
    means = itertools.chain.from_iterable([mean] * size for mean, _, size in blocks)
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _settle(
    skeleton: Skeleton,
    layer: Sequence[int],
    gaps: Sequence[float],
    neighbours: Layers,
    x: list[float],
) -> None:
    """Move one layer as near to its neighbours in another as it can get."""
    wishes, weights = [], []
    for item in layer:
        weight, wish = INERTIA, INERTIA * x[item]
        for other in neighbours[item]:
            pull = _pull(skeleton, item, other)
            weight += pull
            wish += pull * x[other]
        wishes.append(wish / weight)
        weights.append(weight)
    for item, at in zip(layer, spread(wishes, weights, gaps), strict=True):
        x[item] = at


def _gap(skeleton: Skeleton, left: int, right: int) -> float:
    """From the middle of one to the middle of its right neighbour, at least."""
    boxes = skeleton.num_boxes
    space = LANE_GAP if left >= boxes and right >= boxes else NODE_GAP
    return (skeleton.widths[left] + skeleton.widths[right]) / 2 + space


def _pull(skeleton: Skeleton, one: int, other: int) -> float:
    """How much the edge between two neighbours wants to be straight."""
    num_bends = (one >= skeleton.num_boxes) + (other >= skeleton.num_boxes)
    if num_bends == 1:
        return BEND_PULL
    if num_bends == 2 or other == skeleton.spine[one] or one == skeleton.spine[other]:
        return STRAIGHT_PULL
    return PULL
