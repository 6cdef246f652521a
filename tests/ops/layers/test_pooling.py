"""The chosen element of a window."""

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional


def chosen(row, size, **settings):
    """The indices of the elements that `max_pool1d` chooses in one row."""
    x = gv.tensor([[row]], dtype=gv.float32)
    _, indices = F.max_pool1d(x, size, return_indices=True, **settings)
    return indices.tolist()[0][0]


@pytest.mark.parametrize(
    ("row", "index"),
    [
        ([1, 3, 2, 3], 1),
        ([0, 0, 0, 0], 0),
        ([-np.inf] * 4, 0),
        ([5, np.nan, 7, 1], 1),
        ([np.nan, np.inf, np.nan, 1], 2),
    ],
    ids=["the first of equals", "zeros", "all -inf", "a NaN", "the last NaN"],
)
def test_one_element_of_a_window_is_chosen(row, index):
    assert chosen(row, 4) == [index]


def test_padding_is_never_chosen():
    assert chosen([-np.inf, -np.inf, -np.inf, 1], 3, stride=2, padding=1) == [0, 3]


def test_of_overlapping_windows_each_chooses_for_itself():
    assert chosen([1, 4, 2, 4, 3], 3, stride=1) == [1, 1, 3]


def test_a_window_may_have_more_elements_than_a_byte_counts():
    image = gv.arange(400.0).reshape(1, 20, 20)
    values, indices = F.max_pool2d(image, 20, return_indices=True)
    assert (values.item(), indices.item()) == (399.0, 399)
