"""Rows of a table: their gradients, the padding, and how long they may be."""

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional


def test_the_gradients_of_a_row_that_was_taken_twice_add_up():
    table = gv.zeros(4, 2, requires_grad=True)

    F.embedding(gv.tensor([[1, 3], [1, 0]]), table).sum().backward()

    assert table.grad.tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


def test_the_padding_gets_no_gradient():
    table = gv.zeros(4, 2, requires_grad=True)

    F.embedding(gv.tensor([1, 3]), table, padding_idx=-1).sum().backward()

    assert table.grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]


def test_gradients_may_be_divided_by_how_often_a_row_was_taken():
    table = gv.zeros(3, 1, requires_grad=True)

    F.embedding(gv.tensor([1, 1, 2]), table, scale_grad_by_freq=True).sum().backward()

    assert table.grad.tolist() == [[0], [1], [1]]


def test_rows_that_are_too_long_are_shortened_in_place():
    table = gv.tensor([[3.0, 4.0], [3.0, 4.0]])

    F.embedding(gv.tensor([1, 1]), table, max_norm=1.0)

    np.testing.assert_allclose(table.numpy(), [[3, 4], [0.6, 0.8]], rtol=1e-5)


def test_a_sparse_gradient_is_refused():
    with pytest.raises(NotImplementedError, match="use sparse=False"):
        F.embedding(gv.tensor([0]), gv.ones(2, 2), sparse=True)
