import numpy as np
import pytest

import gradviz as gv


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: x.split(2),
        lambda x: x.split([1, 3]),
        lambda x: x.chunk(3),
        lambda x: x.unbind(),
        lambda x: x.tensor_split(3),
    ],
)
def test_parts_share_the_memory_of_the_whole(parts):
    x = gv.arange(4)

    assert all(np.shares_memory(part.array, x.array) for part in parts(x))
    assert [n for part in parts(x) for n in part.reshape(-1).tolist()] == [0, 1, 2, 3]


def test_a_part_that_was_not_used_has_a_gradient_of_zeros():
    x = gv.ones(4, requires_grad=True)

    x.split(2)[1].sum().backward()

    assert x.grad.tolist() == [0.0, 0.0, 1.0, 1.0]


def test_as_many_parts_are_made_of_nothing_as_were_asked_for():
    assert [part.shape for part in gv.zeros(0, 2).chunk(3)] == [(0, 2)] * 3


def test_indices_beyond_the_end_make_empty_parts():
    assert [p.tolist() for p in gv.arange(3).tensor_split([1, 9])] == [[0], [1, 2], []]
