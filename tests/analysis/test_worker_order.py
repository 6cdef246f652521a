import random

from gradviz.analysis.worker_order import forward_numbers


def in_order(owners, ids, edges):
    """The nodes, as positions, from the last that was made to the first."""
    numbers = forward_numbers(owners, ids, edges)
    assert sorted(numbers) == list(range(len(ids)))
    return sorted(range(len(ids)), key=lambda node: -numbers[node])


def test_what_workers_ran_by_turns_is_in_as_few_stretches_as_it_can_be():
    #: Two chains from worker 0 to worker 1 and back, whatever their ids are.
    owners = ["0", "1", "0"] * 2
    edges = [(0, 1), (1, 2), (3, 4), (4, 5)]

    order = in_order(owners, [9, 1, 8, 7, 2, 6], edges)

    assert [owners[node] for node in order] == ["0", "0", "1", "1", "0", "0"]


def test_what_a_node_let_start_follows_it_and_of_several_the_last_made_first():
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
    numbers = forward_numbers(owners, chooser.sample(range(999), size), edges)

    assert all(numbers[one] > numbers[other] for one, other in edges)


def test_what_leads_back_to_itself_comes_last():
    order = in_order(["0"] * 3, [1, 2, 3], [(0, 1), (1, 0)])

    assert order[0] == 2
    assert sorted(order[1:]) == [0, 1]
