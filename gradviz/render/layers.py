"""A graph in layers: who stands in which, and in what order, so that few edges cross.

Everything takes linear time, a few sorts aside, and ends for graphs with cycles too.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from gradviz.analysis.ranks import longest_path_ranks

#: Bends that the edges of one picture may have in total. Each costs as much as a node.
MAX_BENDS: Final = 12_000
#: Graphs up to this many boxes and bends get many sweeps, larger ones few.
SMALL: Final = 2_000
SWEEPS: Final = 6

BoxSize = tuple[float, float]


class Skeleton:
    """The boxes and, after them, the bends: one where a long edge crosses a layer.

    Attributes:
        num_boxes: Positions below are boxes, those from here on are bends.
        widths: Of boxes and bends.
        heights: Of boxes and bends.
        ranks: The layer of each.
        above: Neighbours in the layer above, of each.
        below: Neighbours in the layer below, of each.
        bends: The bends of each edge, downwards.
        spine: The neighbour below of each that has most below itself, -1 for none.
            Following it gives the picture straight backbones.
    """

    def __init__(
        self, sizes: Sequence[BoxSize], edges: Sequence[tuple[int, int]]
    ) -> None:
        self.num_boxes = len(sizes)
        self.widths = [width for width, _ in sizes]
        self.heights = [height for _, height in sizes]
        self.ranks = _ranks(len(sizes), edges)
        self.above: list[list[int]] = [[] for _ in sizes]
        self.below: list[list[int]] = [[] for _ in sizes]
        self.bends: list[list[int]] = [[] for _ in edges]
        spans = [
            self.ranks[consumer] - self.ranks[producer] for producer, consumer in edges
        ]
        left = MAX_BENDS
        for index in sorted(range(len(edges)), key=spans.__getitem__):
            span = spans[index]
            if span < 1:
                continue  # part of a cycle: drawn, but of no say in the layout
            if span - 1 > left:
                self._join(*edges[index])
                continue
            left -= span - 1
            self._route(index, *edges[index])
        self.spine = self._spine()

    def _route(self, index: int, producer: int, consumer: int) -> None:
        """Lead an edge through one bend in every layer between its ends."""
        at = producer
        for rank in range(self.ranks[producer] + 1, self.ranks[consumer]):
            bend = len(self.widths)
            self.widths.append(0.0)
            self.heights.append(0.0)
            self.ranks.append(rank)
            self.above.append([])
            self.below.append([])
            self.bends[index].append(bend)
            self._join(at, bend)
            at = bend
        self._join(at, consumer)

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def _spine(self) -> list[int]:
        heights = [0] * len(self.ranks)
        spine = [-1] * len(self.ranks)
        for item in sorted(range(len(heights)), key=self.ranks.__getitem__)[::-1]:
            if self.below[item]:
                spine[item] = max(self.below[item], key=heights.__getitem__)
                heights[item] = heights[spine[item]] + 1
        return spine


def ordered(skeleton: Skeleton) -> list[list[int]]:
    """Boxes and bends by layer, in an order with few crossings."""
    layers: list[list[int]] = [[] for _ in range(max(skeleton.ranks) + 1)]
    for item in _depth_first(skeleton):
        layers[skeleton.ranks[item]].append(item)
    if len(skeleton.ranks) > SMALL:
        return _swept(layers, skeleton)
    best, fewest = layers, _num_crossings(layers, skeleton)
    for _ in range(SWEEPS):
        layers = _swept(layers, skeleton)
        crossings = _num_crossings(layers, skeleton)
        if crossings < fewest:
            best, fewest = layers, crossings
    return best


def _ranks(num_boxes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest paths; a box that nothing points to stands right above its first one."""
    ranks = longest_path_ranks(num_boxes, edges)
    nearest: dict[int, int] = {}
    for producer, consumer in edges:
        nearest[producer] = min(nearest.get(producer, ranks[consumer]), ranks[consumer])
    pointed_at = {consumer for _, consumer in edges}
    for box, rank in nearest.items():
        if box not in pointed_at:
            ranks[box] = max(rank - 1, 0)
    return ranks


def _depth_first(skeleton: Skeleton) -> list[int]:
    """Everything, so that what hangs together starts side by side."""
    found = []
    seen = [False] * len(skeleton.ranks)
    for start in range(len(seen)):
        if skeleton.above[start]:
            continue
        pending = [start]
        while pending:
            item = pending.pop()
            if not seen[item]:
                seen[item] = True
                found.append(item)
                pending.extend(reversed(skeleton.below[item]))
    return found


def _swept(layers: Sequence[Sequence[int]], skeleton: Skeleton) -> list[list[int]]:
    """The layers after one sweep down and one up."""
    layers = _pass(layers, skeleton.above)
    return _pass(layers[::-1], skeleton.below)[::-1]


def _pass(
    layers: Sequence[Sequence[int]], fixed: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Each layer sorted by the mean place of its neighbours in those before."""
    # Places are relative, so that layers of different lengths compare. Neighbours of
    # an item are all in layers before its own.
    place = [0.0] * len(fixed)
    result = []
    for layer in layers:
        for index, item in enumerate(layer):
            others = fixed[item]
            if others:
                place[item] = sum([place[other] for other in others]) / len(others)
            else:
                place[item] = (index + 0.5) / len(layer)
        arranged = sorted(layer, key=place.__getitem__)
        for index, item in enumerate(arranged):
            place[item] = (index + 0.5) / len(arranged)
        result.append(arranged)
    return result


def _num_crossings(layers: Sequence[Sequence[int]], skeleton: Skeleton) -> int:
    return sum(
        _crossings(upper, lower, skeleton.below)
        for upper, lower in itertools.pairwise(layers)
    )


def _crossings(
    upper: Sequence[int], lower: Sequence[int], below: Sequence[Sequence[int]]
) -> int:
    """How often the edges between two layers cross (a Fenwick tree counts them)."""
    place = {item: index for index, item in enumerate(lower)}
    tree = [0] * (len(lower) + 1)
    crossings = seen = 0
    for item in upper:
        ends = [place[other] for other in below[item] if other in place]
        for end in ends:
            left, at = 0, end + 1
            while at:
                left += tree[at]
                at &= at - 1
            crossings += seen - left
        for end in ends:
            seen += 1
            at = end + 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
    return crossings
