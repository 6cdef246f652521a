"""Normalization besides values: running statistics, precision."""

import numpy as np
import pytest

import gradviz as gv

F = gv.nn.functional

DATA = gv.tensor([[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]])


def test_training_moves_the_running_statistics_towards_those_of_the_batch():
    mean, variance = gv.zeros(2), gv.ones(2)

    F.batch_norm(DATA, mean, variance, training=True, momentum=0.5)

    np.testing.assert_allclose(mean.numpy(), [1.5, 1.5])
    np.testing.assert_allclose(variance.numpy(), [2.5, 4.0])  # of a sample: n - 1


def test_evaluation_leaves_them_alone():
    mean, variance = gv.zeros(2), gv.ones(2)

    result = F.batch_norm(DATA, mean, variance, eps=0)

    assert mean.tolist() == [0, 0]
    assert variance.tolist() == [1, 1]
    np.testing.assert_array_equal(result.numpy(), DATA.numpy())


def test_instance_norm_averages_its_statistics_over_samples():
    x = gv.tensor([[[1.0, 3.0]], [[5.0, 9.0]]])
    mean, variance = gv.zeros(1), gv.ones(1)

    F.instance_norm(x, mean, variance, momentum=1.0)

    assert mean.tolist() == [4.5]
    np.testing.assert_allclose(variance.numpy(), [5.0], rtol=1e-6)


@pytest.mark.parametrize("shape", [(8,), (2, 8)])
def test_half_precision_is_computed_in_single_precision(shape):
    x = gv.full((3, *shape), 300.0, dtype=gv.float16)
    x[0] = 0.0

    result = F.layer_norm(gv.cat([x, x + 1], -1), (16,))

    assert result.dtype == gv.float16
    assert bool(gv.isfinite(result).all())


def test_a_batch_without_samples_is_normalised_to_one_without():
    mean, variance = gv.zeros(3), gv.ones(3)

    result = F.batch_norm(gv.ones(0, 3, 4), mean, variance, training=True)

    assert result.shape == (0, 3, 4)
    assert mean.tolist() == [0, 0, 0]


def test_layer_norm_of_many_rows_is_that_of_each_part_of_them():
    drawn = np.random.default_rng(0)
    given = [
        drawn.standard_normal(shape) for shape in ((1000, 8, 50), (8, 50), (8, 50))
    ]
    grad = gv.tensor(drawn.standard_normal((1000, 8, 50)))

    def gradients(rows):
        x, weight, bias = [gv.tensor(one, requires_grad=True) for one in given]
        result = F.layer_norm(x[rows], (8, 50), weight, bias)
        found = gv.autograd.grad(result, (x, weight, bias), grad[rows])
        return [result.detach().numpy(), *[one.numpy() for one in found]]

    together = gradients(slice(None))
    parts = [gradients(slice(start, start + 100)) for start in range(0, 1000, 100)]

    result, *sums = zip(*parts, strict=True)
    np.testing.assert_allclose(together[0], np.concatenate(result), rtol=1e-11)
    for one, several in zip(together[1:], sums, strict=True):
        np.testing.assert_allclose(one, np.sum(several, axis=0), rtol=1e-9, atol=1e-11)
