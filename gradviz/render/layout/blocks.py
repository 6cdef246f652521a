"""Blocks of boxes and bends exactly below each other: they keep edges straight."""

import itertools
from bisect import bisect_left
from collections.abc import Sequence

from gradviz.render.layout.layers import Skeleton


def straight_blocks(
    skeleton: Skeleton, layers: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return chains of neighbors in adjacent layers that are to be straight.

    Note [Blocks]
    ~~~~~~~~~~~~~
    Two edges between the same layers that cross cannot both be vertical. So edges are
    taken by their importance, each if it crosses none that was taken and both its ends
    are free: the main way down, then the inner parts of long edges, then the longest
    lines. The chains that come of it never cross, hence "stands left of" has no cycles
    among them, and each can have an x of its own.
    """
    place = [0] * len(skeleton.ranks)
    for layer in layers:
        for index, item in enumerate(layer):
            place[item] = index
    following = [-1] * len(place)
    is_followed = [False] * len(place)
    main = set(itertools.pairwise(skeleton.main))
    for layer in layers:
        edges = [
            (upper, lower)
            for upper in layer
            for lower in skeleton.below[upper]
            if skeleton.ranks[lower] == skeleton.ranks[upper] + 1
        ]
        edges.sort(key=lambda edge: _importance(skeleton, edge, main))
        tops: list[int] = []
        bottoms: list[int] = []
        for upper, lower in edges:
            at = bisect_left(tops, place[upper])
            if not (
                following[upper] >= 0
                or is_followed[lower]
                or (at and bottoms[at - 1] > place[lower])
                or (at < len(bottoms) and bottoms[at] < place[lower])
            ):
                tops.insert(at, place[upper])
                bottoms.insert(at, place[lower])
                following[upper] = lower
                is_followed[lower] = True
    return [
        _chain(item, following) for item in range(len(place)) if not is_followed[item]
    ]


def _chain(item: int, following: Sequence[int]) -> list[int]:
    chain = [item]
    while following[chain[-1]] >= 0:
        chain.append(following[chain[-1]])
    return chain


def _importance(
    skeleton: Skeleton, edge: tuple[int, int], main: set[tuple[int, int]]
) -> tuple[bool, bool, bool, int]:
    """Return the sort key of edges between two layers."""
    upper, lower = edge
    is_inner = min(edge) >= skeleton.num_boxes
    is_on_line = skeleton.next[upper] == lower
    return edge not in main, not is_inner, not is_on_line, -skeleton.line[lower]
