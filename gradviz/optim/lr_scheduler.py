"""Learning rates that change from step to step.

A scheduler computes the rate of a step from the first one, not from that of the step
before: a rate that was changed by hand is overwritten.
"""

import bisect
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.plateau import ReduceLROnPlateau

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "StepLR",
]


class LRScheduler:
    """The base class: ``lr`` is the first rate times `factor`, group by group.

    Args:
        optimizer: Whose rates.
        last_epoch: How many steps have been made, -1 for none.

    Attributes:
        optimizer: See above.
        last_epoch: See above; 0 after the first.
        base_lrs: The first rate of each group.

    Raises:
        KeyError: `last_epoch` is given, and a group does not say its first rate.
        TypeError: `optimizer` is none.

    Source: torch/optim/lr_scheduler.py.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] "
                    f"when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch + 1
        self._num_optimizer_steps = optimizer.num_steps
        self._has_stepped = False
        self._set()

    def factor(self, epoch: int, group: int) -> float:
        """By what the first rate of a group is multiplied."""
        raise NotImplementedError(f"{type(self).__name__} does not define factor()")

    def get_lr(self) -> list[float]:
        """The rate of each group in this step."""
        return [
            base * self.factor(self.last_epoch, group)
            for group, base in enumerate(self.base_lrs)
        ]

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Set the rates of the next step; called after the optimizer's."""
        if (
            not self._has_stepped
            and self.optimizer.num_steps == self._num_optimizer_steps
            and type(self.optimizer).step is Optimizer.step
        ):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You "
                "should call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`. Failure to do this will result in skipping the "
                "first value of the learning rate schedule.",
                UserWarning,
                stacklevel=2,
            )
        self._has_stepped = True
        self.last_epoch += 1
        self._set()

    def _set(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate

    def state_dict(self) -> dict[str, Any]:
        """Where the scheduler is; functions are left out."""
        return {
            key: value
            for key, value in self.__dict__.items()
            if key != "optimizer" and not callable(value) and key != "lr_lambdas"
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` returned."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The first rate times a function of the step.

    Args:
        optimizer: See `LRScheduler`.
        lr_lambda: The function, or one for each group.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: There are not as many functions as groups.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        num_groups = len(optimizer.param_groups)
        self.lr_lambdas = (
            [lr_lambda] * num_groups if callable(lr_lambda) else list(lr_lambda)
        )
        if len(self.lr_lambdas) != num_groups:
            raise ValueError(
                f"Expected {num_groups} lr_lambdas, but got {len(self.lr_lambdas)}"
            )
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        return self.lr_lambdas[group](epoch)


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` steps.

    Args:
        optimizer: See `LRScheduler`.
        step_size: How many steps.
        gamma: By what to multiply.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        del group
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times `gamma` at each of several steps.

    Args:
        optimizer: See `LRScheduler`.
        milestones: The numbers of these steps.
        gamma: By what to multiply.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        del group
        return self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """Times `gamma` at every step.

    Args:
        optimizer: See `LRScheduler`.
        gamma: By what to multiply.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, gamma: float, last_epoch: int = -1
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        del group
        return self.gamma**epoch


class LinearLR(LRScheduler):
    """In equal steps from one factor to another, for warming up.

    Args:
        optimizer: See `LRScheduler`.
        start_factor: The first.
        end_factor: The last.
        total_iters: How many steps between them.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        del group
        part = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` along a cosine, and up again (Loshchilov & Hutter, 2017).

    Args:
        optimizer: See `LRScheduler`.
        T_max: After how many steps it is down.
        eta_min: How far down.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group in this step."""
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` for the first steps.

    Args:
        optimizer: See `LRScheduler`.
        factor: By what to multiply.
        total_iters: How many steps.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self._factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int, group: int) -> float:
        """See `LRScheduler.factor`."""
        del group
        return self._factor if epoch < self.total_iters else 1.0


class OneCycleLR(LRScheduler):
    """Up to a rate, and down again to nearly nothing (Smith & Topin, 2018).

    Differs: momentum stays as it is.

    Args:
        optimizer: See `LRScheduler`.
        max_lr: The highest rate.
        total_steps: How many steps there are.
        pct_start: Which part of them goes up.
        anneal_strategy: Along what: ``cos`` or ``linear``.
        div_factor: How much lower than the highest the first rate is.
        final_div_factor: How much lower than the first the last rate is.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        self.max_lr = max_lr
        self.total_steps = total_steps
        self.peak = float(pct_start * total_steps) - 1
        self.anneal_strategy = anneal_strategy
        self.first = max_lr / div_factor
        self.last = self.first / final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rate of each group in this step.

        Raises:
            ValueError: There are no more steps.
        """
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total "
                f"steps is {self.total_steps}"
            )
        end = self.total_steps - 1
        if self.last_epoch <= self.peak:
            rate = self._between(self.first, self.max_lr, self.last_epoch / self.peak)
        else:
            part = (self.last_epoch - self.peak) / (end - self.peak)
            rate = self._between(self.max_lr, self.last, part)
        return [rate] * len(self.base_lrs)

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * part
        return end + (start - end) / 2 * (1 + math.cos(math.pi * part))
