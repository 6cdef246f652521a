"""A learning rate that falls when training gets no further."""

import math
from typing import Any, Literal

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.schedule import LRScheduler, check_optimizer, warn_of_epoch


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not become better for a while.

    Args:
        optimizer: Optimizer whose rates are set.
        mode: Direction that is better: less (``min``) or more (``max``).
        factor: Number to multiply by.
        patience: Number of steps without progress that are tolerated.
        threshold: Least change that counts as progress.
        threshold_mode: Kind of `threshold`: a part of the best so far (``rel``) or
            absolute (``abs``).
        cooldown: Number of steps after a reduction that do not count.
        min_lr: The least rate, for all groups or each.
        eps: Smaller changes of the rate are not made.

    Raises:
        ValueError: `factor` is not below 1, or a mode is not known.
        TypeError: `optimizer` is none.

    Source: torch/optim/lr_scheduler.py.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        if mode not in {"min", "max"}:
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        num_groups = len(optimizer.param_groups)
        if not isinstance(min_lr, (list, tuple)):
            min_lr = [min_lr] * num_groups
        if len(min_lr) != num_groups:
            raise ValueError(f"expected {num_groups} min_lrs, got {len(min_lr)}")
        self.min_lrs = list(min_lr)
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.cooldown_counter = 0
        self.last_epoch = 0
        self._last_lr = self.rates()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # noqa: ANN401
        """Take note of a measure, and reduce the rates if need be.

        Args:
            metrics: The measure, a number or a tensor of one.
            epoch: Another step than the next; deprecated.
        """
        current = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self.rates()

    def _is_better(self, current: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bar = self.best * (1 + sign * self.threshold)
        else:
            bar = self.best + sign * self.threshold
        return current > bar if self.mode == "max" else current < bar

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        for group, least in zip(groups, self.min_lrs, strict=True):
            rate = max(group["lr"] * self.factor, least)
            if group["lr"] - rate > self.eps:
                group["lr"] = rate
