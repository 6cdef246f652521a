import pytest

import gradviz as gv
from gradviz.optim import SGD
from gradviz.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    ExponentialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from tests.optim.rates import rates


def one_after_the_other(optimizer):
    warming = ConstantLR(optimizer, 0.5, total_iters=9)
    return SequentialLR(optimizer, [warming, ExponentialLR(optimizer, 0.5)], [2])


def test_schedulers_follow_each_other(optimizer):
    scheduler = one_after_the_other(optimizer)

    assert rates(optimizer, scheduler, 5) == [0.5, 0.5, 1, 0.5, 0.25]
    assert scheduler.get_last_lr() == [0.125]


def test_schedulers_work_on_top_of_each_other(optimizer):
    scheduler = ChainedScheduler(
        [ConstantLR(optimizer, 0.5, total_iters=2), ExponentialLR(optimizer, 0.5)]
    )

    assert rates(optimizer, scheduler, 4) == [0.5, 0.25, 0.25, 0.125]


def test_their_state_is_part_of_the_state(optimizer):
    scheduler = one_after_the_other(optimizer)
    rates(optimizer, scheduler, 3)
    state, options = scheduler.state_dict(), optimizer.state_dict()
    expected = rates(optimizer, scheduler, 3)
    other = one_after_the_other(optimizer)

    other.load_state_dict(state)
    optimizer.load_state_dict(options)

    assert rates(optimizer, other, 3) == expected


@pytest.mark.parametrize("kind", [SequentialLR, ChainedScheduler])
def test_schedulers_that_cannot_be_combined_are_refused(optimizer, kind):
    stranger = SGD([gv.tensor([1.0], requires_grad=True)], lr=1.0)

    def make(*schedulers):
        if kind is ChainedScheduler:
            return ChainedScheduler(schedulers, optimizer)
        return SequentialLR(optimizer, schedulers, [2] * (len(schedulers) - 1))

    with pytest.raises(ValueError, match="expects at least one scheduler"):
        make()
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        make(ReduceLROnPlateau(optimizer))
    with pytest.raises(ValueError, match="to belong to the same optimizer"):
        make(StepLR(stranger, 1))
    with pytest.raises(TypeError, match="should have `optimizer` as its attribute"):
        make("no scheduler")


def test_there_is_a_milestone_between_two_schedulers(optimizer):
    with pytest.raises(ValueError, match="one more than the number of milestone"):
        SequentialLR(optimizer, [StepLR(optimizer, 1)], [3])
