"""Random graphs with random edits that are known, and orders against brute force."""

import itertools
import random

import pytest

from gradviz.analysis.changes.matching import (
    Structure,
    aligned,
    longest_common_order,
    matched,
)


def random_structure(seed, num_names):
    rng = random.Random(seed)
    size = rng.randint(5, 60)
    names = [f"op {rng.randrange(num_names)}" for _ in range(size)]
    edges = [
        [(rng.randrange(node), 0) for _ in range(rng.randint(1, 2))] if node else []
        for node in range(size)
    ]
    return rng, names, edges


class Edited:
    """A copy of a graph; of each of its nodes which one it was, -1 for a new one."""

    def __init__(self, rng, names, edges):
        self.rng = rng
        self.names, self.edges = list(names), [list(each) for each in edges]
        self.was = list(range(len(names)))

    def insert(self):
        """Put a node on an edge."""
        every = [
            (x, nr) for x, edges in enumerate(self.edges) for nr in range(len(edges))
        ]
        at, number = self.rng.choice(every)
        to = self.edges[at][number]
        self.edges = [[(y + (y >= at), nr) for y, nr in edges] for edges in self.edges]
        self.edges.insert(at, [to])
        self.edges[at + 1][number] = (at, 0)
        self.names.insert(at, f"new {self.rng.randrange(3)}")
        self.was.insert(at, -1)

    def remove(self):
        """Take a node out, and lead to where its first gradient went."""
        every = [x for x, edges in enumerate(self.edges) if edges and self.was[x] >= 0]
        gone = self.rng.choice(every)
        to = self.edges[gone][0]
        self.edges = [
            [to if y == gone else (y, nr) for y, nr in edges] for edges in self.edges
        ]
        for column in (self.edges, self.names, self.was):
            del column[gone]
        self.edges = [[(y - (y > gone), nr) for y, nr in edges] for edges in self.edges]


def edit(seed, num_names, num_edits):
    rng, names, edges = random_structure(seed, num_names)
    other = Edited(rng, names, edges)
    for _ in range(num_edits):
        rng.choice([other.insert, other.remove])()
    return Structure(names, edges), other


@pytest.mark.parametrize("num_edits", range(5))
def test_nodes_with_names_of_their_own_are_found_whatever_was_edited(num_edits):
    for seed in range(40):
        one, other = edit(seed, 10_000, num_edits)
        now = {was: place for place, was in enumerate(other.was) if was >= 0}

        partner = matched(one, Structure(other.names, other.edges))

        assert partner == [now.get(node, -1) for node in range(len(one.names))]


@pytest.mark.parametrize("num_names", [1, 3, 10])
@pytest.mark.parametrize("num_edits", [0, 1, 3])
def test_no_more_differs_than_was_edited_where_names_repeat(num_names, num_edits):
    fewer = 0
    for seed in range(60):
        one, other = edit(1_000 + seed, num_names, num_edits)
        kept = sum(was >= 0 for was in other.was)

        partner = matched(one, Structure(other.names, other.edges))

        found = [node for node in partner if node >= 0]
        assert len(found) == len(set(found))
        assert all(
            one.names[node] == other.names[to]
            for node, to in enumerate(partner)
            if to >= 0
        )
        fewer += len(found) < kept
    # Among equal names a few of several edits cannot be told apart.
    assert fewer <= (0 if num_edits < 2 else 1)


def test_a_graph_is_matched_whatever_the_order_of_its_making():
    for seed in range(30):
        rng, names, edges = random_structure(seed, 10_000)
        order = list(range(len(names)))
        rng.shuffle(order)
        place = {node: position for position, node in enumerate(order)}
        other = Structure(
            [names[node] for node in order],
            [[(place[to], nr) for to, nr in edges[node]] for node in order],
        )

        assert matched(Structure(names, edges), other) == [
            place[node] for node in range(len(names))
        ]


def test_branches_that_nobody_can_tell_apart_are_matched_in_their_order():
    names = ["leaf", "mul", "mul", "mul", "sum"]
    edges = [[], [(0, 0)], [(0, 0)], [(0, 0)], [(1, 0), (2, 0), (3, 0)]]
    graph = Structure(names, edges)

    assert matched(graph, graph) == [0, 1, 2, 3, 4]


def test_a_cycle_of_a_damaged_trace_is_no_problem():
    graph = Structure(["a", "b", "c"], [[(1, 0)], [(0, 0)], [(0, 0), (-1, 0)]])

    assert matched(graph, graph) == [0, 1, 2]


def test_without_nodes_nothing_is_matched():
    graph = Structure(["a"], [[]])

    assert matched(graph, Structure([], [])) == [-1]
    assert matched(Structure([], []), graph) == []


def brute_common(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for x, y in itertools.product(range(len(one)), range(len(other))):
        table[x + 1][y + 1] = (
            table[x][y] + 1
            if one[x] == other[y]
            else max(table[x][y + 1], table[x + 1][y])
        )
    return table[-1][-1]


def test_sequences_are_aligned_as_well_as_can_be():
    for seed in range(500):
        rng = random.Random(seed)
        one, other = (
            [rng.randrange(3) for _ in range(rng.randrange(12))] for _ in range(2)
        )

        pairs = aligned(one, other)

        assert len(pairs) == brute_common(one, other)
        assert all(one[x] == other[y] for x, y in pairs)
        assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))


def test_orders_that_differ_too_much_are_aligned_at_their_start_and_end_only(
    monkeypatch,
):
    monkeypatch.setattr("gradviz.analysis.changes.matching.MAX_DIFFERENCES", 3)

    assert aligned("ab1c2d3ez", "ab4c5d6ez") == [(0, 0), (1, 1), (7, 7), (8, 8)]


@pytest.mark.parametrize("size", range(7))
def test_the_longest_common_order_is_the_longest_rising_subsequence(size):
    for places in itertools.permutations(range(size)):
        kept = longest_common_order(places)

        chosen = [places[position] for position in sorted(kept)]
        assert chosen == sorted(chosen)
        assert len(chosen) == max(
            sum(1 for _ in some)
            for length in range(size + 1)
            for some in itertools.combinations(places, length)
            if list(some) == sorted(some)
        )
