import cProfile
import random
from graphlib import TopologicalSorter

import msgspec
import pytest

from gradviz.analysis.graphs.backward_graph import LEAF, Graph, GraphEdge
from gradviz.analysis.graphs.repetition import fold_repeats
from tests.analysis.graphs.test_modules import make_graph, make_node, pairs_of


def named(names, pairs, modules=None):
    graph = make_graph(modules or [""] * len(names), pairs)
    nodes = tuple(
        msgspec.structs.replace(node, name=name)
        for node, name in zip(graph.nodes, names, strict=True)
    )
    return msgspec.structs.replace(graph, nodes=nodes)


def line(names, modules=None):
    pairs = [(place, place + 1) for place in range(len(names) - 1)]
    return named(names, pairs, modules)


def told(graph):
    return [(node.name, node.repeats) for node in graph.nodes]


def is_acyclic(graph):
    sorter = TopologicalSorter({index: [] for index in range(len(graph.nodes))})
    for one, other in pairs_of(graph):
        sorter.add(one, other)
    return len(list(sorter.static_order())) == len(graph.nodes)


def test_layers_that_repeat_are_drawn_once_with_how_often():
    folded = fold_repeats(line("xabababyz"))

    assert told(folded) == [("x", 1), ("a", 3), ("b", 3), ("y", 1), ("z", 1)]
    assert pairs_of(folded) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [one.id for one in folded.nodes[1].members] == [99, 97, 95]
    assert folded.notes == ("what repeats is drawn once",)


def test_a_stretch_that_comes_twice_is_not_folded():
    graph = line("xababyz")

    assert fold_repeats(graph) == graph


def test_a_layer_begins_where_the_module_changes_most():
    """Of "cabcabcab" both "cab" three times and "abc" twice would do."""
    modules = ["N.x", *["N.2"] * 3, *["N.1"] * 3, *["N.0"] * 3, "N.y"]
    folded = fold_repeats(line("bcabcabcabxy", [*modules, ""]))

    assert told(folded)[1:4] == [("c", 3), ("a", 3), ("b", 3)]
    assert folded.nodes[1].module == "N.0-2"


def test_layers_whose_inner_edges_differ_are_not_equal():
    """Four layers "abc"; in the second one "a" leads to "c" too."""
    pairs = [(place, place + 1) for place in range(12)] + [(3, 5)]
    graph = named("abcabcabcabcx", pairs)

    assert fold_repeats(graph) == graph


def test_layers_of_different_sizes_are_not_equal():
    graph = line("ababab")
    last = msgspec.structs.replace(graph.nodes[-1], inputs=(None,))
    graph = msgspec.structs.replace(graph, nodes=(*graph.nodes[:-1], last))

    assert fold_repeats(graph) == graph


def test_a_layer_that_failed_is_drawn_itself():
    graph = line("abababab")
    failed = msgspec.structs.replace(graph.nodes[7], status="failed")
    graph = msgspec.structs.replace(graph, nodes=(*graph.nodes[:7], failed))

    assert told(fold_repeats(graph)) == [("a", 3), ("b", 3), ("a", 1), ("b", 1)]


BRANCHES = [(0, 1), (0, 3), (0, 5), (1, 2), (2, 7), (3, 4), (4, 7), (5, 6), (6, 7)]


def test_branches_that_are_alike_are_drawn_once():
    folded = fold_repeats(named("xabababy", BRANCHES))

    assert told(folded) == [("x", 1), ("a", 3), ("b", 3), ("y", 1)]
    assert pairs_of(folded) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("edge", [(0, 4), (2, 8), (1, 7)])
def test_branches_with_another_way_in_or_out_are_not_alike(edge):
    """The third branch lacks an edge that the first or second one has."""
    graph = named("xabababyz", sorted([*BRANCHES, (7, 8), edge]))

    assert fold_repeats(graph) == graph


def test_branches_of_modules_with_names_of_their_own_are_not_alike():
    names = ["", *[f"N.{name}" for name in "qqkkvv"], ""]

    def branches(modules):
        graph = named("xabababy", BRANCHES)
        return msgspec.structs.replace(
            graph,
            nodes=tuple(
                msgspec.structs.replace(node, module=module)
                for node, module in zip(graph.nodes, modules, strict=True)
            ),
        )

    graph = branches(names)
    heads = branches(["", *[f"N.{i // 2}.q" for i in range(6)], ""])

    assert fold_repeats(graph) == graph
    assert [node.module for node in fold_repeats(heads).nodes] == [
        "",
        *["N.0-2.q"] * 2,
        "",
    ]


def test_two_are_a_repeat_if_that_is_asked_for():
    graph = line("xababy")

    assert fold_repeats(graph) == graph
    assert told(fold_repeats(graph, 2)) == [("x", 1), ("a", 2), ("b", 2), ("y", 1)]


