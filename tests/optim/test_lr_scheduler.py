import warnings

import pytest

import gradviz as gv
from gradviz.optim import SGD
from gradviz.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, StepLR


@pytest.fixture
def optimizer():
    return SGD([gv.tensor([1.0], requires_grad=True)], lr=1.0)


def rates(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def test_the_rate_falls_in_steps(optimizer):
    assert rates(optimizer, StepLR(optimizer, 2, gamma=0.5), 5) == [
        1,
        1,
        0.5,
        0.5,
        0.25,
    ]


def test_the_first_rate_is_set_at_once(optimizer):
    scheduler = LambdaLR(optimizer, lambda step: 0.5 + step)

    assert scheduler.get_last_lr() == [0.5]


def test_a_scheduler_goes_on_where_it_was(optimizer):
    scheduler = CosineAnnealingLR(optimizer, T_max=10)
    rates(optimizer, scheduler, 4)
    other = CosineAnnealingLR(SGD(optimizer.param_groups[0]["params"], lr=1.0), T_max=3)

    other.load_state_dict(scheduler.state_dict())
    scheduler.optimizer.step()
    other.optimizer.step()
    scheduler.step()
    other.step()

    assert other.get_last_lr() == scheduler.get_last_lr()


def test_resuming_needs_the_first_rate(optimizer):
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified"):
        StepLR(optimizer, 2, last_epoch=5)
    StepLR(optimizer, 2)

    assert StepLR(optimizer, 2, last_epoch=5).get_last_lr() == [0.1**3]


def test_stepping_before_the_optimizer_is_warned_of(optimizer):
    scheduler = StepLR(optimizer, 1)

    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda _: StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda one: LambdaLR(one, [abs, abs]), ValueError, "Expected 1 lr_lambdas"),
        (LRScheduler, NotImplementedError, "does not define factor"),
    ],
)
def test_what_makes_no_sense_is_refused(optimizer, make, error, words):
    with pytest.raises(error, match=words):
        make(optimizer)
