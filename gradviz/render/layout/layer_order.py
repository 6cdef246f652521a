"""The order of each layer, from left to right, so that few edges cross."""

import itertools
from collections.abc import Sequence
from typing import Final

from gradviz.render.layout.layers import LARGE, SMALL, Skeleton

#: Number of sweeps of small graphs from top to bottom and back; others have one.
SWEEPS: Final = 6
#: Number of swaps of neighbors, but in large graphs.
SWAPS: Final = 4
#: Pairs of edges that are compared before two neighbors are swapped; hubs stay.
MAX_COMPARED: Final = 1_000


def ordered(skeleton: Skeleton, *, main_first: bool = False) -> list[list[int]]:
    """Boxes and bends by layer, in an order with few crossings.

    Args:
        skeleton: Boxes and bends to order.
        main_first: True if the main way down is the leftmost of each layer.
    """
    layers: list[list[int]] = [[] for _ in range(max(skeleton.ranks) + 1)]
    for item in _depth_first(skeleton):
        layers[skeleton.ranks[item]].append(item)
    first = skeleton.main if main_first else []
    _put_first(layers, skeleton, first)
    if len(skeleton.ranks) > LARGE:
        layers = _swept(layers, skeleton)
        _put_first(layers, skeleton, first)
        return layers
    best, fewest = layers, _num_crossings(layers, skeleton)
    for _ in range(SWEEPS if len(skeleton.ranks) <= SMALL else 1):
        layers = _swept(layers, skeleton)
        _put_first(layers, skeleton, first)
        crossings = _num_crossings(layers, skeleton)
        if crossings < fewest:
            best, fewest = layers, crossings
    _swap(best, skeleton, start=int(main_first))
    return best


def _depth_first(skeleton: Skeleton) -> list[int]:
    """Return everything in an order that puts connected parts side by side.

    Long edges come first, then what leads furthest: they stand left of a backbone, and
    right of it what hangs from it.
    """

    def importance(item: int) -> tuple[bool, int]:
        return item >= skeleton.num_boxes, skeleton.reach[item]

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
                pending.extend(sorted(skeleton.below[item], key=importance))
    return found


def _put_first(
    layers: Sequence[list[int]], skeleton: Skeleton, items: Sequence[int]
) -> None:
    for item in items:
        layer = layers[skeleton.ranks[item]]
        layer.remove(item)
        layer.insert(0, item)


def _swap(layers: Sequence[list[int]], skeleton: Skeleton, *, start: int) -> None:
    """Swap neighbors of a layer, from `start` on, wherever fewer edges cross then."""
    place = [0] * len(skeleton.ranks)
    for layer in layers:
        for index, item in enumerate(layer):
            place[item] = index
    for _ in range(SWAPS):
        for layer in layers:
            for at in range(start, len(layer) - 1):
                left, right = layer[at], layer[at + 1]
                gain = _gain(skeleton.above, left, right, place)
                if gain + _gain(skeleton.below, left, right, place) > 0:
                    layer[at], layer[at + 1] = right, left
                    place[left], place[right] = at + 1, at


def _gain(
    neighbors: Sequence[Sequence[int]], left: int, right: int, place: Sequence[int]
) -> int:
    """Return the number of crossings saved by a swap of `left` and `right`."""
    ones, others = neighbors[left], neighbors[right]
    if len(ones) * len(others) > MAX_COMPARED:
        return 0
    ends = [place[other] for other in others]
    gain = 0
    for one in ones:
        at = place[one]
        for end in ends:
            gain += (at > end) - (at < end)
    return gain


def _swept(layers: Sequence[Sequence[int]], skeleton: Skeleton) -> list[list[int]]:
    """The layers after one sweep down and one up."""
    layers = _pass(layers, skeleton.above)
    return _pass(layers[::-1], skeleton.below)[::-1]


def _pass(
    layers: Sequence[Sequence[int]], fixed: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Each layer sorted by the mean place of its neighbors in those before."""
    # Places are relative, so that layers of different lengths compare. Neighbors of
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
    """Return the number of edge crossings between two layers (by a Fenwick tree)."""
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
