import itertools
import math

import numpy as np
import pytest

import gradviz as gv
from gradviz.autograd import grad, gradcheck
from gradviz.nn.functional import ctc_loss

RANDOM = np.random.default_rng(0)


def logits(*shape):
    return gv.tensor(RANDOM.normal(size=shape)).requires_grad_()


def by_counting(log_probs, target):
    """The loss, by looking at every path there is."""
    times, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=times):
        merged = [label for label, _ in itertools.groupby(path)]
        if [label for label in merged if label] == target:
            total += math.exp(sum(log_probs[t, label] for t, label in enumerate(path)))
    return -math.log(total)


@pytest.mark.parametrize("target", [[], [1], [1, 2], [2, 2], [1, 2, 1]])
def test_the_loss_is_that_of_all_paths(target):
    log_probs = logits(5, 3).log_softmax(1).detach()

    loss = ctc_loss(
        log_probs, gv.tensor(target).long(), (5,), (len(target),), reduction="sum"
    )

    assert loss.item() == pytest.approx(by_counting(log_probs.numpy(), target))


def test_gradients_are_right_for_what_went_into_a_log_softmax():
    targets = gv.tensor([[1, 2, 2], [3, 1, 1]])

    def loss(x):
        return ctc_loss(x.log_softmax(2), targets, (7, 5), (3, 2))

    assert gradcheck(loss, [logits(7, 2, 4)])


def test_a_target_that_does_not_fit_can_be_left_out():
    x = logits(2, 1, 3)

    loss = ctc_loss(
        x.log_softmax(2), gv.tensor([[1, 1]]), (2,), (2,), zero_infinity=True
    )
    loss.backward()

    assert loss.item() == 0
    assert not x.grad.numpy().any()


def test_a_gradient_of_the_gradient_is_refused_as_in_pytorch():
    x = logits(4, 1, 3)
    loss = ctc_loss(x, gv.tensor([[1, 2]]), (4,), (2,))
    (first,) = grad(loss, x, create_graph=True)

    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        first.sum().backward()
