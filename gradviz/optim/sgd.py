"""Stochastic gradient descent."""

from typing import Any, Unpack

from gradviz.backends.base import Array
from gradviz.ops.variables.variable import variable
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import Implementation, check_not_negative
from gradviz.optim.state import Group


class SGD(Optimizer):
    """A step against the gradient, with momentum.

    Args:
        params: See `Optimizer`.
        lr: Learning rate: the length of a step.
        momentum: Fraction of the direction that is kept from one step to the next.
        dampening: Fraction by which the gradient counts less in it.
        weight_decay: Fraction of the parameter that is added to its gradient.
        nesterov: True if it looks ahead along the direction.
        maximize: True if it goes up instead of down.
        **implementation: See `Implementation`.

    Raises:
        ValueError: An option is negative, or `nesterov` has no momentum.

    Source: torch/optim/sgd.py.
    """

    _implementation = ("foreach", "differentiable", "fused")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        check_not_negative("learning rate", lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            **self.options_of(implementation),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        del x
        momentum = group["momentum"]
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:  # at first it is the gradient, whatever the dampening
                direction = grad.copy()
                state["momentum_buffer"] = variable(direction)
            else:
                direction = buffer.array
                direction *= momentum
                direction += (1 - group["dampening"]) * grad
            grad = grad + momentum * direction if group["nesterov"] else direction
        return group["lr"] * grad
