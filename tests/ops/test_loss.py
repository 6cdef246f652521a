import math

import numpy as np
import pytest

import gradviz as gv

SCORES = gv.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


def test_cross_entropy_is_the_logarithm_of_the_right_classes_share():
    losses = gv.cross_entropy(SCORES, gv.tensor([1, 2]), reduction="none")

    share = math.exp(2) / (math.exp(1) + math.exp(2) + math.exp(0))
    np.testing.assert_allclose(losses.numpy(), [-math.log(share), math.log(3)], 1e-6)


def test_large_scores_do_not_overflow():
    loss = gv.cross_entropy(gv.tensor([[1e4, 0.0]]), gv.tensor([1]))

    assert loss.item() == 1e4


def test_an_ignored_sample_counts_neither_above_nor_below_the_line():
    scores = gv.cat([SCORES, gv.full((1, 3), -math.inf)])
    all_three = gv.nll_loss(scores, gv.tensor([1, 2, -100]))
    two = gv.nll_loss(SCORES, gv.tensor([1, 2]))

    assert all_three.item() == two.item()


def test_classes_are_weighted():
    loss = gv.nll_loss(SCORES, gv.tensor([1, 0]), gv.tensor([1.0, 3.0, 1.0]))

    assert loss.item() == pytest.approx((3 * -2.0 + 0.0) / 4)


@pytest.mark.parametrize("target", [3, -1])
def test_a_target_that_is_no_class_is_named(target):
    with pytest.raises(IndexError, match=rf"Target {target} is out of bounds\."):
        gv.cross_entropy(SCORES, gv.tensor([0, target]))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (gv.tensor([0]), r"but got \[2, 3\] and \[1\]"),
        (gv.tensor([0.0, 1.0]), "but got float32"),
    ],
)
def test_targets_of_the_wrong_shape_or_dtype_are_named(target, message):
    with pytest.raises(ValueError, match=message):
        gv.cross_entropy(SCORES, target)


def test_an_unknown_reduction_is_named():
    with pytest.raises(ValueError, match="median is not a valid value for reduction"):
        gv.cross_entropy(SCORES, gv.tensor([0, 1]), reduction="median")
