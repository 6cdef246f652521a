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


def test_targets_that_are_no_classes_are_refused():
    with pytest.raises(RuntimeError, match="to be Long or Byte, but got Float"):
        gv.cross_entropy(SCORES, gv.tensor([0.0, 1.0]))


def test_an_unknown_reduction_is_named():
    with pytest.raises(ValueError, match="median is not a valid value for reduction"):
        gv.cross_entropy(SCORES, gv.tensor([0, 1]), reduction="median")


def test_the_old_names_of_a_reduction_are_understood():
    target = gv.tensor([1, 2])
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        total = gv.cross_entropy(SCORES, target, size_average=False)

    assert total.item() == gv.cross_entropy(SCORES, target, reduction="sum").item()


def test_shapes_that_only_broadcast_are_warned_of():
    with pytest.warns(UserWarning, match=r"target size \(torch.Size\(\[3\]\)\)"):
        loss = gv.mse_loss(SCORES, gv.zeros(3))

    assert loss.item() == pytest.approx(5 / 6)


def test_the_mean_of_a_divergence_is_warned_of():
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch"):
        gv.nn.functional.kl_div(SCORES, SCORES)


def test_all_samples_ignored_leave_no_mean():
    loss = gv.cross_entropy(SCORES, gv.tensor([-100, -100]))

    assert math.isnan(loss.item())


def test_certainty_of_the_wrong_class_has_a_finite_loss():
    loss = gv.nn.functional.binary_cross_entropy(gv.tensor([0.0]), gv.tensor([1.0]))

    assert loss.item() == 100


def test_scores_beyond_all_exponentials_have_a_finite_loss():
    loss = gv.nn.functional.binary_cross_entropy_with_logits(
        gv.tensor([1e4, -1e4]), gv.tensor([0.0, 0.0]), reduction="none"
    )

    assert loss.tolist() == [1e4, 0]


def test_a_variance_that_is_too_small_gets_its_whole_gradient():
    variance = gv.tensor([0.0], requires_grad=True)

    loss = gv.nn.functional.gaussian_nll_loss(
        gv.zeros(1), gv.zeros(1), variance, eps=0.5
    )
    loss.backward()

    assert variance.grad.tolist() == [1.0]  # as if it were 0.5


def test_a_negative_variance_is_refused():
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        gv.nn.functional.gaussian_nll_loss(gv.zeros(1), gv.zeros(1), gv.tensor([-1.0]))
