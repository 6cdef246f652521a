import pytest

import gradviz as gv
from gradviz.autograd import gradcheck, gradgradcheck
from gradviz.nn.functional import embedding_bag

ENTRIES = gv.tensor([0, 2, 2, 1])
STARTS = gv.tensor([0, 3, 3])


def table():
    return gv.tensor(
        [[1.0, 5.0], [2.0, 6.0], [9.0, 0.5]], dtype=gv.float64
    ).requires_grad_()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("sum", [[19, 6], [0, 0], [2, 6]]),
        ("mean", [[19 / 3, 2], [0, 0], [2, 6]]),
        ("max", [[9, 5], [0, 0], [2, 6]]),
    ],
)
def test_an_empty_bag_is_0(mode, expected):
    bags = embedding_bag(ENTRIES, table(), STARTS, mode=mode)

    assert bags.tolist() == expected


def test_the_gradient_of_a_maximum_goes_where_it_was_first():
    weight = table()

    embedding_bag(ENTRIES, weight, STARTS, mode="max").sum().backward()

    assert weight.grad.tolist() == [[0, 1], [1, 1], [1, 0]]


def test_each_row_is_divided_by_how_often_it_was_looked_up():
    weight = table()

    embedding_bag(
        ENTRIES, weight, STARTS, mode="sum", scale_grad_by_freq=True
    ).sum().backward()

    assert weight.grad.tolist() == [[1, 1], [1, 1], [1, 1]]


def test_gradients_of_gradients_are_there_though_pytorch_has_none():
    weights = gv.tensor([0.5, -1.0, 2.0, 3.0], dtype=gv.float64).requires_grad_()

    def bags(weight, weights):
        return embedding_bag(
            ENTRIES, weight, STARTS, mode="sum", per_sample_weights=weights
        )

    assert gradcheck(bags, [table(), weights])
    assert gradgradcheck(bags, [table(), weights])


def test_the_last_offset_is_the_end():
    with pytest.raises(RuntimeError, match="the last of offsets has to be"):
        embedding_bag(ENTRIES, table(), gv.tensor([0, 2]), include_last_offset=True)


def test_long_rows_are_shortened_in_place():
    weight = table().detach()

    embedding_bag(ENTRIES, weight, STARTS, max_norm=1.0)

    assert weight.norm(dim=1).tolist() == pytest.approx([1, 1, 1], abs=1e-6)
