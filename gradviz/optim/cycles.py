"""Learning rates that go up and down, and momentum that goes the other way."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.schedule import LRScheduler, check_optimizer, each_group
from gradviz.optim.state import Group

Numbers = float | list[float]


class Cycle(LRScheduler):
    """Base of the schedulers that may also change momentum.

    Attributes:
        cycle_momentum: True if they change momentum, too.
    """

    cycle_momentum: bool

    def _start_momentum(self, lowest: Numbers, highest: Numbers, is_new: bool) -> None:
        """Set the first momentum of each group, and the bounds of its moves.

        Raises:
            ValueError: The optimizer has no momentum.
        """
        if not self.cycle_momentum:
            return
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option "
                "enabled"
            )
        self.use_beta1 = "betas" in defaults
        self.base_momentums = each_group("base_momentum", self.optimizer, lowest)
        self.max_momentums = each_group("max_momentum", self.optimizer, highest)
        if is_new:
            for group, low, high in zip(
                self.optimizer.param_groups,
                self.base_momentums,
                self.max_momentums,
                strict=True,
            ):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low

    def _set_momentum(self, group: Group, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class OneCycleLR(Cycle):
    """Up to a rate, and down again to nearly nothing (Smith & Topin, 2018).

    Args:
        optimizer: See `LRScheduler`.
        max_lr: The highest rate, for all groups or each.
        total_steps: Number of steps...
        epochs: ...or number of epochs...
        steps_per_epoch: ...and number of steps in each.
        pct_start: Part of them that goes up.
        anneal_strategy: Shape of the curve: ``cos`` or ``linear``.
        cycle_momentum: True if momentum goes down and up meanwhile.
        base_momentum: The lowest momentum.
        max_momentum: The highest.
        div_factor: Factor by which the first rate is lower than the highest.
        final_div_factor: Factor by which the last rate is lower than the first.
        three_phase: True if it goes down as fast as up, and then to the last rate.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: An argument is out of range, or the optimizer has no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Numbers,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.85,
        max_momentum: Numbers = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in {"cos", "linear"}:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self.anneal_strategy = anneal_strategy
        up = float(pct_start * self.total_steps)
        end = self.total_steps - 1.0
        #: Ends of the phases, with the names of their first and last rate and momentum.
        self._stops = [(0.0, "initial_lr", "max_momentum")]
        self._stops.append((up - 1, "max_lr", "base_momentum"))
        if three_phase:
            self._stops.append((2 * up - 2, "initial_lr", "max_momentum"))
        self._stops.append((end, "min_lr", "max_momentum"))
        highest = each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        self._start_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`; sets momentum as well.

        Raises:
            ValueError: There are no more steps.
        """
        self.warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phases = list(pairwise(self._stops))
        first, last = next((one for one in phases if step <= one[1][0]), phases[-1])
        part = (step - first[0]) / (last[0] - first[0])
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[first[1]], group[last[1]], part))
            if self.cycle_momentum:
                momentum = self._between(group[first[2]], group[last[2]], part)
                self._set_momentum(group, momentum)
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


class CyclicLR(Cycle):
    """Up and down between two rates, again and again (Smith, 2017).

    Args:
        optimizer: See `LRScheduler`.
        base_lr: The lowest rate, for all groups or each.
        max_lr: The highest.
        step_size_up: Number of steps up.
        step_size_down: Number of steps down; as many if not given.
        mode: Change of the height: ``triangular`` (none), ``triangular2`` (half as high
            each time), or ``exp_range`` (times `gamma` at each step).
        gamma: See `mode`.
        scale_fn: Any other change: takes what `scale_mode` says.
        scale_mode: Argument of `scale_fn`: the ``cycle`` or the ``iterations``.
        cycle_momentum: True if momentum goes down and up meanwhile.
        base_momentum: The lowest momentum.
        max_momentum: The highest.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: A mode is not known, or the optimizer has no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Numbers,
        max_lr: Numbers,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Numbers = 0.8,
        max_momentum: Numbers = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        lowest = each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(lowest, optimizer.param_groups, strict=True):
                group["lr"] = rate
        self.max_lrs = each_group("max_lr", optimizer, max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in _SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._own_scale = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode]
        self.cycle_momentum = cycle_momentum
        self._start_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, given its number, or that of the step."""
        if self._own_scale is not None:
            return self._own_scale(x)
        match self.mode:
            case "triangular2":
                return math.pow(2.0, 1 - x)
            case "exp_range":
                return math.pow(self.gamma, x)
            case _:
                return 1.0

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`; sets momentum as well."""
        self.warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        is_rising = x <= self.step_ratio
        part = x / self.step_ratio if is_rising else (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups,
                self.base_momentums,
                self.max_momentums,
                strict=True,
            ):
                self._set_momentum(group, high - (high - low) * part * height)
        return [
            low + (high - low) * part * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler; a user's function is left out."""
        state = super().state_dict()
        del state["_own_scale"]
        return state


#: Clock that the height of a cycle depends on, by mode.
_SCALES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


def _total_steps(
    total_steps: int | None, epochs: int | None, steps_per_epoch: int | None
) -> int:
    if total_steps is not None:
        _check_positive("total_steps", total_steps)
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError(
            "You must define either total_steps OR (epochs AND steps_per_epoch)"
        )
    _check_positive("epochs", epochs)
    _check_positive("steps_per_epoch", steps_per_epoch)
    return epochs * steps_per_epoch


def _check_positive(name: str, value: int) -> None:
    if value <= 0 or not isinstance(value, int):
        raise ValueError(f"Expected positive integer {name}, but got {value}")