def test_each_layers_own_leaves_are_drawn_once_as_well():
    """Three layers, each with a weight and a bias, which are of one shape."""
    names = ["a", "a", "a", "end", *[LEAF] * 6]
    pairs = [(0, 1), (0, 4), (0, 5), (1, 2), (1, 6), (1, 7), (2, 3), (2, 8), (2, 9)]
    graph = named(names, sorted(pairs))
    leaves = tuple(
        msgspec.structs.replace(leaf, parameters=(f"N.{2 - place // 2}.{name}",))
        for place, (leaf, name) in enumerate(
            zip(graph.nodes[4:], ["weight", "bias"] * 3, strict=True)
        )
    )
    graph = msgspec.structs.replace(graph, nodes=(*graph.nodes[:4], *leaves))

    folded = fold_repeats(graph)

    assert told(folded) == [("a", 3), ("end", 1), (LEAF, 3), (LEAF, 3)]
    assert [one.parameters for one in folded.nodes[2:]] == [
        ("N.0-2.weight",),
        ("N.0-2.bias",),
    ]


def test_a_leaf_that_all_time_steps_share_stays_one():
    pairs = [(0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (2, 4)]
    folded = fold_repeats(named(["a", "a", "a", "end", LEAF], pairs))

    assert told(folded) == [("a", 3), ("end", 1), (LEAF, 1)]
    assert sorted(pairs_of(folded)) == [(0, 1), (0, 2)]


def test_the_first_time_step_may_lack_what_leads_to_its_state():
    """Four steps "abc" that use a weight; in the last to run "a" leads not to "c"."""
    pairs = [(place, place + 1) for place in range(11)]
    pairs += [(place, place + 2) for place in (0, 3, 6)]
    pairs += [(place, 12) for place in (2, 5, 8, 11)]
    folded = fold_repeats(named([*"abc" * 4, LEAF], sorted(pairs)))

    assert told(folded) == [("a", 4), ("b", 4), ("c", 4), (LEAF, 1)]


def test_repeats_within_repeats_are_drawn_once():
    folded = fold_repeats(line("x" + "ybbbb" * 4 + "z"))

    assert told(folded) == [("x", 1), ("y", 4), ("b", 16), ("z", 1)]


def test_long_chains_of_one_operation_are_one_node():
    assert told(fold_repeats(line("x" + "s" * 500 + "y")))[1] == ("s", 500)


@pytest.mark.parametrize("seed", range(40))
def test_folding_loses_no_node_and_makes_no_cycle(seed):
    rng = random.Random(seed)
    period, times = rng.randint(1, 6), rng.randint(3, 9)
    layer = [rng.choice("abc") for _ in range(period)]
    names = [*rng.choices("abcxy", k=rng.randint(0, 5)), *layer * times]
    names += rng.choices("abcxy", k=rng.randint(1, 5))
    begin = rng.randint(0, 2)
    pairs = {(place, place + 1) for place in range(len(names) - 1)}
    for _ in range(rng.randint(0, 3)):  # skips, in each layer alike or anywhere
        one, reach = rng.randrange(period), rng.randint(2, 4)
        ways = [(begin + k * period + one, reach) for k in range(times)]
        if rng.random() < 0.3:
            ways = ways[:1]
        pairs |= {(at, at + by) for at, by in ways if at + by < len(names)}
    graph = named(names, sorted(pairs))

    folded = fold_repeats(graph)

    members = [one.id for node in folded.nodes for one in node.members or (node,)]
    assert sorted(members) == sorted(node.id for node in graph.nodes)
    assert folded.num_nodes == len(names)
    assert is_acyclic(folded)
    # An edge of the drawn graph is one between members, and every other edge is there.
    home = {
        one.id: index
        for index, node in enumerate(folded.nodes)
        for one in node.members or (node,)
    }
    ways = {
        (home[graph.nodes[one].id], home[graph.nodes[other].id]) for one, other in pairs
    }
    assert set(pairs_of(folded)) <= ways
    kept = {
        (one, other)
        for one, other in ways
        if folded.nodes[one].repeats == 1 or folded.nodes[other].repeats == 1
    }
    assert kept <= set(pairs_of(folded)) | {(one, one) for one in range(len(names))}


@pytest.mark.parametrize("num_nodes", [0, 1, 2])
def test_graphs_of_few_nodes_stay_as_they_are(num_nodes):
    graph = line("a" * num_nodes)

    assert fold_repeats(graph) == graph


def test_a_graph_with_a_cycle_is_folded_without_losing_a_node():
    graph = line("ababab")
    edges = (*graph.edges, GraphEdge(5, 0, 0))

    folded = fold_repeats(msgspec.structs.replace(graph, edges=edges))

    assert folded.num_nodes == 6


def test_a_leaf_alone_stays_one():
    graph = Graph(task=0, nodes=(make_node(0, "", name=LEAF),), edges=())

    assert fold_repeats(graph) == graph


def num_calls(num_nodes):
    """Function calls that it takes to look for what repeats at random: no clock."""
    chooser = random.Random(1)
    pairs = [
        (node, min(node + chooser.randint(1, 20), num_nodes - 1))
        for node in range(num_nodes - 1)
        for _ in range(2)
    ]
    graph = named("ab" * (num_nodes // 2), pairs)
    profile = cProfile.Profile()
    profile.runcall(fold_repeats, graph)
    return sum(entry.callcount for entry in profile.getstats())


def test_a_large_graph_in_which_nothing_repeats_takes_work_as_its_size():
    assert num_calls(6_000) < 5 * num_calls(1_500)
