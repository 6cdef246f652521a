"""Equal elements; the expected values are PyTorch's."""

import numpy as np
import pytest

import gradviz as gv


def test_an_unstable_sort_leaves_equal_elements_as_pytorch_s_does():
    order = gv.sort(gv.zeros(20)).indices

    assert order.tolist() == [
        *(10, 19, 18, 17, 16, 15, 14, 13, 12, 11),
        *(0, 9, 8, 7, 6, 5, 4, 3, 2, 1),
    ]


@pytest.mark.parametrize("size", [5, 16, 20, 20_000])
def test_a_stable_sort_keeps_their_order(size):
    order = gv.sort(gv.zeros(size), stable=True).indices

    assert order.tolist() == list(range(size))


@pytest.mark.parametrize("size", [16, 20_000])
def test_a_default_sort_of_few_or_very_many_equal_elements_keeps_their_order(size):
    assert gv.argsort(gv.zeros(size)).tolist() == list(range(size))


@pytest.mark.parametrize(
    ("elements", "k", "options", "expected"),
    [
        ([1, 1, 0, 1, 1, 0, 1], 3, {}, [3, 6, 4]),
        ([1, 2] * 70, 2, {}, [3, 1]),
        ([3, 1, 2, 5, 4], 3, {"sorted": False}, [4, 3, 0]),
        ([1, 1, 1], 0, {}, []),
    ],
)
def test_the_best_of_equals_are_pytorch_s(elements, k, options, expected):
    chosen = gv.topk(gv.tensor(elements, dtype=gv.float32), k, **options)

    assert chosen.indices.tolist() == expected


def test_kthvalue_and_mode_choose_the_element_of_pytorch_among_equals():
    x = gv.tensor([1.0, 1, 0, 1, 1, 0, 1])

    assert gv.kthvalue(x, 4).indices.item() == 0
    assert gv.mode(gv.tensor([1, 0] * 10)).indices.item() == 3


def test_the_gradient_goes_to_the_one_that_was_chosen():
    x = gv.tensor([1.0, 1, 0, 1, 1, 0, 1], requires_grad=True)

    gv.topk(x, 2).values.sum().backward()

    assert np.flatnonzero(x.grad.numpy()).tolist() == sorted(
        gv.topk(x, 2).indices.tolist()
    )


def test_rows_without_equal_elements_are_what_they_are():
    x = gv.tensor([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]])

    assert gv.topk(x, 2).indices[0].tolist() == [0, 2]


def test_it_is_the_same_on_a_device_and_along_any_dimension():
    x = gv.tensor(np.random.default_rng(0).integers(0, 3, (40, 2)))

    down = gv.topk(x, 7, dim=0).indices
    there = gv.topk(x.to("sim:1"), 7, dim=0).indices

    assert there.cpu().tolist() == down.tolist()
    assert gv.topk(x.T, 7).indices.T.tolist() == down.tolist()
