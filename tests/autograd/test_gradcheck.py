import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import GradcheckError, gradcheck
from gradviz.ops.differentiable import binary, unary


def leaf(*shape):
    values = np.random.default_rng(1).uniform(0.5, 1.5, shape)
    return gv.tensor(np.asarray(values), requires_grad=True)


def test_a_right_formula_passes():
    assert gradcheck(lambda x, y: (x * y).sin().sum(), [leaf(2, 3), leaf(3)])


def test_a_wrong_factor_is_found():
    wrong = unary("WrongBackward0", np.sin, lambda grad, x: grad * gv.cos(x) * 1.001)

    with pytest.raises(GradcheckError, match="finite differences give"):
        gradcheck(wrong, [leaf(4)])


def test_gradients_that_changed_places_are_found():
    swapped = binary(
        "SwappedBackward0",
        np.multiply,
        x=lambda grad, x: grad * x,
        y=lambda grad, y: grad * y,
    )

    with pytest.raises(GradcheckError):
        gradcheck(swapped, [leaf(4), leaf(4) * 2])


def test_a_missing_gradient_is_found():
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: x.detach() * x, [leaf(3)])


def test_inputs_without_gradients_are_left_alone():
    assert gradcheck(lambda x, n: x * n, [leaf(2), gv.tensor([2, 3])])


def test_too_few_digits_are_an_error():
    with pytest.raises(ValueError, match="needs float64 inputs"):
        gradcheck(gv.sin, [gv.ones(1, requires_grad=True)])
