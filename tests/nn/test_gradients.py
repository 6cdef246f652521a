import math

import pytest

import gradviz as gv
from gradviz import nn


def parameters(*grads):
    made = []
    for grad in grads:
        parameter = nn.Parameter(gv.zeros(len(grad)))
        parameter.grad = gv.tensor(grad)
        made.append(parameter)
    return [*made, nn.Parameter(gv.zeros(1))]  # and one without a gradient


def grads(made):
    return [one.grad.tolist() for one in made if one.grad is not None]


def test_a_long_gradient_is_shortened_in_place():
    made = parameters([3.0, 0.0], [4.0])
    kept = made[0].grad

    norm = nn.utils.clip_grad_norm_(made, 1.0)

    assert norm.item() == 5
    assert kept.tolist() == pytest.approx([0.6, 0], abs=1e-6)
    assert made[1].grad.tolist() == pytest.approx([0.8], abs=1e-6)


def test_a_short_gradient_is_left_alone():
    made = parameters([3.0], [4.0])

    nn.utils.clip_grad_norm_(made, 5.1)

    assert grads(made) == [[3], [4]]


@pytest.mark.parametrize(("order", "norm"), [(1, 7), (math.inf, 4), (2, 5)])
def test_the_norm_can_be_another(order, norm):
    made = parameters([3.0, 0.0], [-4.0])

    assert nn.utils.clip_grad_norm_(made, 100, norm_type=order).item() == norm


def test_a_norm_that_is_no_number_can_be_an_error():
    made = parameters([math.nan])

    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_norm_(made, 1.0)
    assert math.isnan(made[0].grad.item())


def test_without_gradients_the_norm_is_zero():
    assert nn.utils.clip_grad_norm_(parameters(), 1.0).item() == 0


def test_values_are_cut_off():
    made = parameters([3.0, -5.0, 1.0])

    nn.utils.clip_grad_value_(made, 2)

    assert grads(made) == [[2, -2, 1]]


def test_parameters_become_a_vector_and_come_back():
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())

    nn.utils.vector_to_parameters(vector * 0 + 7, model.parameters())

    assert vector.shape == (9,)
    assert model.weight.tolist() == [[7, 7]] * 3
    assert model.bias.tolist() == [7] * 3
