"""Optimizers of parameters that other workers have, under PyTorch's names."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradviz import optim
from gradviz.distributed import autograd, rpc
from gradviz.distributed.messaging.future import Future
from gradviz.distributed.messaging.registry import function_named, name_of_function


class DistributedOptimizer:
    """Changes parameters where they are, by the gradients of an autograd context.

    Each worker that has some of them gets an optimizer for those, in the order given.
    Steps, of whichever optimizers, follow each other on a worker; there is no order
    among workers. No ``.grad`` is changed or read.

    Args:
        optimizer_class: One of `gradviz.optim`, or one of your own that all workers
            know: put ``@rpc.register`` before it.
        params_rref: References to parameters.
        *args: Arguments of each optimizer after its parameters.
        **kwargs: The same, by name.

    Attributes:
        remote_optimizers: References to them, one a worker.

    Raises:
        ValueError: There are no parameters.
        RemoteError: An optimizer refuses what it is given; a `ValueError` of its is one
            here, too.
        UserError: Something cannot be sent.
        RpcError: A worker does not answer.

    Source: torch/distributed/optim/optimizer.py, DistributedOptimizer.
    Differs: Without parameters it is refused, and a parameter that has no gradient in
        the context is left alone by any optimizer, whatever its ``.grad``.
    """

    def __init__(
        self,
        optimizer_class: Callable[..., optim.Optimizer],
        params_rref: Iterable[rpc.RRef],
        *args: object,
        **kwargs: object,
    ) -> None:
        name = name_of_function(optimizer_class)
        of_worker: defaultdict[int, list[rpc.RRef]] = defaultdict(list)
        for rref in params_rref:
            of_worker[rref.owner_rank].append(rref)
        if not of_worker:
            raise ValueError("optimizer got an empty parameter list")
        self.remote_optimizers = [
            rpc.remote(owner, _new_local_optimizer, (name, rrefs, args, kwargs))
            for owner, rrefs in of_worker.items()
        ]
        _wait_for_all([one.created for one in self.remote_optimizers if one.created])

    def step(self, context_id: int) -> None:
        """Make a step on each worker that has parameters, and wait for all of them.

        If one fails, others may have made theirs.

        Args:
            context_id: Id of the context whose gradients count.

        Raises:
            RuntimeError: There is no such context.
            RemoteError: A step has failed.
            RpcError: A worker does not answer.
        """
        rpc.current_worker().container.retrieve_context(context_id)
        _wait_for_all(
            [
                rpc.rpc_async(one.owner_rank, _local_optimizer_step, (one, context_id))
                for one in self.remote_optimizers
            ]
        )


class _LocalOptimizer:
    """One worker's part of a distributed optimizer."""

    def __init__(self, optimizer: optim.Optimizer) -> None:
        self._optimizer = optimizer

    def step(self, context_id: int) -> None:
        gradients = autograd.get_gradients(context_id)
        groups = self._optimizer.param_groups
        parameters = [one for group in groups for one in group["params"]]
        # The optimizer's own code runs under this lock: that one step follows the
        # other is what it is for, and nothing else ever takes it.
        with rpc.current_worker().step_mutex:
            before = [one.grad for one in parameters]
            try:
                for one in parameters:
                    one.grad = gradients.get(one)
                self._optimizer.step()
            finally:
                for one, grad in zip(parameters, before, strict=True):
                    one.grad = grad


@rpc.register
def _new_local_optimizer(
    optimizer_class: str,
    params_rref: Sequence[rpc.RRef],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> _LocalOptimizer:
    found = function_named(optimizer_class)
    if not (isinstance(found, type) and issubclass(found, optim.Optimizer)):
        raise TypeError(f"{optimizer_class} is not a class of optimizers")
    parameters = [one.local_value() for one in params_rref]
    optimizer = found(parameters, *args, **kwargs)
    return _LocalOptimizer(optimizer)


@rpc.register
def _local_optimizer_step(optimizer: rpc.RRef, context_id: int) -> None:
    local: _LocalOptimizer = optimizer.local_value()
    local.step(context_id)


def _wait_for_all(futures: Sequence[Future[Any]]) -> None:
    """Wait for all, then raise the error of the first that has one."""
    for future in futures:
        future.settled()
    for future in futures:
        future.value()


for _name in optim.__all__:
    if isinstance(_class := getattr(optim, _name), type):
        rpc.register(_class)

__all__ = ["DistributedOptimizer"]
