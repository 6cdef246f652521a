import pytest

import gradviz as gv


def test_numpys_names_stand_for_pytorchs():
    x = gv.ones(2, 3)

    assert gv.cumsum(x, axis=1).shape == (2, 3)
    assert gv.amax(x, axis=0, keepdims=True).shape == (1, 3)


def test_a_result_is_put_where_it_is_wanted():
    out = gv.zeros(3)

    result = gv.sum(gv.ones(2, 3), 0, out=out)

    assert result is out
    assert out.tolist() == [2.0, 2.0, 2.0]


def test_two_results_are_put_where_they_are_wanted():
    values, indices = gv.zeros(2), gv.zeros(2, dtype=gv.int64)

    gv.max(gv.tensor([[1.0, 3.0], [5.0, 2.0]]), 1, out=(values, indices))

    assert values.tolist() == [3.0, 5.0]
    assert indices.tolist() == [1, 0]


def test_a_result_that_is_put_somewhere_has_no_gradient():
    x = gv.ones(2, 3, requires_grad=True)

    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        gv.sum(x, 0, out=gv.zeros(3))
