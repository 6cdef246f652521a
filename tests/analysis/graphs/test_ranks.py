import pytest

from gradviz.analysis.graphs.ranks import longest_path_ranks


@pytest.mark.parametrize(
    ("num_nodes", "edges", "ranks"),
    [
        (0, [], []),
        (3, [], [0, 0, 0]),
        (3, [(0, 1), (1, 2)], [0, 1, 2]),
        (3, [(0, 1), (1, 2), (0, 2)], [0, 1, 2]),
        (3, [(2, 1), (1, 0)], [2, 1, 0]),
        (2, [(0, 1), (0, 1)], [0, 1]),
    ],
)
def test_a_rank_is_the_longest_way_from_a_node_without_inputs(num_nodes, edges, ranks):
    assert longest_path_ranks(num_nodes, edges) == ranks


def test_a_cycle_is_entered_at_its_first_node():
    assert longest_path_ranks(3, [(0, 1), (1, 2), (2, 0)]) == [0, 1, 2]


def test_a_node_that_is_its_own_consumer_is_ranked():
    assert longest_path_ranks(2, [(0, 0), (0, 1)]) == [0, 1]
