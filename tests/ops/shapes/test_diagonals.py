import numpy as np

import gradviz as gv


def test_a_diagonal_is_a_view_through_which_one_can_write():
    x = gv.zeros(2, 2)

    x.diagonal().fill_(3)

    assert x.tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_the_places_of_a_triangle_are_rows_and_columns():
    assert gv.tril_indices(2, 3).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert gv.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


def test_a_diagonal_outside_of_the_matrix_is_empty():
    assert gv.ones(2, 3).diagonal(5).shape == (0,)
    assert np.all(gv.zeros(2, 2).diagonal_scatter(gv.ones(1), -1).numpy()[1, 0] == 1)
