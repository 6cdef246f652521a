import pytest

import gradviz as gv
from gradviz.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

SOURCE = range(5)


def seeded():
    return gv.Generator().manual_seed(3)


def test_in_order():
    sampler = SequentialSampler(SOURCE)

    assert list(sampler) == list(sampler) == [0, 1, 2, 3, 4]
    assert len(sampler) == 5


def test_in_random_order():
    sampler = RandomSampler(SOURCE, generator=seeded())
    orders = [list(sampler) for _ in range(4)]

    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len({tuple(order) for order in orders}) > 1
    assert len(sampler) == 5


def test_more_than_there_are_come_in_rounds():
    numbers = list(RandomSampler(SOURCE, num_samples=12, generator=seeded()))

    assert len(numbers) == 12
    assert sorted(numbers[:5]) == sorted(numbers[5:10]) == [0, 1, 2, 3, 4]


def test_with_replacement_one_may_come_again():
    numbers = list(RandomSampler(SOURCE, replacement=True, num_samples=50))

    assert len(numbers) == 50
    assert set(numbers) <= set(SOURCE)


def test_some_in_random_order():
    sampler = SubsetRandomSampler([1, 3, 9], generator=seeded())

    assert sorted(sampler) == [1, 3, 9]
    assert len(sampler) == 3


def test_by_their_weights():
    sampler = WeightedRandomSampler([0, 2, 0, 2], 20)

    assert set(sampler) <= {1, 3}
    assert len(sampler) == 20
    assert sorted(WeightedRandomSampler([1, 0, 1], 2, replacement=False)) == [0, 2]


@pytest.mark.parametrize(
    ("drop_last", "batches"), [(False, [[0, 1], [2, 3], [4]]), (True, [[0, 1], [2, 3]])]
)
def test_in_batches(drop_last, batches):
    sampler = BatchSampler(SequentialSampler(SOURCE), 2, drop_last)

    assert list(sampler) == batches
    assert len(sampler) == len(batches)


def test_a_sampler_need_not_know_its_length():
    class Backwards(Sampler):
        def __iter__(self):
            return iter([4, 3])

    rows = gv.utils.data.TensorDataset(gv.arange(5))
    loader = DataLoader(rows, sampler=Backwards())

    assert len(loader) == 2
    assert [x.item() for (x,) in loader] == [4, 3]
    with pytest.raises(NotImplementedError, match="Sampler does not define __iter__"):
        iter(Sampler())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomSampler(SOURCE, num_samples=0), "num_samples=0"),
        (lambda: WeightedRandomSampler([1], -1), "num_samples=-1"),
        (lambda: BatchSampler(SOURCE, 0, drop_last=False), "batch_size=0"),
    ],
)
def test_there_is_at_least_one(make, message):
    with pytest.raises(ValueError, match=f"positive integer value, but got {message}"):
        make()
