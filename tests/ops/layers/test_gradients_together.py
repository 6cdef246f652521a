"""Gradients that one formula computes are those that each has by itself."""

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[1:], weight.expand(x.shape[1:]), bias.mT)


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight[0], bias[:, 0], training=True)


def batch_norm_by_running_statistics(x, weight, bias):
    mean, variance = gv.arange(6.0).double(), 1 + gv.arange(6.0).double()
    return F.batch_norm(x, mean, variance, weight[0], bias[:, 0])


def group_norm(x, weight, bias):
    return F.group_norm(x, 3, weight[0], bias[:, 0])


def attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def arrays(*shapes):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (layer_norm, [(3, 4, 6), (4, 6), (6, 4)]),
        (layer_norm, [(300, 4, 6), (4, 6), (6, 4)]),
        (batch_norm, [(4, 6, 3, 2), (1, 6), (6, 1)]),
        (batch_norm, [(40, 6, 7, 5), (1, 6), (6, 1)]),
        (batch_norm, [(400, 6), (1, 6), (6, 1)]),
        (batch_norm_by_running_statistics, [(4, 6, 3), (1, 6), (6, 1)]),
        (group_norm, [(4, 6, 3, 2), (1, 6), (6, 1)]),
        (group_norm, [(40, 6, 7, 5), (1, 6), (6, 1)]),
        (attention, [(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)]),
        (attention, [(2, 3, 40, 4), (2, 3, 60, 4), (2, 3, 60, 4)]),
    ],
)
def test_gradients_together_are_those_of_each_by_itself(function, shapes):
    given = arrays(*shapes)

    def gradients(wanted):
        inputs = [
            gv.tensor(one).requires_grad_(i in wanted) for i, one in enumerate(given)
        ]
        result = function(*inputs)
        result.backward(
            gv.tensor(np.random.default_rng(1).standard_normal(result.shape))
        )
        return [None if one.grad is None else one.grad.numpy() for one in inputs]

    together = gradients({0, 1, 2})

    for i in range(3):
        np.testing.assert_allclose(together[i], gradients({i})[i], atol=1e-12)
        for wanted in ({0, 1}, {0, 2}, {1, 2}):
            if i in wanted:
                np.testing.assert_allclose(
                    gradients(wanted)[i], together[i], atol=1e-12
                )


def test_a_gradient_of_statistics_is_added_to_that_of_the_result():
    x, weight, bias = (
        gv.tensor(one).requires_grad_() for one in arrays((50, 8), (8,), (8,))
    )

    def gradients(*factors):
        results = gv.native_layer_norm(x, [8], weight, bias, 1e-5)
        loss = sum(
            factor * (one * one).sum()
            for factor, one in zip(factors, results, strict=True)
        )
        return gv.autograd.grad(loss, [x, weight, bias], allow_unused=True)

    both, first, others = gradients(1, 1, 1), gradients(1, 0, 0), gradients(0, 1, 1)

    for total, *parts in zip(both, first, others, strict=True):
        np.testing.assert_allclose(
            total.numpy(), sum(one.numpy() for one in parts), atol=1e-9
        )


def test_a_backward_to_some_inputs_computes_these_alone():
    inputs = [gv.tensor(one).requires_grad_() for one in arrays((50, 8), (8,), (8,))]
    result = F.layer_norm(inputs[0], [8], *inputs[1:])
    seed = gv.ones_like(result)

    everything = gv.autograd.grad(result, inputs, seed, retain_graph=True)

    for one, expected in zip(inputs, everything, strict=True):
        (alone,) = gv.autograd.grad(result, [one], seed, retain_graph=True)
        np.testing.assert_array_equal(alone.numpy(), expected.numpy())
