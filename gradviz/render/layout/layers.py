"""A graph in layers: the layer of each box, and the paths of its lines.

Everything takes linear time, a few sorts aside, and ends for graphs with cycles too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gradviz.analysis.graphs.ranks import longest_path_ranks

#: Bends that the edges of one picture may have in total. Each costs as much as a node.
MAX_BENDS: Final = 12_000
#: Sizes that set the effort: most on graphs of up to so many boxes and bends, and least
#: on those of more than `LARGE`.
SMALL: Final = 2_000
LARGE: Final = 20_000

BoxSize = tuple[float, float]


class Skeleton:
    """The boxes and, after them, the bends: one where a long edge crosses a layer.

    Attributes:
        num_boxes: Positions below are boxes, those from here on are bends.
        widths: Of boxes and bends.
        heights: Of boxes and bends.
        edges: Pairs of boxes.
        annexes: Width and height of what stands on the right of some boxes.
        ranks: The layer of each.
        above: Neighbors in the layer above, of each.
        below: Neighbors in the layer below, of each.
        bends: The bends of each edge, downwards.
        reach: Number of boxes below each, on the way where they are most.
        line: Number of layers on the line that begins at each. Lines are ways down that
            have nothing in common; each goes on where the longest one does.
        next: Next one on the line of each, -1 at its end.
        main: The longest way down from the first box: the backbone of the picture.
    """

    def __init__(
        self,
        sizes: Sequence[BoxSize],
        edges: Sequence[tuple[int, int]],
        annexes: Mapping[int, BoxSize] | None = None,
        order: Iterable[tuple[int, int]] = (),
    ) -> None:
        self.num_boxes = len(sizes)
        self.edges = edges
        self.annexes = annexes or {}
        self.widths = [width for width, _ in sizes]
        self.heights = [height for _, height in sizes]
        self.ranks = _ranks(len(sizes), [*edges, *order])
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
        self.reach, self.line, self.next = self._lines()
        self.main = self._main()

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

    def _lines(self) -> tuple[list[int], list[int], list[int]]:
        """See `reach`, `line` and `next`."""
        downwards = sorted(range(len(self.ranks)), key=self.ranks.__getitem__)
        depth = [0] * len(downwards)
        # An item goes on the line of its deepest neighbor above, of several of the one
        # that ran first.
        upper = [-1] * len(downwards)
        for item in downwards:
            if self.above[item]:
                upper[item] = max(self.above[item], key=lambda at: (depth[at], -at))
                depth[item] = depth[upper[item]] + 1
        reach, line = [0] * len(downwards), [0] * len(downwards)
        following = [-1] * len(downwards)
        for item in reversed(downwards):
            for other in self.below[item]:
                reach[item] = max(reach[item], reach[other] + (other < self.num_boxes))
                if upper[other] == item and line[other] >= line[item]:
                    line[item], following[item] = line[other] + 1, other
        return reach, line, following

    def _main(self) -> list[int]:
        main = [0]
        while below := self.below[main[-1]]:
            furthest = max(map(self._ahead, below))
            ways = [one for one in below if self._ahead(one) == furthest]
            on_line = self.next[main[-1]]
            main.append(on_line if on_line in ways else ways[0])
        return main

    def _ahead(self, item: int) -> int:
        """Return the length of the longest way down that begins with `item`."""
        return self.reach[item] + (item < self.num_boxes)


def _ranks(num_boxes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return longest paths from above, then as near to successors as is free.

    A box that nothing points to stands right above its first one, but the first box of
    all stays at the top. One that leads to as many as lead to it, at the least, moves
    down to them: so the loss of a time step stands beside its step, and not in a
    triangle of all losses at the top. What hangs from one box only, goes with it.
    """
    ranks = longest_path_ranks(num_boxes, edges)
    num_ways_in = [0] * num_boxes
    below: list[list[int]] = [[] for _ in range(num_boxes)]
    for producer, consumer in edges:
        if ranks[producer] < ranks[consumer]:  # else it is part of a cycle
            below[producer].append(consumer)
            num_ways_in[consumer] += 1
    downwards = sorted(range(num_boxes), key=ranks.__getitem__)
    hangs = [False] * num_boxes
    for box in reversed(downwards):
        others = [other for other in below[box] if not hangs[other]]
        hangs[box] = not others and num_ways_in[box] == 1
        if others and box and num_ways_in[box] <= len(others):
            ranks[box] = min(ranks[other] for other in others) - 1
    for box in downwards:
        for other in below[box]:
            if hangs[other]:
                ranks[other] = ranks[box] + 1
    return ranks
