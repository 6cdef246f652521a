"""The gradient of a transpose."""

import numpy as np

import gradviz as gv
from gradviz.trace.events import GradientAccumulated
from gradviz.trace.probe import How


def test_a_layer_keeps_the_gradient_of_its_weight_without_copying_it():
    x = gv.arange(6.0).reshape(2, 3)
    weight, bias = gv.ones(4, 3).requires_grad_(), gv.zeros(4).requires_grad_()
    result = gv.nn.functional.linear(x, weight, bias)

    with gv.record() as trace:
        result.backward(gv.arange(8.0).reshape(2, 4))

    told = [one.how for one in trace.events() if isinstance(one, GradientAccumulated)]
    assert told == [How.STOLEN, How.STOLEN]
    np.testing.assert_array_equal(
        weight.grad.numpy(),
        np.arange(8.0).reshape(2, 4).T @ np.arange(6.0).reshape(2, 3),
    )


def test_a_gradient_that_the_program_holds_is_copied():
    weight = gv.ones(2, 3).requires_grad_()
    seed = gv.arange(6.0).reshape(2, 3)

    weight.t().backward(seed.t())
    weight.grad += 1

    np.testing.assert_array_equal(seed.numpy(), np.arange(6.0).reshape(2, 3))
