"""Layers and time steps that come again and again, drawn once.

Note [Repeats]
~~~~~~~~~~~~~~
In the order of ids, which sorts the graph (see Note [Stretches]), equal layers are a
stretch of nodes that comes several times, each right after the other. Two nodes are
equal if they have the same name, device and inputs and ended alike. Two layers are if
their nodes are, the edges among them and to leaves of the same kinds, and those to the
next layer, of which there are some. The last one may lack edges, and lead to leaves
where the others lead to the next: it was the first of the forward pass. So they are
found by comparing the sequence of what nodes are like with itself, moved by one node,
by two, and so on.

Where a layer begins cannot be told from that: "abcabcab" may be "abc" twice and "ab",
or "a", "bca" twice and "b". It begins where as many layers as possible are whole, and
of such places where the module changes most: not within a block.

Branches that stand side by side, as the heads of an attention do, come after each other
in the order of ids too, and lead to none of each other. They are equal if their edges
are, if all are led to by the same nodes and lead to the same ones, and if their modules
differ by numbers only: queries and keys are no repeat.

The nodes at the same place of each layer become one, edges between two layers become
`Graph.carried`, and all others stay. In the order of the first layer's nodes no edge
points back, so no cycle comes of it.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from gradviz.analysis.graphs.backward_graph import CarriedEdge, Graph, GraphNode
from gradviz.analysis.graphs.gc_pause import gc_paused
from gradviz.analysis.graphs.simplification import (
    as_one,
    inner_nodes,
    merge_nodes,
    noted,
)
from gradviz.trace.format.table import Column

#: A part that repeats less often is drawn as often as it comes.
MIN_REPEATS: Final = 3
#: Layers of more nodes are not compared.
MAX_PERIOD: Final = 1_024
#: Layers may consist of layers that repeat.
MAX_ROUNDS: Final = 3


_NUMBER: Final = re.compile(r"(?<![^.])[0-9]+(?![^.])")


class _Repeat(NamedTuple):
    """Places in a sequence, from `start` on: `times` stretches of `period`.

    Attributes:
        start: The first place.
        period: Number of places in a stretch.
        times: Number of stretches.
        to_next: Edges of the first stretch to the next ones: the place in it, that from
            its begin on to which they lead, and the number of the input.
    """

    start: int
    period: int
    times: int
    to_next: tuple[tuple[int, int, int], ...] = ()


@gc_paused()
def fold_repeats(graph: Graph, min_repeats: int = MIN_REPEATS) -> Graph:
    """Fold parts that repeat at least so often; see Note [Repeats]."""
    for _ in range(MAX_ROUNDS):
        order = sorted(
            inner_nodes(graph), key=lambda index: -graph.nodes[index].forward_nr
        )
        found = _repeats(graph, order, min_repeats)
        if not found:
            break
        graph = noted(_folded(graph, order, found), graph, "what repeats is drawn once")
    return graph


def _folded(graph: Graph, order: Sequence[int], found: Sequence[_Repeat]) -> Graph:
    # Of each position which repeat, which layer of it, and which place in the layer.
    home: dict[int, tuple[int, int, int]] = {}
    for which, (start, period, times, _) in enumerate(found):
        for offset in range(period * times):
            home[order[start + offset]] = (which, *divmod(offset, period))
    alike: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index in sorted(home, key=lambda index: home[index][1]):
        which, _, place = home[index]
        alike[which, place].append(index)
    for leaf, ways in _ways_to_leaves(graph).items():
        layers = {home.get(user, (-1, -1, -1))[:2] for user, _ in ways}
        if len(layers) == 1 and (-1, -1) not in layers:
            places = tuple((home[user][2], output) for user, output in ways)
            alike[(*layers.pop()[:1], places)].append(leaf)
    boxes = [
        (sorted(own), _together([graph.nodes[member] for member in own]))
        for own in alike.values()
        if len(own) > 1
    ]
    edges = [
        edge
        for edge in graph.edges
        if edge.producer not in home
        or edge.consumer not in home
        or home[edge.producer][0] != home[edge.consumer][0]
        or home[edge.producer][1] == home[edge.consumer][1]
    ]
    merged = merge_nodes(graph, boxes, edges)
    carried = (*graph.carried, *_carried(graph, order, found))
    return msgspec.structs.replace(merged, carried=carried)


def _carried(
    graph: Graph, order: Sequence[int], found: Iterable[_Repeat]
) -> Iterator[CarriedEdge]:
    """Yield the edges from each repeat to the next one, which are not drawn."""
    for start, period, _, to_next in found:
        for place, at, input_nr in to_next:
            producer = graph.nodes[order[start + place]]
            consumer = graph.nodes[order[start + at % period]]
            yield CarriedEdge(producer.id, consumer.id, input_nr)


def _together(nodes: Sequence[GraphNode]) -> GraphNode:
    """One node for those at the same place of each layer, the first that ran first."""
    first = nodes[0]
    return as_one(
        nodes,
        name=_range([node.name for node in nodes]),
        module=_range([node.module for node in nodes]),
        parameters=(_range([node.parameters[0] for node in nodes]),)
        if all(node.parameters for node in nodes)
        else (),
        repeats=len(nodes) * first.repeats,
    )


def _range(paths: Sequence[str]) -> str:
    """Return the common name of paths: ``Net.layers.0-5`` of layers 0 to 5."""
    if len(set(paths)) == 1:
        return paths[0]
    names = [path.split(".") for path in paths]
    common = []
    for parts in zip(*names, strict=False):
        different = set(parts)
        if len(different) == 1:
            common.append(parts[0])
        elif all(part.isdecimal() and len(part) < 10 for part in parts):
            numbers = sorted(map(int, parts))
            common.append(f"{numbers[0]}-{numbers[-1]}")
        else:
            common.append("*")
    return ".".join(common)


class _Ways:
    """Outgoing edges of the nodes of a sequence, as columns."""

    def __init__(
        self, graph: Graph, order: Sequence[int], likeness: Sequence[int]
    ) -> None:
        place = np.full(len(graph.nodes), -1)
        place[list(order)] = np.arange(len(order))
        edges = [(one.producer, one.consumer, one.input_nr) for one in graph.edges]
        producer, consumer, input_nr = np.array(edges, np.int64).reshape(-1, 3).T
        start, to = place[producer], place[consumer]
        way = np.where(to >= 0, input_nr, np.array(likeness, np.int64)[consumer])
        rows = np.stack([start, to, way])[:, np.lexsort((way, to, start))]
        is_new = np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0))
        self._rows = rows[:, is_new[: rows.shape[1]]]
        start, to, way = self._rows
        self._first = np.searchsorted(start, np.arange(len(order) + 1))
        # The shape of ways, independent of their start: numbers that can be added up.
        length = np.where(to < 0, -1, to - start)
        kinds = np.stack([length, way])
        _, kind = np.unique(kinds, axis=1, return_inverse=True)
        numbers = np.random.default_rng(0).integers(1 << 62, size=kinds.shape[1])
        self._kind: Column = numbers.take(kind.reshape(-1))

    def of(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """From `start` to `end` each place, one that it leads to, and which input.

        Of a leaf there are -1 and what it is like instead.
        """
        some = self._rows[:, self._first[start] : self._first[end]]
        return zip(*some.tolist(), strict=True)

    def outside(self, repeat: _Repeat) -> list[set[tuple[int, ...]]]:
        """Of each layer of a repeat the ways to and from nodes that are in none."""
        start, period, times, _ = repeat
        end = start + period * times
        producer, consumer, _ = self._rows
        leaves = (start <= producer) & (producer < end) & (consumer >= end)
        comes = (producer < start) & (start <= consumer) & (consumer < end)
        found: list[set[tuple[int, ...]]] = [set() for _ in range(times)]
        for one, to, way in zip(*self._rows[:, leaves].tolist(), strict=True):
            layer, place = divmod(one - start, period)
            found[layer].add((place, to, way))
        for one, to, way in zip(*self._rows[:, comes].tolist(), strict=True):
            layer, place = divmod(to - start, period)
            found[layer].add((one, place, way))
        return found

    def may_repeat(self, repeat: _Repeat) -> bool:
        """Return whether two successive layers seem to lead to the same nodes.

        False is certain, True is not.
        """
        start, period, times, _ = repeat
        end = start + period * times
        first = self._first[start : end + 1]
        to = self._rows[1, first[0] : first[-1]]
        stays = (to < 0) | ((to >= start) & (to < end))
        sums = np.cumsum(np.where(stays, self._kind[first[0] : first[-1]], 0))
        ways = np.diff(np.append(0, sums)[first - first[0]])
        differs = np.flatnonzero(ways[period:] != ways[:-period])
        borders = np.concatenate(([-1], differs, [len(ways) - period]))
        return bool((np.diff(borders) > period).any())


def _repeats(graph: Graph, order: Sequence[int], least: int) -> list[_Repeat]:
    """Return repeats without overlaps, in the order of nodes."""
    likeness = _likeness(graph)
    taken = np.zeros(len(order), np.bool_)
    ways = _Ways(graph, order, likeness)
    modules = [graph.nodes[index].module for index in order]
    cuts = _cuts(modules)
    found = []
    sequence = np.array(likeness, np.int64)[list(order)]
    for start, end, period in _candidates(sequence, least):
        free = np.flatnonzero(~taken[start:end]) + start
        if len(free) < least * period or free[-1] - free[0] >= len(free):
            continue
        begin = _begin(cuts, int(free[0]), int(free[-1]) + 1, period)
        some = _Repeat(begin, period, (int(free[-1]) + 1 - begin) // period)
        # Of two layers the last may lack what would tell that they repeat.
        if some.times > 2 and not ways.may_repeat(some):
            continue
        for one in _same_edges(ways, some, least, modules):
            found.append(one)
            taken[one.start : one.start + one.period * one.times] = True
    return sorted(found)


def _likeness(graph: Graph) -> list[int]:
    """For each node a number, the same for equal ones."""
    numbers: dict[tuple[object, ...], int] = {}
    kinds = map(_kind, graph.nodes)
    return [numbers.setdefault(kind, len(numbers)) for kind in kinds]


def _kind(node: GraphNode) -> tuple[object, ...]:
    return (
        node.name if not node.members else tuple(one.name for one in node.members),
        node.device,
        node.status,
        node.inputs,
        node.omitted_edges,
        node.repeats,
    )


def _candidates(likeness: Column, least: int) -> list[tuple[int, int, int]]:
    """Return ranges that repeat, with their periods: the largest savings first."""
    found = []
    for period in range(1, min(MAX_PERIOD, len(likeness) // least) + 1):
        same = np.zeros(len(likeness) - period + 2, np.int8)
        same[1:-1] = likeness[period:] == likeness[:-period]
        change = np.diff(same)
        starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
        long = ends - starts >= (least - 1) * period
        for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True):
            saved = (end - start) // period * period
            found.append((-saved, period, start, end + period))
    return [(start, end, period) for _, period, start, end in sorted(found)]


def _cuts(modules: Sequence[str]) -> Column:
    """Of each two that follow each other, how many names they begin with in common."""
    pairs = list(itertools.pairwise(modules))
    common = {}
    for one, other in set(pairs):
        names = zip(one.split("."), other.split("."), strict=False)
        same = itertools.takewhile(lambda both: both[0] == both[1], names)
        common[one, other] = len(list(same))
    return np.array([common[pair] for pair in pairs], np.int64)


def _begin(cuts: Column, start: int, end: int, period: int) -> int:
    """Return the start of the first layer; see Note [Repeats]."""
    spare = (end - start) % period
    first = start + period - 1  # the last node of the first layer
    return start + int(cuts[first : first + spare + 1].argmin())


def _same_edges(
    ways: _Ways, repeat: _Repeat, least: int, modules: Sequence[str]
) -> list[_Repeat]:
    """Those layers of a repeat, each after the other, that have the same edges too."""
    start, period, times, _ = repeat
    within: list[set[tuple[int, int, int]]] = [set() for _ in range(times)]
    to_next: list[set[tuple[int, int, int]]] = [set() for _ in range(times)]
    for producer, consumer, way in ways.of(start, start + period * times):
        layer, place = divmod(producer - start, period)
        to_layer, to_place = divmod(consumer - start, period)
        if consumer < 0 or to_layer == layer:
            within[layer].add((place, -1 if consumer < 0 else to_place, way))
        elif 0 <= to_layer < times:
            at = to_place + (to_layer - layer) * period
            to_next[layer].add((place, at, way))
    if not any(to_next):
        outside = ways.outside(repeat)
        ends = range(start, start + period * times, period)
        names = [
            [_NUMBER.sub("0", one) for one in modules[a : a + period]] for a in ends
        ]
        alike = list(zip(within, outside, names, strict=True))
        return _side_by_side(repeat, alike, least)
    found = []
    first = 0
    for layer in range(1, times + 1):
        is_next = layer < times and to_next[layer - 1] == to_next[first] != set()
        if is_next and within[layer] == within[first]:
            continue
        among = {edge for edge in within[layer] if edge[1] >= 0} if is_next else set()
        end = layer + (is_next and among <= within[first])
        if end - first >= least:
            begin, edges = start + first * period, tuple(sorted(to_next[first]))
            found.append(_Repeat(begin, period, end - first, edges))
        first = layer
    return found


def _side_by_side(
    repeat: _Repeat, likeness: Sequence[object], least: int
) -> list[_Repeat]:
    """Those branches of a repeat, each after the other, that are alike."""
    found = []
    for _, some in itertools.groupby(range(repeat.times), likeness.__getitem__):
        first, *others = some
        if 1 + len(others) >= least:
            start = repeat.start + first * repeat.period
            found.append(_Repeat(start, repeat.period, 1 + len(others)))
    return found


def _ways_to_leaves(graph: Graph) -> dict[int, list[tuple[int, int]]]:
    """Of each leaf, which nodes lead to it, and by which of their edges."""
    inner = inner_nodes(graph)
    ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
    num_edges: Counter[int] = Counter()
    for edge in graph.edges:
        if edge.consumer not in inner:
            ways[edge.consumer].append((edge.producer, num_edges[edge.producer]))
        num_edges[edge.producer] += 1
    return ways
