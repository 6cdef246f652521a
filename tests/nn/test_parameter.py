import copy

import pytest

import gradviz as gv
from gradviz import nn


def test_a_parameter_is_a_leaf_that_wants_gradients():
    parameter = nn.Parameter(gv.ones(2) * 2)

    assert parameter.requires_grad
    assert parameter.is_leaf
    assert isinstance(parameter, gv.Tensor)


def test_a_parameter_shares_the_memory_of_its_data():
    data = gv.zeros(2)
    parameter = nn.Parameter(data, requires_grad=False)

    data.fill_(3)

    assert parameter.tolist() == [3, 3]


def test_a_result_computed_from_a_parameter_is_a_plain_tensor():
    assert type(nn.Parameter(gv.ones(2)) * 2) is gv.Tensor


def test_integers_are_no_parameters():
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(gv.tensor([1, 2]))


def test_a_parameter_says_that_it_is_one():
    assert repr(nn.Parameter(gv.ones(1))) == (
        "Parameter containing:\ntensor([1.], requires_grad=True)"
    )


def test_a_deep_copy_is_a_parameter_of_its_own():
    parameter = nn.Parameter(gv.ones(2))
    first, second = copy.deepcopy([parameter, parameter])

    assert first is second
    assert type(first) is nn.Parameter
    assert first is not parameter
    with gv.no_grad():
        first.fill_(5)
    assert parameter.tolist() == [1, 1]


def test_a_parameter_is_empty_without_data():
    assert nn.Parameter().shape == (0,)
