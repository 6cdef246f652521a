"""Coordinates for the layers of a graph: straight edges first, then little space."""

import itertools
from collections.abc import Sequence
from typing import Final

from gradviz.render.blocks import straight_blocks
from gradviz.render.layers import LARGE, SMALL, Skeleton

NODE_GAP: Final = 20.0
LANE_GAP: Final = 12.0
MIN_LAYER_GAP: Final = 30.0
MAX_LAYER_GAP: Final = 60.0

#: How long blocks may be, first those that are preferred, and how much wider than with
#: the best of these the picture may get. Of large ones only two are tried.
MAX_LENGTHS: Final = (1 << 30, 16, 4, 1)
MAX_WIDENING: Final = 1.1
#: How often blocks move towards what they are joined to: of small graphs, of large.
MOVES: Final = (8, 2)

Layers = Sequence[Sequence[int]]


def across(skeleton: Skeleton, layers: Layers) -> list[float]:
    """The x of every box and bend.

    All of a block have one x, see Note [Blocks]. First each stands as near to the main
    way down as those between allow. Then each moves to the middle of what it is joined
    to, as far as it can go without pushing others or making the picture wider.

    The longer blocks are, the straighter are the edges and the wider is the picture,
    where blocks stand in steps, each begun where another one is passed. So shorter ones
    are tried too, and the longest are taken that do not cost much.
    """
    whole = straight_blocks(skeleton, layers)
    tried = []
    for longest in MAX_LENGTHS[:: 1 if len(skeleton.ranks) <= LARGE else 3]:
        packing = _Packing(skeleton, layers, _cut(whole, longest))
        tried.append((packing, packing.width()))
    narrowest = min(width for _, width in tried)
    packing = next(one for one, wide in tried if wide <= MAX_WIDENING * narrowest)
    packing.move(MOVES[len(skeleton.ranks) > SMALL])
    return [packing.x[number] for number in packing.block_of]


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
        gap = min(max(reach / 10, MIN_LAYER_GAP), MAX_LAYER_GAP)
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


class _Packing:
    """The blocks, and where each stands.

    Attributes:
        block_of: The block of each box and bend.
        x: Of each block.
    """

    def __init__(
        self, skeleton: Skeleton, layers: Layers, blocks: Sequence[Sequence[int]]
    ) -> None:
        self.block_of = [0] * len(skeleton.ranks)
        for number, block in enumerate(blocks):
            for item in block:
                self.block_of[item] = number
        self._halves = [
            max(skeleton.widths[one] for one in block) / 2 for block in blocks
        ]
        # Beside which others each block stands, and how far apart they are at least.
        self._lefts: list[list[tuple[int, float]]] = [[] for _ in blocks]
        self._rights: list[list[tuple[int, float]]] = [[] for _ in blocks]
        for layer in layers:
            for left, right in itertools.pairwise(layer):
                one, other = self.block_of[left], self.block_of[right]
                gap = _gap(skeleton, left, right)
                self._lefts[other].append((one, gap))
                self._rights[one].append((other, gap))
        self._joined: list[list[int]] = [[] for _ in blocks]
        for upper, below in enumerate(skeleton.below):
            for lower in below:
                one, other = self.block_of[upper], self.block_of[lower]
                if one != other:
                    self._joined[one].append(other)
                    self._joined[other].append(one)
        self._order = self._from_left()
        self.x = self._packed()

    def width(self) -> float:
        return self._last() - self._first()

    def move(self, times: int) -> None:
        """Move each block to the middle of what it is joined to, as far as it can."""
        main, first, last = self.block_of[0], self._first(), self._last()
        for block in itertools.chain.from_iterable(
            (*reversed(self._order), *self._order) for _ in range(times)
        ):
            near = sorted(self.x[one] for one in self._joined[block])
            if not near or block == main:
                continue
            wish = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2
            half = self._halves[block]
            least = max(
                (self.x[other] + gap for other, gap in self._lefts[block]),
                default=first + half,
            )
            most = min(
                (self.x[other] - gap for other, gap in self._rights[block]),
                default=last - half,
            )
            self.x[block] = min(max(wish, least), most)

    def _from_left(self) -> list[int]:
        """The blocks, each after all that stand left of it."""
        missing = [len(left) for left in self._lefts]
        order = [block for block, number in enumerate(missing) if not number]
        for block in order:
            for other, _ in self._rights[block]:
                missing[other] -= 1
                if not missing[other]:
                    order.append(other)
        return order

    def _packed(self) -> list[float]:
        """The x of each block, as near to the main one as can be."""
        x = [0.0] * len(self._halves)
        for block in self._order:
            lefts = self._lefts[block]
            x[block] = max((x[other] + gap for other, gap in lefts), default=0.0)
        is_left = [False] * len(x)
        is_left[self.block_of[0]] = True
        for block in reversed(self._order):
            rights = self._rights[block]
            if any(is_left[other] for other, _ in rights):
                is_left[block] = True
                x[block] = min(x[other] - gap for other, gap in rights)
        return x

    def _first(self) -> float:
        return min(at - half for at, half in zip(self.x, self._halves, strict=True))

    def _last(self) -> float:
        return max(at + half for at, half in zip(self.x, self._halves, strict=True))


def _cut(blocks: Sequence[Sequence[int]], longest: int) -> list[Sequence[int]]:
    """Blocks of at most so many; that of the first box, the main one, stays whole."""
    main, *others = blocks
    pieces = [
        block[start : start + longest]
        for block in others
        for start in range(0, len(block), longest)
    ]
    return [main, *pieces]


def _gap(skeleton: Skeleton, left: int, right: int) -> float:
    """From the middle of one to the middle of its right neighbour, at least."""
    boxes = skeleton.num_boxes
    space = LANE_GAP if left >= boxes and right >= boxes else NODE_GAP
    return (skeleton.widths[left] + skeleton.widths[right]) / 2 + space
