import math

import numpy as np
import pytest

import gradviz as gv


def test_comparisons_are_tensors_of_booleans_outside_the_graph():
    x = gv.tensor([1.0, 2.0, 3.0], requires_grad=True)

    result = x >= 2

    assert result.tolist() == [False, True, True]
    assert result.dtype == gv.bool
    assert result.grad_fn is None


def test_comparing_with_a_stranger_is_false_not_an_error():
    x = gv.ones(2)

    assert (x == None) is False  # noqa: E711 - the operator is what is tested
    assert (x != "x") is True


def test_comparisons_take_tensors_arrays_and_numbers_on_either_side():
    x = gv.tensor([1.0, 2.0])

    assert (x < np.array([2.0, 2.0])).tolist() == [True, False]
    assert (np.array([2.0, 2.0]) > x).tolist() == [True, False]
    assert (x < 2).tolist() == [True, False]


def test_an_array_beside_a_tensor_leaves_the_operator_to_it():
    array, x = np.array([1.0, 2.0]), gv.tensor([3.0, 4.0], dtype=gv.float64)

    for result in (array + x, array * x, array - x, array / x, array**x):
        assert isinstance(result, gv.Tensor)
    assert isinstance(np.eye(2) @ x, gv.Tensor)
    assert isinstance(np.float64(2) * x, gv.Tensor)


def test_equal_elements_share_the_gradient_of_a_maximum():
    x, y = (gv.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))

    gv.maximum(x, y * gv.tensor([1.0, 2.0])).sum().backward()

    assert x.grad.tolist() == [0.5, 0.0]
    assert y.grad.tolist() == [0.5, 2.0]


def test_powers_of_zero_have_finite_gradients():
    x = gv.zeros(3, requires_grad=True)
    y = gv.tensor([0.0, 1.0, 2.0], requires_grad=True)

    (x**y).sum().backward()

    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    assert y.grad.tolist() == [0.0, 0.0, 0.0]


def test_an_infinite_gradient_does_not_pass_a_closed_relu():
    x = gv.tensor([-1.0, 1.0], requires_grad=True)

    x.relu().backward(gv.tensor([math.inf, 1.0]))

    assert x.grad.tolist() == [0.0, 1.0]


def test_a_clamp_without_limits_is_an_error():
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max'"):
        gv.clamp(gv.ones(1))


def test_a_sigmoid_does_not_overflow():
    assert gv.sigmoid(gv.tensor([-1e4, 0.0, 1e4])).tolist() == [0.0, 0.5, 1.0]


def test_integers_stay_integers_where_pytorch_keeps_them():
    x = gv.tensor([5, -3])

    assert (x % 3).tolist() == [2, 0]
    assert (x * 2).dtype == gv.int64
    assert (x**2).tolist() == [25, 9]
    assert abs(x).tolist() == [5.0, 3.0]
