"""Functions that the workers of tests call."""

from typing import Any

import gradviz as gv
from gradviz.distributed import autograd as dist_autograd
from gradviz.distributed import rpc

#: Leaves of each worker of a test, by rank.
PARAMETERS: dict[int, list[Any]] = {}


@rpc.register
def add(x, y):
    return x + y


@rpc.register
def double(x, times=2):
    return x * times


@rpc.register
def same(*values, **named):
    return (values, named) if named else values


@rpc.register
def raise_value_error(text):
    raise ValueError(text)


@rpc.register
def add_on(workers, x, y):
    """Add on the last of several workers, each of which asks the next."""
    if not workers:
        return x + y
    first, *rest = workers
    return rpc.rpc_sync(first, add_on, (rest, x, y))


@rpc.register
def parameter(index=0):
    """A parameter of the worker that is asked."""
    return PARAMETERS[rpc.get_worker_info().id][index]


@rpc.register
def times_parameter(x, index=0):
    return x * parameter(index)


@rpc.register
def gradients_of_parameters(context_id):
    """Return the context's gradient of each parameter of the called worker."""
    found = dist_autograd.get_gradients(context_id)
    return [found.get(one) for one in PARAMETERS[rpc.get_worker_info().id]]


@rpc.register
def counts():
    return dist_autograd.debug_info()


class Fails(gv.autograd.Function):
    """A function whose backward raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("Simulate error on backward pass")


@rpc.register
def failing(x):
    return Fails.apply(x)


@rpc.register
def failing_on(workers, x):
    """Fail in the backward of the last of several workers."""
    if not workers:
        return failing(x)
    first, *rest = workers
    return rpc.rpc_sync(first, failing_on, (rest, x))


def leaf(*numbers):
    return gv.tensor([float(one) for one in numbers], requires_grad=True)
