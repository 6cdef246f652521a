"""Optimizers that scale steps by the size of past gradients."""

from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import check_not_negative
from gradviz.optim.running import kept, moved, next_step
from gradviz.optim.state import Group


class RMSprop(Optimizer):
    """Steps divided by the root mean square of recent gradients.

    Args:
        params: See `Optimizer`.
        lr: Step size.
        alpha: Part of the mean square that is kept at each step.
        eps: Is added to its root.
        weight_decay: Part of the parameter that is added to its gradient.
        momentum: Part of the direction that is kept from one step to the next.
        centered: True if the mean is subtracted from the gradients.
        maximize: True if steps go up instead of down.
        foreach: Makes no difference; see `Implementation`.
        differentiable: Must be False; see `Implementation`.
        capturable: Makes no difference; see `Implementation`.

    Raises:
        ValueError: An option is negative.

    Source: torch/optim/rmsprop.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_not_negative("learning rate", lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        defaults = {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
            **self.options_of(
                {
                    "foreach": foreach,
                    "differentiable": differentiable,
                    "capturable": capturable,
                }
            ),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        alpha = group["alpha"]
        next_step(state)
        square = moved(kept(state, "square_avg", x), grad * grad, alpha)
        if group["centered"]:
            mean = moved(kept(state, "grad_avg", x), grad, alpha)
            square = square - mean * mean
        step = grad / (np.sqrt(square) + group["eps"])
        if group["momentum"]:
            direction = kept(state, "momentum_buffer", x)
            direction *= group["momentum"]
            direction += step
            step = direction
        return group["lr"] * step


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients.

    Args:
        params: See `Optimizer`.
        lr: Step size.
        lr_decay: Rate at which steps become shorter besides.
        weight_decay: Part of the parameter that is added to its gradient.
        initial_accumulator_value: Initial value of the sum.
        eps: Is added to its root.
        maximize: True if steps go up instead of down.
        foreach: Makes no difference; see `Implementation`.
        differentiable: Must be False; see `Implementation`.
        fused: Makes no difference; see `Implementation`.

    Raises:
        ValueError: An option is negative.

    Source: torch/optim/adagrad.py.
    """

    _implementation = ("foreach", "differentiable", "fused")

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_not_negative("learning rate", lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "eps": eps,
            "maximize": maximize,
            **self.options_of(
                {"foreach": foreach, "differentiable": differentiable, "fused": fused}
            ),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        step = next_step(state)
        is_first = "sum" not in state
        total = kept(state, "sum", x)
        if is_first:
            total += group["initial_accumulator_value"]
        total += grad * grad
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        return rate * grad / (np.sqrt(total) + group["eps"])


class Adadelta(Optimizer):
    """Steps divided by the size of gradients, times that of steps (Zeiler, 2012).

    Args:
        params: See `Optimizer`.
        lr: Step size.
        rho: Part of the mean squares that is kept at each step.
        eps: Is added to them.
        weight_decay: Part of the parameter that is added to its gradient.
        maximize: True if steps go up instead of down.
        foreach: Makes no difference; see `Implementation`.
        differentiable: Must be False; see `Implementation`.
        capturable: Makes no difference; see `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/adadelta.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative("learning rate", lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative("epsilon value", eps)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            **self.options_of(
                {
                    "foreach": foreach,
                    "differentiable": differentiable,
                    "capturable": capturable,
                }
            ),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        rho, eps = group["rho"], group["eps"]
        next_step(state)
        square = moved(kept(state, "square_avg", x), grad * grad, rho)
        steps = kept(state, "acc_delta", x)
        step = np.sqrt(steps + eps) / np.sqrt(square + eps) * grad
        moved(steps, step * step, rho)
        return group["lr"] * step
