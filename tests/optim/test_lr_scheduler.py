import warnings

import pytest

import gradviz as gv
from gradviz.optim import SGD
from gradviz.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, StepLR
from tests.optim.rates import rates


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
    other_optimizer = SGD(optimizer.param_groups[0]["params"], lr=1.0)
    other = CosineAnnealingLR(other_optimizer, T_max=3)

    other.load_state_dict(scheduler.state_dict())
    other_optimizer.load_state_dict(optimizer.state_dict())

    assert rates(other_optimizer, other, 3) == rates(optimizer, scheduler, 3)


def test_a_rate_changed_by_hand_stays_changed(optimizer):
    scheduler = StepLR(optimizer, 2, gamma=0.5)
    optimizer.param_groups[0]["lr"] = 8.0

    assert rates(optimizer, scheduler, 4) == [8, 8, 4, 4]


def test_the_epoch_is_deprecated_and_computes_the_rate_anew(optimizer):
    scheduler = StepLR(optimizer, 2, gamma=0.5)
    optimizer.param_groups[0]["lr"] = 8.0
    optimizer.step()

    with pytest.warns(UserWarning, match="The epoch parameter"):
        scheduler.step(4)

    assert scheduler.get_last_lr() == [0.25]


def test_get_lr_warns_to_call_get_last_lr(optimizer):
    with pytest.warns(UserWarning, match="get_last_lr"):
        StepLR(optimizer, 2).get_lr()


def test_an_optimizer_with_a_step_of_its_own_is_trusted(optimizer):
    class Own(SGD):
        def step(self, closure=None):
            pass

    scheduler = StepLR(Own(optimizer.param_groups[0]["params"]), 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()


def test_a_function_is_not_in_the_state_but_an_object_is(optimizer):
    class Half:
        def __init__(self):
            self.share = 0.5

        def __call__(self, step):
            return self.share

    optimizer.add_param_group({"params": [gv.tensor([1.0], requires_grad=True)]})
    half = Half()
    scheduler = LambdaLR(optimizer, [half, lambda _: 1.0])
    state = scheduler.state_dict()
    half.share = 0.25

    scheduler.load_state_dict(state)

    assert state["lr_lambdas"] == [{"share": 0.5}, None]
    assert half.share == 0.5


def test_resuming_needs_the_first_rate(optimizer):
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified"):
        StepLR(optimizer, 2, last_epoch=5)
    StepLR(optimizer, 2)

    assert StepLR(optimizer, 2, last_epoch=5).get_last_lr() == [0.1]


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
        (LRScheduler, NotImplementedError, "^$"),
    ],
)
def test_invalid_arguments_are_refused(optimizer, make, error, words):
    with pytest.raises(error, match=words):
        make(optimizer)
