"""Relatives of Adam: with another norm, with Nesterov's momentum, rectified."""

import math
from typing import Any, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import (
    Implementation,
    check_adam,
    check_not_negative,
)
from gradviz.optim.running import kept, moved, next_step
from gradviz.optim.state import Group


class Adamax(Optimizer):
    """Adam with the largest of recent gradients in place of their spread.

    Args:
        params: See `Optimizer`.
        lr: Learning rate: the size of a step.
        betas: Parts of the mean, and of the largest, that are kept at each step.
        eps: Is added to the size of gradients.
        weight_decay: Part of the parameter that is added to its gradient.
        maximize: True if steps go up instead of down.
        foreach: Makes no difference; see `Implementation`.
        differentiable: Must be False; see `Implementation`.
        capturable: Makes no difference; see `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/adamax.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
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
        beta1, beta2 = group["betas"]
        step = next_step(state)
        mean = moved(kept(state, "exp_avg", x), grad, beta1)
        largest = kept(state, "exp_inf", x)
        largest *= beta2
        np.maximum(largest, np.abs(grad) + group["eps"], out=largest)
        return group["lr"] / (1 - beta1**step) * mean / largest


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
        params: See `Optimizer`.
        lr: Learning rate: the size of a step.
        betas: Parts of the mean, and of the mean square, that are kept at each step.
        eps: Is added to the spread.
        weight_decay: Part of the parameter that is added to its gradient.
        momentum_decay: Speed at which momentum reaches its full strength.
        decoupled_weight_decay: True if the parameter decays apart from its gradient.
        maximize: True if steps go up instead of down.
        **implementation: See `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/nadam.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        check_not_negative("momentum_decay value", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            **self.options_of(implementation),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        beta1, beta2 = group["betas"]
        step = next_step(state)
        momentum, coming = (
            beta1 * (1.0 - 0.5 * 0.96 ** (one * group["momentum_decay"]))
            for one in (step, step + 1)
        )
        product = state["mu_product"] = state.get("mu_product", 1.0) * momentum
        mean = moved(kept(state, "exp_avg", x), grad, beta1)
        square = moved(kept(state, "exp_avg_sq", x), grad * grad, beta2)
        spread = np.sqrt(square / (1 - beta2**step)) + group["eps"]
        now = (1.0 - momentum) / (1.0 - product) * grad
        ahead = coming / (1.0 - product * coming) * mean
        return group["lr"] * (now + ahead) / spread


class RAdam(Optimizer):
    """Adam that waits for enough gradients to know their spread (Liu et al., 2020).

    Args:
        params: See `Optimizer`.
        lr: Learning rate: the size of a step.
        betas: Parts of the mean, and of the mean square, that are kept at each step.
        eps: Is added to the spread.
        weight_decay: Part of the parameter that is added to its gradient.
        decoupled_weight_decay: True if the parameter decays apart from its gradient.
        maximize: True if steps go up instead of down.
        **implementation: See `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/radam.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            **self.options_of(implementation),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        beta1, beta2 = group["betas"]
        step = next_step(state)
        mean = moved(kept(state, "exp_avg", x), grad, beta1)
        square = moved(kept(state, "exp_avg_sq", x), grad * grad, beta2)
        correction = 1 - beta2**step
        change = group["lr"] * mean / (1 - beta1**step)
        # The number of gradients in the mean square, now and in the end.
        most = 2 / (1 - beta2) - 1
        length = most - 2 * step * beta2**step / correction
        if length > 5.0:
            rectified = math.sqrt(
                (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
            )
            spread = np.sqrt(square) + group["eps"]
            change = change * (math.sqrt(correction) * rectified) / spread
        return change
