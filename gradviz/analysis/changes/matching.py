"""Matching: which node of one graph is which of another one, by structure alone.

Note [Matching two graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~
Ids say nothing across recordings, and names repeat. What tells a node is where it is:
all that it leads to (*below*), and all that leads to it (*above*). Each becomes a
number, the same for the same structure in both graphs.

An edit changes what is above of everything below it, what is below of everything above
it, and no more. So first those are matched that agree in both, then those in one of
them, as far as that means one node of each graph. Matches spread along edges: whom a
node hands its first gradient is the same as whom its partner does, if the names are the
same. What nobody can tell apart, as equal branches, is matched in the order in which it
was made. What then is left lies between several edits; it is aligned as lines of two
texts are, in the order in which it was made. All of this is linear but for the last
step, which is given up where too much differs.
"""

import bisect
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

#: Maximum number of differences searched for between the remaining nodes.
MAX_DIFFERENCES: Final = 500

#: A node of the one graph and its partner in the other.
Pair: TypeAlias = tuple[int, int]


class Structure(NamedTuple):
    """A graph, as far as it identifies nodes.

    Attributes:
        names: Of each node, in the order in which they were made.
        edges: For each gradient of each node which node gets it, -1 for none, and at
            which input.
    """

    names: Sequence[str]
    edges: Sequence[Sequence[Pair]]

    def producers(self) -> list[list[Pair]]:
        """Return, for each node, the senders of its gradients, and their outputs."""
        found: list[list[Pair]] = [[] for _ in self.names]
        for producer, edges in enumerate(self.edges):
            for output_nr, (consumer, _) in enumerate(edges):
                if consumer >= 0:
                    found[consumer].append((producer, output_nr))
        return found


def matched(one: Structure, other: Structure) -> list[int]:
    """Of each node of `one` its partner in `other`, -1 if it has none.

    See Note [Matching two graphs].
    """
    numbers: dict[Hashable, int] = {}
    keys = [_keys(graph, numbers) for graph in (one, other)]
    matching = _Matching(one, other)
    for is_alike in (False, True):
        for kind in range(len(keys[0])):
            matching.match_equal(keys[0][kind], keys[1][kind], is_alike=is_alike)
    matching.align()
    return matching.partner


def _keys(graph: Structure, numbers: dict[Hashable, int]) -> list[list[int]]:
    """Return keys of each node: of both sides, of the part above, of the one below."""
    producers = graph.producers()
    order = _consumers_first(graph, producers)
    below, above = [0] * len(order), [0] * len(order)

    def number(*key: Hashable) -> int:
        return numbers.setdefault(key, len(numbers))

    for node in order:
        below[node] = number(
            "below",
            graph.names[node],
            *((-1 if to < 0 else below[to], nr) for to, nr in graph.edges[node]),
        )
    for node in reversed(order):
        above[node] = number(
            "above",
            graph.names[node],
            *sorted(
                (above[producer], output_nr, graph.edges[producer][output_nr][1])
                for producer, output_nr in producers[node]
            ),
        )
    both = [number(*pair) for pair in zip(below, above, strict=True)]
    return [both, above, below]


def _consumers_first(graph: Structure, producers: list[list[Pair]]) -> list[int]:
    """Each node behind all it leads to; those of a cycle, in a damaged trace, last."""
    left = [sum(to >= 0 for to, _ in edges) for edges in graph.edges]
    order = [node for node, number in enumerate(left) if not number]
    for node in order:  # grows while it is walked
        for producer, _ in producers[node]:
            left[producer] -= 1
            if not left[producer]:
                order.append(producer)
    return [*order, *(node for node, number in enumerate(left) if number)]


