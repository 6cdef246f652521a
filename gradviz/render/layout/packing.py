"""Packing of blocks: side by side, as near as possible to their successors."""

import itertools
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gradviz.render.layout.layers import Skeleton
from gradviz.trace.format.table import Column

#: Between two boxes, and between two edges that pass them.
NODE_GAP: Final = 20.0
LANE_GAP: Final = 12.0

Coordinates: TypeAlias = NDArray[np.float64]

#: A block that stands beside another one, and how far apart the two are at least.
_Beside: TypeAlias = tuple[int, float]


class Packing:
    """The blocks, and where each stands.

    "Stands left of" sorts the blocks (see Note [Blocks]), so one way through all of
    them from the left finds each after those that it must not touch. NumPy is of no
    help here: in a layer of thousands each box waits for the one on its left.

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
        # Pairs of blocks beside each other, and their least distance.
        items, layer = flat(layers), owners(layers)
        is_beside = layer[1:] == layer[:-1]
        left, right = items[:-1][is_beside], items[1:][is_beside]
        are_bends = np.minimum(left, right) >= skeleton.num_boxes
        gap = rights[left] + halves[right] + np.where(are_bends, LANE_GAP, NODE_GAP)
        self._on_left: list[list[_Beside]] = [[] for _ in blocks]
        self._on_right: list[list[_Beside]] = [[] for _ in blocks]
        one, other = self.block_of[left].tolist(), self.block_of[right].tolist()
        for on_left, on_right, apart in zip(one, other, gap.tolist(), strict=True):
            self._on_left[on_right].append((on_left, apart))
            self._on_right[on_left].append((on_right, apart))
        self._main = int(self.block_of[0])
        self._skeleton = skeleton
        self._rightwards = self._sorted()
        self.x = self._packed()

    def width(self) -> float:
        """From the left end of the first block to the right end of the last."""
        return float((self.x + self._rights).max() - (self.x - self._lefts).min())

    def move(self, times: int) -> None:
        """Move each block to the middle of its neighbors, as far as it can."""
        lefts = ((self.x - self._lefts).min() + self._lefts).tolist()
        rights = ((self.x + self._rights).max() - self._rights).tolist()
        x, joined = self.x.tolist(), self._joined()
        movable = [one for one in self._rightwards if joined[one] and one != self._main]
        for _ in range(times):
            for block in itertools.chain(reversed(movable), movable):
                near = sorted([x[other] for other in joined[block]])
                at = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2
                least, most = lefts[block], rights[block]
                for other, gap in self._on_left[block]:
                    least = max(least, x[other] + gap)
                for other, gap in self._on_right[block]:
                    most = min(most, x[other] - gap)
                x[block] = min(max(at, least), most)
        self.x = np.array(x)

    def _sorted(self) -> list[int]:
        """The blocks, each after all that stand on its left."""
        missing = list(map(len, self._on_left))
        found = [block for block, on_left in enumerate(missing) if not on_left]
        for block in found:
            for other, _ in self._on_right[block]:
                missing[other] -= 1
                if not missing[other]:
                    found.append(other)
        return found

    def _packed(self) -> Coordinates:
        x = [0.0] * len(self._rightwards)
        for block in self._rightwards:
            for other, gap in self._on_left[block]:
                x[block] = max(x[block], x[other] + gap)
        # Blocks to the left of the first box come back to it.
        is_left = {self._main}
        for block in reversed(self._rightwards):
            on_right = self._on_right[block]
            if not is_left.isdisjoint([other for other, _ in on_right]):
                is_left.add(block)
                x[block] = min([x[other] - gap for other, gap in on_right])
        return np.array(x)

    def _joined(self) -> list[list[int]]:
        """Of each block, the others that edges lead to from it or come from."""
        below = self._skeleton.below
        upper, lower = self.block_of[owners(below)], self.block_of[flat(below)]
        joined: list[list[int]] = [[] for _ in self._rightwards]
        for one, other in zip(upper.tolist(), lower.tolist(), strict=True):
            if one != other:
                joined[one].append(other)
                joined[other].append(one)
        return joined


def flat(lists: Sequence[Sequence[int]]) -> Column:
    """The members of all lists."""
    return np.fromiter(itertools.chain.from_iterable(lists), np.int64)


def owners(lists: Sequence[Sequence[int]]) -> Column:
    """Of the members of all lists, in which they are."""
    return np.repeat(np.arange(len(lists)), [len(one) for one in lists])
