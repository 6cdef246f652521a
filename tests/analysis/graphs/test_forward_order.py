import random

from gradviz.analysis.graphs.forward_order import (
    order_by_sequence,
    order_by_worker,
)
from gradviz.trace.events import MAX_SEQUENCE_NR


def in_order(owners, ids, edges):
    """The nodes, as positions, from the last that was made to the first."""
    numbers = order_by_worker(owners, ids, edges)
    assert sorted(numbers) == list(range(len(ids)))
    return sorted(range(len(ids)), key=lambda node: -numbers[node])


def test_nodes_of_alternating_workers_form_as_few_stretches_as_possible():
    #: Two chains from worker 0 to worker 1 and back, whatever their ids are.
    owners = ["0", "1", "0"] * 2
    edges = [(0, 1), (1, 2), (3, 4), (4, 5)]

    order = in_order(owners, [9, 1, 8, 7, 2, 6], edges)

    assert [owners[node] for node in order] == ["0", "0", "1", "1", "0", "0"]


def test_consumers_follow_their_producer_with_the_last_made_first():
    order = in_order(["0"] * 5, [9, 4, 8, 3, 7], [(0, 1), (0, 2), (2, 3), (1, 4)])

    assert order == [0, 2, 3, 1, 4]


def test_gradients_only_flow_to_smaller_numbers():
    chooser = random.Random(3)
    size = 60
    edges = [
        (one, chooser.randrange(one + 1, size))
        for one in range(size - 1)
        for _ in range(2)
    ]
    owners = [str(chooser.randrange(3)) for _ in range(size)]
    numbers = order_by_worker(owners, chooser.sample(range(999), size), edges)

    assert all(numbers[one] > numbers[other] for one, other in edges)


def test_nodes_in_a_cycle_come_last():
    order = in_order(["0"] * 3, [1, 2, 3], [(0, 1), (1, 0)])

    assert order[0] == 2
    assert sorted(order[1:]) == [0, 1]


def test_a_leaf_comes_just_before_its_first_user_whatever_its_id_is():
    #: 0 and 1 use leaf 2, 1 uses leaf 3 too; ids are those of an earlier reading.
    sequence_nrs = [7, 5, MAX_SEQUENCE_NR, MAX_SEQUENCE_NR]

    numbers = order_by_sequence(
        sequence_nrs, [0, 1, 9, 8], [(0, 1), (0, 2), (1, 2), (1, 3)]
    )

    assert numbers[:2] == [3, 2]
    assert {*numbers[2:]} == {0, 1}


def test_branches_come_in_the_order_of_their_sequence_numbers_not_of_their_ids():
    numbers = order_by_sequence([9, 2, 4, 3], [3, 2, 0, 1], [(0, 1), (0, 2), (2, 3)])

    assert numbers == [3, 0, 2, 1]


def test_sequence_numbers_of_several_threads_never_turn_an_edge_around():
    chooser = random.Random(5)
    size = 60
    edges = [
        (one, chooser.randrange(one + 1, size))
        for one in range(size - 1)
        for _ in range(2)
    ]
    numbers = order_by_sequence(chooser.choices(range(9), k=size), range(size), edges)

    assert sorted(numbers) == list(range(size))
    assert all(numbers[one] > numbers[other] for one, other in edges)


def test_nodes_that_lead_back_to_themselves_have_places_too():
    assert sorted(order_by_sequence([1, 2, 3], [0, 1, 2], [(0, 1), (1, 0)])) == [
        0,
        1,
        2,
    ]
