"""Where blocks stand: beside each other, as near as can be to what they lead to."""

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradviz.render.layers import Skeleton
from gradviz.trace.table import Column

#: Between two boxes, and between two edges that pass them.
NODE_GAP: Final = 20.0
LANE_GAP: Final = 12.0

Coordinates: TypeAlias = NDArray[np.float64]


class Packing:
    """The blocks, and where each stands.

    Note [Fronts]
    ~~~~~~~~~~~~~
    "Stands left of" sorts the blocks (see Note [Blocks]): the first front are those
    with nothing on their left, the next one those with nothing but them, and so on. No
    two blocks of a front hold each other up, so that all of it is placed at once.
    Pictures are far higher than wide: there are few fronts, however many blocks.

    Two blocks of one front that are joined would change places for ever, if each moved
    to where the other was. So they go half of the way.

    Attributes:
        block_of: The block of each box and bend.
        x: Of each block.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        layers: Sequence[Sequence[int]],
        blocks: Sequence[Sequence[int]],
    ) -> None:
        """Put the blocks as near to that of the first box as can be."""
        self.block_of = np.empty(len(skeleton.ranks), np.int64)
        self.block_of[flat(blocks)] = owners(blocks)
        halves = np.array(skeleton.widths) / 2
        rights = halves.copy()
        for box, (wide, _) in skeleton.annexes.items():
            rights[box] += wide
        self._lefts, self._rights = np.zeros((2, len(blocks)))
        np.maximum.at(self._lefts, self.block_of, halves)
        np.maximum.at(self._rights, self.block_of, rights)
        # Which two blocks stand beside each other, and how far apart they are at least.
        items, layer = flat(layers), owners(layers)
        is_beside = layer[1:] == layer[:-1]
        left, right = items[:-1][is_beside], items[1:][is_beside]
        are_bends = np.minimum(left, right) >= skeleton.num_boxes
        self._gap = rights[left] + halves[right]
        self._gap += np.where(are_bends, LANE_GAP, NODE_GAP)
        self._left, self._right = self.block_of[left], self.block_of[right]
        self._front = _fronts(len(blocks), self._left, self._right)
        self._num_fronts = int(self._front.max()) + 1
        self._skeleton = skeleton
        self.x = self._packed()

    def width(self) -> float:
        """From the left end of the first block to the right end of the last."""
        return float((self.x + self._rights).max() - (self.x - self._lefts).min())

    def move(self, times: int) -> None:
        """Move each block to the middle of what it is joined to, as far as it can."""
        first, last = (self.x - self._lefts).min(), (self.x + self._rights).max()
        least, most = np.empty_like(self.x), np.empty_like(self.x)
        steps = self._steps()
        for step in itertools.chain.from_iterable(
            (*reversed(steps), *steps) for _ in range(times)
        ):
            own, lefts, rights = step.blocks, step.lefts, step.rights
            least[own] = first + self._lefts[own]
            most[own] = last - self._rights[own]
            np.maximum.at(
                least, self._right[lefts], self.x[self._left[lefts]] + self._gap[lefts]
            )
            np.minimum.at(
                most,
                self._left[rights],
                self.x[self._right[rights]] - self._gap[rights],
            )
            near = self.x[step.joined]
            near = near[np.lexsort((near, step.joined_by))]
            wish = (near[step.lower] + near[step.upper]) / 2
            wish = np.minimum(np.maximum(wish, least[own]), most[own])
            self.x[own] += step.part * (wish - self.x[own])

    def _packed(self) -> Coordinates:
        x = np.zeros(len(self._lefts))
        by_right = _by(self._front[self._right], self._num_fronts)
        for pairs in by_right:
            np.maximum.at(
                x, self._right[pairs], x[self._left[pairs]] + self._gap[pairs]
            )
        # What is on the left of the first box comes back to it.
        main = self.block_of[0]
        is_left = np.zeros(len(x), np.bool_)
        is_left[main] = True
        for pairs in reversed(_by(self._front[self._left], self._num_fronts)):
            left, right = self._left[pairs], self._right[pairs]
            is_left[left[is_left[right]]] = True
            moved = is_left[left] & (left != main)
            left, right, gap = left[moved], right[moved], self._gap[pairs][moved]
            x[left] = np.inf
            np.minimum.at(x, left, x[right] - gap)
        return x

    def _steps(self) -> list["_Step"]:
        """The fronts, from the left, each with all that says how far it can go."""
        below = self._skeleton.below
        one, other = self.block_of[owners(below)], self.block_of[flat(below)]
        is_between = one != other
        ends = np.stack([one[is_between], other[is_between]])
        one, other = np.concatenate([ends, ends[::-1]], axis=1)
        movable = one != self.block_of[0]
        one, other = one[movable], other[movable]
        order = np.argsort(one, kind="stable")
        one, other = one[order], other[order]
        holds_back = np.zeros(len(self.x), np.bool_)
        holds_back[one[self._front[one] == self._front[other]]] = True
        lefts = _by(self._front[self._right], self._num_fronts)
        rights = _by(self._front[self._left], self._num_fronts)
        steps = []
        for number, ways in enumerate(_by(self._front[one], self._num_fronts)):
            if not len(ways):
                continue
            by = one[ways]
            blocks, start, size = np.unique(by, return_index=True, return_counts=True)
            steps.append(
                _Step(
                    blocks=blocks,
                    lefts=lefts[number],
                    rights=rights[number],
                    joined=other[ways],
                    joined_by=by,
                    lower=start + (size - 1) // 2,
                    upper=start + size // 2,
                    part=np.where(holds_back[blocks], 0.5, 1.0),
                )
            )
        return steps


class _Step(NamedTuple):
    """The blocks of a front that move, and what they look at.

    Attributes:
        blocks: Those that are joined to something, sorted.
        lefts: The pairs of neighbours whose right one is in the front.
        rights: The pairs of neighbours whose left one is.
        joined: What the blocks are joined to.
        joined_by: Which of the blocks is, sorted.
        lower: Where among the sorted places of what a block is joined to the middle is.
        upper: The same, but where there is no middle, what follows it.
        part: Which part of its way each block goes.
    """

    blocks: Column
    lefts: Column
    rights: Column
    joined: Column
    joined_by: Column
    lower: Column
    upper: Column
    part: Coordinates


def _fronts(num_blocks: int, left: Column, right: Column) -> Column:
    """The front of each block; see Note [Fronts]."""
    order = np.argsort(left, kind="stable")
    first = np.searchsorted(left[order], np.arange(num_blocks + 1))
    rights = right[order]
    missing = np.bincount(right, minlength=num_blocks)
    front = np.zeros(num_blocks, np.int64)
    ready = np.flatnonzero(missing == 0)
    for number in itertools.count():
        if not len(ready):
            return front
        front[ready] = number
        if len(ready) == 1:  # as in a layer of thousands, at each of its boxes
            others = rights[first[ready[0]] : first[ready[0] + 1]]
        else:
            sizes = first[ready + 1] - first[ready]
            begin = np.repeat(first[ready] - np.cumsum(sizes) + sizes, sizes)
            others = rights[begin + np.arange(len(begin))]
        np.subtract.at(missing, others, 1)
        ready = others[missing[others] == 0]
        if len(ready) > 1:
            ready = np.unique(ready)
    raise AssertionError


def _by(numbers: Column, how_many: int) -> list[Column]:
    """Of each number from 0 on, where it stands."""
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(1, how_many))
    return np.split(order, ends)


def flat(lists: Sequence[Sequence[int]]) -> Column:
    """The members of all lists."""
    return np.fromiter(itertools.chain.from_iterable(lists), np.int64)


def owners(lists: Sequence[Sequence[int]]) -> Column:
    """Of the members of all lists, in which they are."""
    return np.repeat(np.arange(len(lists)), [len(one) for one in lists])