class _Matching:
    """Matches so far.

    Attributes:
        partner: For each node of one graph its partner in the other, -1 for none.
    """

    def __init__(self, one: Structure, other: Structure) -> None:
        self._one, self._other = one, other
        self._producers = one.producers(), other.producers()
        self.partner = [-1] * len(one.names)
        self._is_taken = [False] * len(other.names)

    def match_equal(
        self, one: Sequence[int], other: Sequence[int], *, is_alike: bool
    ) -> None:
        """Match nodes of equal keys, of which each graph has one, or as many.

        Args:
            one: A key of each node of the one graph.
            other: And of the other.
            is_alike: True if several of a key are matched, in the order of their
                making.
        """
        here, there = defaultdict(list), defaultdict(list)
        for node in self._left():
            here[one[node]].append(node)
        for node in self._left_of_other():
            there[other[node]].append(node)
        for key, nodes in here.items():
            partners = there[key]
            if len(nodes) == len(partners) and (is_alike or len(nodes) == 1):
                self._match_all(zip(nodes, partners, strict=True))

    def align(self) -> None:
        """Match the remaining nodes by name, in order of creation."""
        one, other = self._left(), self._left_of_other()
        pairs = aligned(
            [self._one.names[node] for node in one],
            [self._other.names[node] for node in other],
        )
        self._match_all([(one[x], other[y]) for x, y in pairs])

    def _left(self) -> list[int]:
        return [node for node, other in enumerate(self.partner) if other < 0]

    def _left_of_other(self) -> list[int]:
        return [node for node, taken in enumerate(self._is_taken) if not taken]

    def _match_all(self, pairs: Iterable[Pair]) -> None:
        """Match pairs of free nodes, and their consequences along edges."""
        for pair in pairs:
            waiting = [pair]
            while waiting:
                one, other = waiting.pop()
                if self._is_free(one, other):
                    self.partner[one] = other
                    self._is_taken[other] = True
                    waiting += self._neighbors(one, other)

    def _is_free(self, one: int, other: int) -> bool:
        is_free = self.partner[one] < 0 and not self._is_taken[other]
        return is_free and self._one.names[one] == self._other.names[other]

    def _neighbors(self, one: int, other: int) -> Iterator[Pair]:
        """Yield pairs of nodes that give both, or get from both, the same gradient."""
        both = zip(self._one.edges[one], self._other.edges[other], strict=False)
        for (to, input_nr), (to_other, input_nr_other) in both:
            if to >= 0 and to_other >= 0 and input_nr == input_nr_other:
                yield to, to_other
        here = self._free_producers(0, one)
        there = self._free_producers(1, other)
        for edge, nodes in here.items():
            partners = there.get(edge, ())
            if len(nodes) == len(partners) == 1:
                yield nodes[0], partners[0]

    def _free_producers(
        self, graph: int, node: int
    ) -> dict[tuple[str, int, int], list[int]]:
        """Return unmatched nodes that give a node gradients, by name and by edge."""
        names, edges = (self._one, self._other)[graph]
        found = defaultdict(list)
        for producer, output_nr in self._producers[graph][node]:
            is_taken = (
                self._is_taken[producer] if graph else self.partner[producer] >= 0
            )
            if not is_taken:
                input_nr = edges[producer][output_nr][1]
                found[names[producer], output_nr, input_nr].append(producer)
        return found


def aligned(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[Pair]:
    """Pairs of equal things of two sequences, the most there are, in order.

    The greedy algorithm of Myers (1986): of so many differences how far one can come on
    each diagonal x - y. Where there are more than `MAX_DIFFERENCES`, only what both
    begin and end with.
    """
    size = min(len(one), len(other))
    begin = next((at for at in range(size) if one[at] != other[at]), size)
    rest = size - begin
    end = next((at for at in range(rest) if one[~at] != other[~at]), rest)
    return [
        *((at, at) for at in range(begin)),
        *(
            (x + begin, y + begin)
            for x, y in _longest_common(
                one[begin : len(one) - end], other[begin : len(other) - end]
            )
        ),
        *((len(one) - at, len(other) - at) for at in range(end, 0, -1)),
    ]


def longest_common_order(places: Sequence[int]) -> set[int]:
    """Return the positions of the longest rising sequence of different numbers."""
    tails: list[int] = []  # the least last number of a rising sequence of each length
    ends: list[int] = []  # and where that is
    before = [-1] * len(places)
    for position, place in enumerate(places):
        length = bisect.bisect_left(tails, place)
        before[position] = ends[length - 1] if length else -1
        tails[length : length + 1] = [place]
        ends[length : length + 1] = [position]
    found = set()
    position = ends[-1] if ends else -1
    while position >= 0:
        found.add(position)
        position = before[position]
    return found


class _Stretch(NamedTuple):
    """A stretch of equal things, and the stretches before it."""

    before: "_Stretch | None"
    x: int
    y: int
    length: int


def _longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[Pair]:
    reached: dict[int, tuple[int, _Stretch | None]] = {1: (0, None)}
    for num_differences in range(min(len(one) + len(other), MAX_DIFFERENCES) + 1):
        for diagonal in range(-num_differences, num_differences + 1, 2):
            left_out_other = reached.get(diagonal + 1, (-1, None))
            left_out_one = reached.get(diagonal - 1, (-2, None))
            x, run = left_out_other
            if left_out_one[0] + 1 > x:
                x, run = left_out_one[0] + 1, left_out_one[1]
            begin = x
            while (
                x < len(one)
                and x - diagonal < len(other)
                and one[x] == other[x - diagonal]
            ):
                x += 1
            if x > begin:
                run = _Stretch(run, begin, begin - diagonal, x - begin)
            if x >= len(one) and x - diagonal >= len(other):
                return _pairs(run)
            reached[diagonal] = x, run
    return []


def _pairs(run: _Stretch | None) -> list[Pair]:
    pairs: list[Pair] = []
    while run is not None:
        before, x, y, length = run
        pairs += [(x + at, y + at) for at in range(length - 1, -1, -1)]
        run = before
    return pairs[::-1]
