import msgspec

from gradviz.analysis.graphs.carried_edges import carried_ways
from gradviz.analysis.graphs.modules import collapse_modules
from gradviz.analysis.graphs.repetition import fold_repeats
from gradviz.analysis.graphs.simplification import keep_nodes
from tests.analysis.graphs.test_repetition import line, named


def ends(graph):
    return [(way.producer, way.consumer) for way in carried_ways(graph)]


def test_the_edge_to_the_next_repeat_leads_from_the_last_node_to_the_first():
    folded = fold_repeats(line("xabcabcabcy"))

    assert [node.name for node in folded.nodes] == ["x", "a", "b", "c", "y"]
    assert ends(folded) == [(3, 1)]


def test_a_chain_of_one_operation_leads_back_to_itself():
    folded = fold_repeats(line("xaaaay"))

    assert ends(folded) == [(1, 1)]


def test_branches_that_stand_side_by_side_carry_nothing():
    ways = [(0, at) for at in range(1, 5)] + [(at, 5) for at in range(1, 5)]
    folded = fold_repeats(named("xaaaay", ways))

    assert folded.nodes[1].repeats == 4
    assert ends(folded) == []


def test_nothing_is_carried_where_nothing_repeats():
    assert ends(fold_repeats(line("abcdef"))) == []


def test_two_values_that_a_step_hands_on_are_two_ways():
    """Each step has "a" and "b", and leads from both to both of the next one."""
    ways = [(0, 1), (0, 2)]
    for step in range(4):
        a, b = 1 + 2 * step, 2 + 2 * step
        ways += [(a, b), (a, a + 2), (b, b + 2)]
    folded = fold_repeats(named("xababababyz", ways))

    assert sorted(ends(folded)) == [(1, 1), (2, 2)]


def test_a_repeat_that_is_one_box_leads_back_to_itself():
    modules = ["", *[f"N.{at}" for at in range(4) for _ in "abc"], ""]
    collapsed = collapse_modules(fold_repeats(line("xabcabcabcabcy", modules)), 1)

    assert [node.name for node in collapsed.nodes][:2] == ["x", "N.0-3"]
    assert ends(collapsed) == [(1, 1)]


def test_a_way_tells_the_shape_that_it_carries():
    graph = line("xabababy")
    (known,) = carried_ways(fold_repeats(graph))
    blind = tuple(msgspec.structs.replace(one, inputs=()) for one in graph.nodes)
    (unknown,) = carried_ways(fold_repeats(msgspec.structs.replace(graph, nodes=blind)))

    assert known.shapes == tuple(one.shape for one in graph.nodes[1].inputs if one)
    assert unknown.shapes == ()


def test_of_nodes_that_are_left_out_nothing_is_carried():
    assert ends(keep_nodes(fold_repeats(line("xabcabcabcy")), [0, 1, 2])) == []
