"""Coordinates for the layers of a graph: straight edges first, then little space."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gradviz.render.layout.blocks import straight_blocks
from gradviz.render.layout.layers import LARGE, SMALL, Skeleton
from gradviz.render.layout.packing import Coordinates, Packing, flat, owners

MIN_LAYER_GAP: Final = 30.0
MAX_LAYER_GAP: Final = 60.0

#: Maximum lengths of blocks, first those that are preferred, and how much wider than
#: with the best of these the picture may get. Of large ones only two are tried.
MAX_LENGTHS: Final = (1 << 30, 16, 4, 1)
MAX_WIDENING: Final = 1.1
#: Number of moves of blocks towards their neighbors: in small graphs, in larger and in
#: large ones, whose edges a second move makes shorter by one in a hundred.
MOVES: Final = (8, 2, 1)

Layers = Sequence[Sequence[int]]


def x_coordinates(skeleton: Skeleton, layers: Layers) -> Coordinates:
    """The x of every box and bend.

    All of a block have one x, see Note [Blocks]. First each stands as near to the main
    way down as those between allow. Then each moves to the middle of what it is joined
    to, as far as it can go without pushing others or making the picture wider.

    The longer blocks are, the straighter are the edges and the wider is the picture,
    where blocks stand in steps, each begun where another one is passed. So shorter ones
    are tried too, and the longest are taken that do not cost much.
    """
    whole = straight_blocks(skeleton, layers)
    lengths = MAX_LENGTHS[:: 1 if len(skeleton.ranks) <= LARGE else 3]
    most = max(map(len, whole[1:]), default=1)
    tried = []
    for longest in dict.fromkeys(min(one, most) for one in lengths):
        packing = Packing(skeleton, layers, _cut(whole, longest))
        tried.append((packing, packing.width()))
    narrowest = min(width for _, width in tried)
    packing = next(one for one, wide in tried if wide <= MAX_WIDENING * narrowest)
    size = len(skeleton.ranks)
    packing.move(MOVES[(size > SMALL) + (size > LARGE)])
    return packing.x[packing.block_of]


def y_coordinates(
    skeleton: Skeleton, x: Coordinates
) -> tuple[Coordinates, Coordinates]:
    """The y of each layer's middle, and the height of its highest box.

    Layers far apart in x get more room for curves.
    """
    ranks = np.array(skeleton.ranks)
    heights, reach = np.zeros((2, ranks.max() + 1))
    np.maximum.at(heights, ranks, np.array(skeleton.heights))
    for box, (_, high) in skeleton.annexes.items():
        heights[ranks[box]] = max(heights[ranks[box]], high)
    upper, lower = owners(skeleton.below), flat(skeleton.below)
    np.maximum.at(reach, ranks[lower], np.abs(x[upper] - x[lower]))
    gaps = np.clip(reach / 10, MIN_LAYER_GAP, MAX_LAYER_GAP)
    gaps[0] = 0.0
    return np.cumsum(heights + gaps) - heights / 2, heights


def _cut(blocks: Sequence[Sequence[int]], longest: int) -> list[Sequence[int]]:
    """Blocks of at most so many; that of the first box, the main one, stays whole."""
    main, *others = blocks
    pieces = [
        block[start : start + longest]
        for block in others
        for start in range(0, len(block), longest)
    ]
    return [main, *pieces]
