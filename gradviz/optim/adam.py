"""Adam, and Adam with weights that decay on their own."""

import math
from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.optim.optimizer import (
    Group,
    Optimizer,
    Parameters,
    check_not_negative,
    kept,
)


class Adam(Optimizer):
    """Steps scaled by the mean and the spread of recent gradients (Kingma & Ba, 2015).

    Args:
        params: See `Optimizer`.
        lr: How far to go.
        betas: How much of the mean, and of the mean square, is kept at each step.
        eps: Is added to the spread.
        weight_decay: How much of the parameter is added to its gradient.
        amsgrad: Whether the largest spread so far counts (Reddi et al., 2018).
        maximize: Whether to go up instead of down.
        decoupled_weight_decay: Whether the parameter decays apart from its gradient.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/adam.py, _single_tensor_adam.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_not_negative("learning rate", lr)
        check_not_negative("epsilon value", eps)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        decay = group["weight_decay"]
        if decay and not group["decoupled_weight_decay"]:
            grad = grad + decay * x
        beta1, beta2 = group["betas"]
        step = state["step"] = int(state.get("step", 0)) + 1
        mean = kept(state, "exp_avg", x)
        mean *= beta1
        mean += (1 - beta1) * grad
        square = kept(state, "exp_avg_sq", x)
        square *= beta2
        square += (1 - beta2) * (grad * grad)
        if group["amsgrad"]:
            largest = kept(state, "max_exp_avg_sq", x)
            np.maximum(largest, square, out=largest)
            square = largest
        spread = np.sqrt(square) / math.sqrt(1 - beta2**step) + group["eps"]
        change = (group["lr"] / (1 - beta1**step)) * (mean / spread)
        if decay and group["decoupled_weight_decay"]:
            # The parameter decays first, and what Adam does comes on top of that.
            change = change + group["lr"] * decay * x
        return change


class AdamW(Adam):
    """Adam whose weights decay apart from their gradients (Loshchilov & Hutter, 2019).

    Args:
        params: See `Adam`.
        lr: Likewise.
        betas: Likewise.
        eps: Likewise.
        weight_decay: Likewise.
        amsgrad: Likewise.
        maximize: Likewise.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            decoupled_weight_decay=True,
        )
