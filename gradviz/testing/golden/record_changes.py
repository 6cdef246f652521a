"""Changes from one record of a backward to another, as lines that people read.

Nodes are matched by the structure of the graphs, as `gradviz diff` does it. So another
name of a module or a parameter is no change, and a node that is new makes none of those
behind it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from gradviz.analysis.changes.matching import (
    Structure,
    aligned,
    longest_common_order,
    matched,
)
from gradviz.render.words.text import count, shorten
from gradviz.testing.golden.backward_record import (
    NOWHERE,
    UNKNOWN,
    GoldenNode,
    GoldenPass,
)
from gradviz.testing.golden.golden_file import edge, node_line

#: Passes of as many nodes that share fewer of their edges are two programs.
_MIN_SIMILARITY: Final = 0.2
_MIN_NODES: Final = 10

_MAX_TEXT: Final = 160

#: Fields of nodes that are compared, and what they are called.
_FIELDS: Final = (
    ("inputs", "inputs"),
    ("device", "device"),
    ("saved", "saved bytes"),
    ("hooks", "hooks"),
    ("waits", "waits"),
    ("end", "end"),
    ("line", "line"),
)


class RecordChanges(NamedTuple):
    """Changes from one record to another.

    Attributes:
        lines: The changes, a line each.
        is_another_program: True if the records have too little in common to be of one
            program.
        is_unseen: True if bytes that are in the first are unknown in the second.
    """

    lines: tuple[str, ...]
    is_another_program: bool
    is_unseen: bool


def record_changes(
    before: Sequence[GoldenPass], after: Sequence[GoldenPass]
) -> RecordChanges:
    """Return the changes from one record to another; no lines without any."""
    lines: list[str] = []
    shares = []
    is_unseen = False
    for number, (one, other) in enumerate(_pairs(before, after), start=1):
        if one == other:
            continue
        if one is None or other is None:
            found = [_whole(one, other)]
        else:
            compared = _ComparedPasses(one, other)
            found = [*compared.changes()]
            shares.append(compared.share)
            is_unseen |= compared.is_unseen
        heading = [f"pass {number}:"] if len(before) > 1 or len(after) > 1 else []
        lines += [*heading, *found] if found else []
    return RecordChanges(
        tuple(lines), bool(shares) and max(shares) < _MIN_SIMILARITY, is_unseen
    )


def _pairs(
    before: Sequence[GoldenPass], after: Sequence[GoldenPass]
) -> Iterator[tuple[GoldenPass | None, GoldenPass | None]]:
    """Yield passes side by side: equal ones, and those between them in order."""
    numbers: dict[GoldenPass, int] = {}
    keys = [
        [numbers.setdefault(one, len(numbers)) for one in record]
        for record in (before, after)
    ]
    x = y = 0
    for to_x, to_y in (*aligned(*keys), (len(before), len(after))):
        yield from zip_longest(before[x:to_x], after[y:to_y])
        if to_x < len(before) and to_y < len(after):
            yield before[to_x], after[to_y]
        x, y = to_x + 1, to_y + 1


def _whole(one: GoldenPass | None, other: GoldenPass | None) -> str:
    if one is None:
        assert other is not None
        return f"  + a pass of {count(len(other.nodes), 'node')} that was not there"
    return f"  - a pass of {count(len(one.nodes), 'node')} that is gone"


class _ComparedPasses:
    """Two passes, and which node of the one is which of the other.

    Attributes:
        share: Part of the edges that both have; 1 of small passes.
        is_unseen: See `RecordChanges`.
    """

    def __init__(self, one: GoldenPass, other: GoldenPass) -> None:
        self._one, self._other = one, other
        # Matching wants the order of the forward.
        self._nodes = [[*reversed(each.nodes)] for each in (one, other)]
        self._structures = [_structure(nodes) for nodes in self._nodes]
        self._partner = matched(*self._structures)
        self._taken = {y: x for x, y in enumerate(self._partner) if y >= 0}
        self.share = self._share()
        self.is_unseen = any(
            self._nodes[1][y].saved == UNKNOWN != self._nodes[0][x].saved
            for y, x in self._taken.items()
        )

    def changes(self) -> Iterator[str]:
        """Yield the changes, a line each, in the order in which nodes run."""
        if self._one.marks != self._other.marks:
            marks = (" ".join(one.marks) for one in (self._one, self._other))
            yield _changed("the pass", *marks)
        before, after = self._nodes
        for x in reversed(range(len(before))):
            if self._partner[x] < 0:
                yield _cut(f"  - {node_line(before[x])}")
        for y in reversed(range(len(after))):
            if y not in self._taken:
                yield _cut(f"  + {node_line(after[y])}")
        for x in reversed(range(len(before))):
            if self._partner[x] >= 0:
                yield from self._changes_of(x, self._partner[x])
        yield from self._moved()

    def _share(self) -> float:
        edges = [
            {
                (node, number, *to)
                for node, edges in enumerate(structure.edges)
                for number, to in enumerate(edges)
                if to[0] >= 0
            }
            for structure in self._structures
        ]
        most = max(map(len, edges))
        if max(map(len, self._nodes)) < _MIN_NODES or not most:
            return 1.0
        place = self._partner
        same = {
            (place[node], number, place[to], input_nr)
            for node, number, to, input_nr in edges[0]
            if place[node] >= 0 and place[to] >= 0
        }
        return len(same & edges[1]) / most

    def _changes_of(self, x: int, y: int) -> Iterator[str]:
        one, other = self._nodes[0][x], self._nodes[1][y]
        for field, what in _FIELDS:
            before, after = getattr(one, field), getattr(other, field)
            is_compared = field != "line" or (before and after)
            if before != after and is_compared:
                yield _changed(f"{other.address}: {what}", _text(before), _text(after))
        both = zip_longest(
            self._structures[0].edges[x],
            self._structures[1].edges[y],
            fillvalue=(-1, 0),
        )
        for number, (mine, theirs) in enumerate(both):
            if self._leads_elsewhere(mine, theirs):
                yield _changed(
                    f"{other.address}: gradient {number} goes to",
                    _end(one, number),
                    _end(other, number),
                )

    def _leads_elsewhere(self, mine: tuple[int, int], theirs: tuple[int, int]) -> bool:
        """Return whether an edge leads to another node that both passes have."""
        (to, input_nr), (to_other, input_nr_other) = mine, theirs
        is_gone = to >= 0 and self._partner[to] < 0
        is_new = to_other >= 0 and to_other not in self._taken
        if is_gone or is_new or (to < 0 and to_other < 0):
            return False
        expected = self._partner[to] if to >= 0 else -1
        return (expected, input_nr) != (to_other, input_nr_other)

    def _moved(self) -> Iterator[str]:
        """Yield the nodes that are not in the longest order that both passes have."""
        turns = [_turns(one) for one in (self._one, self._other)]
        size = len(self._nodes[0]), len(self._nodes[1])
        partner = {  # in the order in which nodes run
            size[0] - 1 - x: size[1] - 1 - y for y, x in self._taken.items()
        }
        for device, order in turns[0].items():
            place = {node: turn for turn, node in enumerate(turns[1].get(device, ()))}
            both = [node for node in order if partner.get(node) in place]
            kept = longest_common_order([place[partner[node]] for node in both])
            for number, node in enumerate(both):
                if number not in kept:
                    address = self._other.nodes[partner[node]].address
                    was, now = order.index(node), place[partner[node]]
                    yield _changed(f"{address}: turn on {device}", str(was), str(now))


def _structure(nodes: Sequence[GoldenNode]) -> Structure:
    place = {one.address: number for number, one in enumerate(nodes)}

    def leads_to(text: str) -> tuple[int, int]:
        if text == NOWHERE:
            return -1, 0
        address, input_nr = edge(text)
        return place[address], input_nr

    return Structure(
        [one.name for one in nodes], [[*map(leads_to, one.edges)] for one in nodes]
    )


def _turns(one: GoldenPass) -> Mapping[str, list[int]]:
    """Return the nodes of each device, in the order in which they run."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, node in enumerate(one.nodes):
        found[node.device].append(number)
    return found


def _changed(what: str, before: str, after: str) -> str:
    return _cut(f"  ~ {what} {before or 'nothing'} -> {after or 'nothing'}")


def _end(one: GoldenNode, number: int) -> str:
    text = one.edges[number] if number < len(one.edges) else NOWHERE
    return "nobody" if text == NOWHERE else text


def _text(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _cut(text: str) -> str:
    return shorten(text, _MAX_TEXT)
