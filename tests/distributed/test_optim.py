import numpy as np
import pytest

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc
from gradviz.distributed.optim import DistributedOptimizer
from gradviz.testing.scheduler import sleep
from tests.distributed.called import leaf
from tests.distributed.company import Company, idle


@rpc.register
def new_parameter(*numbers):
    return leaf(*numbers)


@rpc.register
def times(parameter, x):
    return parameter.local_value() * x


@rpc.register
def grad_of(parameter):
    return parameter.local_value().grad


@rpc.register
def set_grad(parameter, *numbers):
    parameter.local_value().grad = gv.tensor([float(one) for one in numbers])


def parameters_on(*workers, numbers=(1, 2)):
    return [rpc.remote(one, new_parameter, numbers) for one in workers]


def values(*rrefs):
    return [one.to_here().tolist() for one in rrefs]


def loss_of(rrefs, x=3.0):
    """On each worker its parameter times x; squared and added here."""
    x = gv.tensor([x, -x])
    parts = [rpc.rpc_sync(one.owner_rank, times, (one, x)) for one in rrefs]
    return sum((part * part).sum() for part in parts)


def stepped(optimizer_class, rrefs, *args, steps=3, **kwargs):
    """The parameters after some steps."""
    optimizer = DistributedOptimizer(optimizer_class, rrefs, *args, **kwargs)
    for _ in range(steps):
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [loss_of(rrefs)])
            optimizer.step(context_id)
    return values(*rrefs)


def stepped_here(optimizer_class, *args, steps=3, **kwargs):
    """The same of one worker, without any distribution."""
    parameter = leaf(1, 2)
    optimizer = optimizer_class([parameter], *args, **kwargs)
    for _ in range(steps):
        optimizer.zero_grad()
        ((parameter * gv.tensor([3.0, -3.0])) ** 2).sum().backward()
        optimizer.step()
    return parameter.tolist()


@rpc.register
class Halves(gv.optim.Optimizer):
    """An optimizer of a test: a step takes away half of each parameter."""

    def __init__(self, params, words=""):
        if words:
            raise ValueError(words)
        super().__init__(params, {})

    def update(self, x, grad, group, state):
        return x / 2


@rpc.register
class Refuses(gv.optim.Optimizer):
    """An optimizer of a test, whose steps fail on worker 1."""

    def __init__(self, params):
        super().__init__(params, {})

    def update(self, x, grad, group, state):
        if rpc.get_worker_info().id == 1:
            raise ValueError("Error running optimizer.")
        return x


@pytest.mark.parametrize(
    ("optimizer_class", "options"),
    [
        (gv.optim.SGD, {"lr": 0.05}),
        (gv.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
        (gv.optim.Adam, {"lr": 1e-2, "betas": (0.8, 0.9), "amsgrad": True}),
        (gv.optim.AdamW, {"lr": 1e-2}),
        (gv.optim.Adagrad, {"lr": 0.05}),
        (gv.optim.Adadelta, {"rho": 0.95}),
        (gv.optim.RMSprop, {"lr": 0.05}),
        (gv.optim.Adamax, {"lr": 0.05}),
        (gv.optim.Rprop, {"lr": 0.05}),
    ],
)
def test_steps_on_several_workers_are_those_of_an_optimizer_here(
    optimizer_class, options
):
    def program():
        found = stepped(optimizer_class, parameters_on(0, 1, 2), **options)
        assert found == [stepped_here(optimizer_class, **options)] * 3

    Company(0).run(program, idle, idle)


def test_parameters_of_one_worker_have_one_optimizer_in_their_order(company):
    def program():
        rrefs = parameters_on(1, 2, 1)
        optimizer = DistributedOptimizer(gv.optim.SGD, rrefs, 0.5)
        owners = [one.owner_rank for one in optimizer.remote_optimizers]
        assert owners == [1, 2]

    company.run(program, idle, idle)


def test_an_optimizer_of_one_s_own_is_known_by_its_name(company):
    def program():
        assert stepped(Halves, parameters_on(0, 1), steps=2) == [[0.25, 0.5]] * 2

    company.run(program, idle)


def test_a_step_changes_no_parameter_without_gradient_and_no_grad(company):
    def program():
        used, unused = rrefs = parameters_on(1, 1)
        for one in rrefs:
            rpc.rpc_sync(1, set_grad, (one, 7, 7))
        optimizer = DistributedOptimizer(gv.optim.SGD, rrefs, lr=0.5)
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [loss_of([used], x=1.0)])
            optimizer.step(context_id)
        assert values(used, unused) == [[0.0, 0.0], [1.0, 2.0]]
        for one in rrefs:
            assert rpc.rpc_sync(1, grad_of, (one,)).tolist() == [7.0, 7.0]

    company.run(program, idle)


def test_the_error_of_a_constructor_reaches_the_caller(company):
    def program():
        with pytest.raises(ValueError, match=r"Error creating optimizer\."):
            DistributedOptimizer(
                Halves, parameters_on(0, 1), words="Error creating optimizer."
            )
        with pytest.raises(ValueError, match="Invalid learning rate"):
            DistributedOptimizer(gv.optim.SGD, parameters_on(1), lr=-1.0)
        with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
            DistributedOptimizer(gv.optim.SGD, [], lr=0.1)

    company.run(program, idle)


def test_the_error_of_a_step_reaches_the_caller_when_all_others_are_done(company):
    def program():
        rrefs = parameters_on(0, 1, 2)
        with pytest.raises(ValueError, match=r"Error running optimizer\."):
            stepped(Refuses, rrefs, steps=1)
        assert values(*rrefs) == [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]

    company.run(program, idle, idle)


def test_an_unknown_optimizer_is_refused(company):
    class Unknown(gv.optim.SGD):
        pass

    def program():
        with pytest.raises(TypeError, match=r"'.*Unknown' is not registered"):
            DistributedOptimizer(Unknown, parameters_on(1), lr=0.1)
        with pytest.raises(TypeError, match="times is not a class of optimizers"):
            DistributedOptimizer(times, parameters_on(1))

    company.run(program, idle)


def test_a_context_that_is_over_is_refused(company):
    def program():
        rrefs = parameters_on(1)
        optimizer = DistributedOptimizer(gv.optim.SGD, rrefs, lr=0.5)
        with dist_autograd.context() as context_id:
            pass
        with pytest.raises(
            RuntimeError, match=f"Could not find autograd context with id: {context_id}"
        ):
            optimizer.step(context_id)
        assert values(*rrefs) == [[1.0, 2.0]]

    company.run(program, idle)


UNDER_WAY = []


@rpc.register
class Watched(gv.optim.Optimizer):
    """An optimizer of a test that takes its time, and knows whether it is alone."""

    def __init__(self, params):
        super().__init__(params, {})

    def update(self, x, grad, group, state):
        assert not UNDER_WAY
        UNDER_WAY.append(self)
        sleep(0.1)
        UNDER_WAY.remove(self)
        return np.ones_like(x)


@rpc.register
def train(shared):
    optimizer = DistributedOptimizer(Watched, [shared])
    for _ in range(2):
        with dist_autograd.context() as context_id:
            dist_autograd.backward(context_id, [loss_of([shared])])
            optimizer.step(context_id)


def test_steps_of_several_optimizers_on_one_worker_follow_each_other(company):
    def program():
        (shared,) = parameters_on(0)
        trainers = [rpc.rpc_async(rank, train, (shared,)) for rank in (0, 1, 2)]
        for one in trainers:
            one.wait()
        assert values(shared) == [[-5.0, -4.0]]

    company.run(program, idle, idle)
