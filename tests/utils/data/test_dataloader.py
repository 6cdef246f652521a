import numpy as np
import pytest

import gradviz as gv
from gradviz.utils.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, index):
        return {"x": float(index), "y": index * index}


@pytest.fixture
def rows():
    return TensorDataset(gv.arange(5), gv.arange(10).reshape(5, 2))


def test_rows_of_tensors_come_together(rows):
    x, y = rows[3]

    assert len(rows) == 5
    assert (x.item(), y.tolist()) == (3, [6, 7])


def test_tensors_of_one_dataset_are_of_one_length():
    with pytest.raises(AssertionError, match="Size mismatch"):
        TensorDataset(gv.zeros(2), gv.zeros(3))


def test_batches_come_in_order_and_the_last_may_be_short(rows):
    loader = DataLoader(rows, batch_size=2)

    assert [x.tolist() for x, _ in loader] == [[0, 1], [2, 3], [4]]
    assert [tuple(y.shape) for _, y in loader] == [(2, 2), (2, 2), (1, 2)]
    assert len(loader) == 3


def test_a_short_batch_can_be_left_out(rows):
    loader = DataLoader(rows, batch_size=2, drop_last=True)

    assert len(list(loader)) == len(loader) == 2


def test_shuffled_batches_differ_from_time_to_time_and_lose_nothing(rows):
    gv.manual_seed(0)
    loader = DataLoader(rows, batch_size=5, shuffle=True)
    orders = [x.tolist() for _ in range(4) for x, _ in loader]

    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert len(set(map(tuple, orders))) > 1
    gv.manual_seed(0)
    assert next(iter(loader))[0].tolist() == orders[0]


def test_samples_that_are_dicts_become_dicts_of_tensors():
    batch = next(iter(DataLoader(Squares(), batch_size=3)))

    assert batch["x"].tolist() == [0, 1, 2]
    assert batch["y"].dtype == np.int64


def test_numbers_can_be_given(rows):
    assert [x.tolist() for x, _ in DataLoader(rows, 2, sampler=[4, 0])] == [[4, 0]]
    batches = DataLoader(rows, batch_sampler=[[1], [2, 3]])
    assert [x.tolist() for x, _ in batches] == [[1], [2, 3]]
    assert len(batches) == 2


def test_samples_can_come_one_after_the_other():
    class Count(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    assert [x.tolist() for x in DataLoader(Count(), batch_size=2)] == [[0, 1], [2]]


def test_without_a_batch_size_samples_come_as_they_are():
    assert list(DataLoader([3, 4], batch_size=None)) == [3, 4]


def test_batches_can_be_made_in_another_way():
    assert list(DataLoader([3, 4], 2, collate_fn=sum)) == [7]


def test_a_dataset_is_split_in_random_parts(rows):
    first, second = random_split(rows, [0.5, 0.5])
    third, _ = random_split(rows, [1, 4])

    assert (len(first), len(second), len(third)) == (3, 2, 1)
    found = [
        x.item()
        for part in (first, second)
        for x, _ in (part[i] for i in range(len(part)))
    ]
    assert sorted(found) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        random_split(rows, [1, 2])


def test_a_subset_has_numbers_of_its_own(rows):
    assert Subset(rows, [4, 2])[1][0].item() == 2


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": True, "sampler": [0]},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_size": 0},
    ],
)
def test_conflicting_and_invalid_options_are_refused(rows, options):
    with pytest.raises(ValueError, match=r"mutually exclusive|positive integer"):
        DataLoader(rows, **options)


def test_an_object_that_cannot_be_in_a_batch_is_named():
    with pytest.raises(TypeError, match="found <class 'object'>"):
        default_collate([object()])


def test_datasets_may_follow_each_other(rows):
    both = rows + Subset(rows, [4, 0])

    assert isinstance(both, ConcatDataset)
    assert [x.item() for x, _ in DataLoader(both, batch_size=None)] == [
        *range(5),
        4,
        0,
    ]
    assert both[-1][0].item() == 0
    with pytest.raises(IndexError, match="no sample 7 among 7"):
        both[7]
    with pytest.raises(ValueError, match="should not be an empty iterable"):
        ConcatDataset([])


def test_options_about_workers_are_accepted_and_unknown_ones_are_refused(rows):
    DataLoader(rows, num_workers=2, persistent_workers=True, worker_init_fn=print)

    with pytest.raises(TypeError, match="unexpected keyword argument 'shuffled'"):
        DataLoader(rows, shuffled=True)


def test_samples_of_several_datasets_may_come_together(rows):
    stacked = StackDataset(rows, range(5))
    named = StackDataset(x=rows, y=range(5))

    assert len(stacked) == 5
    assert stacked[3][1] == 3
    assert sorted(named[2]) == ["x", "y"]
    assert len(DataLoader(stacked, batch_size=2)) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (StackDataset, "At least one dataset"),
        (lambda: StackDataset([1], [1, 2]), "Size mismatch between datasets"),
        (lambda: StackDataset([1], y=[1]), "both types are given"),
    ],
)
def test_they_must_be_alike(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_iterables_may_follow_each_other():
    class Two(IterableDataset):
        def __iter__(self):
            return iter([1, 2])

    assert list(Two() + Two()) == list(ChainDataset([Two(), Two()])) == [1, 2, 1, 2]


def test_a_sample_by_itself_has_its_arrays_converted():
    sample = {"x": np.arange(2), "text": "x", "pair": (np.float32(1), None)}

    (converted,) = DataLoader([sample], batch_size=None)

    assert converted["x"].tolist() == [0, 1]
    assert converted["text"] == "x"
    assert isinstance(default_convert(np.ones(1)), gv.Tensor)
    assert converted["pair"][0].item() == 1
    assert get_worker_info() is None
