"""Steps that look only at the signs of gradients."""

from typing import Any, Unpack

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.variables.variable import variable
from gradviz.optim.optimizer import Optimizer, Parameters
from gradviz.optim.options import Implementation, check_not_negative
from gradviz.optim.running import kept, next_step
from gradviz.optim.state import Group


class Rprop(Optimizer):
    """Steps that grow while a gradient keeps its sign (Riedmiller & Braun, 1993).

    Args:
        params: See `Optimizer`.
        lr: The first step.
        etas: Factors of a step when the sign changes, and when it does not.
        step_sizes: The shortest and the longest step.
        maximize: True if steps go up instead of down.
        **implementation: See `Implementation`.

    Raises:
        ValueError: An option is out of range.

    Source: torch/optim/rprop.py.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        maximize: bool = False,
        **implementation: Unpack[Implementation],
    ) -> None:
        check_not_negative("learning rate", lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "maximize": maximize,
            **self.options_of(implementation),
        }
        super().__init__(params, defaults)

    def update(
        self, x: Array, grad: Array, group: Group, state: dict[str, Any]
    ) -> Array:
        """See `Optimizer.update`."""
        next_step(state)
        before = kept(state, "prev", x)
        if "step_size" not in state:
            state["step_size"] = variable(np.full_like(x, group["lr"]))
        size = state["step_size"].array
        agreement = np.sign(grad * before)
        shrink, grow = group["etas"]
        size *= np.where(
            agreement > 0, grow, np.where(agreement < 0, shrink, 1.0)
        ).astype(size.dtype)
        np.clip(size, *group["step_sizes"], out=size)
        # Where the sign has changed, one step is left out.
        grad = np.where(agreement < 0, 0, grad).astype(grad.dtype)
        before[...] = grad
        return np.sign(grad) * size
