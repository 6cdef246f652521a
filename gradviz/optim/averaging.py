"""Gradient descent that also averages where it has been."""

from typing import Any

from gradviz.backends.base import Array
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import check_not_negative
from gradviz.optim.running import kept, next_step
from gradviz.optim.state import Group


class ASGD(Optimizer):
    """Steps that become shorter, and the mean of the parameters (Polyak & Juditsky).

    Args:
        params: See `Optimizer`.
        lr: Learning rate.
        lambd: Rate at which parameters decay, and steps become shorter.
        alpha: The power with which steps become shorter.
        t0: Step from which on the mean is taken.
        weight_decay: Share of the parameter that is added to its gradient.
        maximize: True if steps go up instead of down.
        foreach: Makes no difference; see `Implementation`.
        differentiable: Must be False; see `Implementation`.
        capturable: Makes no difference; see `Implementation`.

    Raises:
        ValueError: An option is negative.

    Source: torch/optim/asgd.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_not_negative("learning rate", lr)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
        rate, fade = group["lr"], group["lambd"]
        step = next_step(state)
        length, share = state.setdefault("eta", rate), state.setdefault("mu", 1.0)
        change = length * (fade * x + grad)
        mean = kept(state, "ax", x)
        mean += share * (x - change - mean)
        state["eta"] = rate / (1 + fade * rate * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
        return change
