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
