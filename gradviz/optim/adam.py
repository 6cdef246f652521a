"""Adam, and Adam with weights that decay on their own."""

import math
from typing import Any, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import Implementation, check_adam
from gradviz.optim.running import kept, moved, next_step
from gradviz.optim.state import Group


class Adam(Optimizer):
    """Steps scaled by the mean and the spread of recent gradients (Kingma & Ba, 2015).

    Args:
        params: See `Optimizer`.
        lr: Learning rate.
        betas: Fractions of the mean, and of the mean square, that are kept at each
            step.
        eps: Is added to the spread.
        weight_decay: Fraction of the parameter that is added to its gradient.
        amsgrad: True if the largest spread so far counts (Reddi et al., 2018).
        maximize: True if steps go up instead of down.
        decoupled_weight_decay: True if the parameter decays apart from its gradient.
        **implementation: See `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/adam.py, _single_tensor_adam.
    """

    _implementation = ("foreach", "capturable", "differentiable", "fused")

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
        **implementation: Unpack[Implementation],
    ) -> None:
        check_adam(lr, betas, eps, weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
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
        if group["amsgrad"]:
            largest = kept(state, "max_exp_avg_sq", x)
            np.maximum(largest, square, out=largest)
            square = largest
        spread = np.sqrt(square) / math.sqrt(1 - beta2**step) + group["eps"]
        return (group["lr"] / (1 - beta1**step)) * (mean / spread)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019).

    The arguments are those of `Adam`.
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
        **implementation: Unpack[Implementation],
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
            **implementation,
        )
