"""Learning rates that are multiplied with something from step to step."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.schedule import LRScheduler

#: Factor of a rate in a step.
Factor = Callable[[int], float]


class OfFunctions(LRScheduler):
    """Base of the schedulers of functions.

    Args:
        optimizer: See `LRScheduler`.
        lr_lambda: A function of the step, or one for each group.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: There are not as many functions as groups.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Factor | Sequence[Factor],
        last_epoch: int = -1,
    ) -> None:
        num_groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != num_groups:
                raise ValueError(
                    f"Expected {num_groups} lr_lambdas, but got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * num_groups
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the scheduler's state; of callable objects, but not of functions."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(one, FunctionType) else one.__dict__.copy()
            for one in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        states = state_dict["lr_lambdas"]
        super().load_state_dict(state_dict | {"lr_lambdas": self.lr_lambdas})
        for function, state in zip(self.lr_lambdas, states, strict=True):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(OfFunctions):
    """The first rate times a function of the step; see `OfFunctions`."""

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`."""
        self.warn_outside_step()
        return [
            base * function(self.last_epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(OfFunctions):
    """At every step times a function of it; see `OfFunctions`."""

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`."""
        self.warn_outside_step()
        if self._is_initial:
            return self.rates()
        return [
            rate * function(self.last_epoch)
            for function, rate in zip(self.lr_lambdas, self.rates(), strict=True)
        ]


class Multiplied(LRScheduler):
    """Base of the schedulers with one number for all groups.

    A subclass defines `multiplier`, the factor of the previous rate, and `factor`, the
    factor of the first rate.
    """

    def multiplier(self) -> float:
        """Return the factor of the previous rates in this step."""
        raise NotImplementedError

    def whole_factor(self) -> float:
        """Return the factor of the first rates in this step."""
        raise NotImplementedError

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`."""
        self.warn_outside_step()
        multiplier = self.multiplier()
        return [rate * multiplier for rate in self.rates()]

    def closed_form(self) -> list[float]:
        """See `LRScheduler.closed_form`."""
        return [base * self.whole_factor() for base in self.base_lrs]


class StepLR(Multiplied):
    """Times `gamma` every `step_size` steps.

    Args:
        optimizer: See `LRScheduler`.
        step_size: Number of steps.
        gamma: Factor to multiply by.
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

    def multiplier(self) -> float:
        """See `Multiplied`."""
        is_due = self.last_epoch and self.last_epoch % self.step_size == 0
        return self.gamma if is_due else 1.0

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(Multiplied):
    """Times `gamma` at each of several steps.

    Args:
        optimizer: See `LRScheduler`.
        milestones: The numbers of these steps.
        gamma: Factor to multiply by.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def multiplier(self) -> float:
        """See `Multiplied`."""
        return self.gamma ** self.milestones[self.last_epoch]

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        milestones = sorted(self.milestones.elements())
        return self.gamma ** bisect_right(milestones, self.last_epoch)


class ExponentialLR(Multiplied):
    """Times `gamma` at every step.

    Args:
        optimizer: See `LRScheduler`.
        gamma: Factor to multiply by.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, gamma: float, last_epoch: int = -1
    ) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def multiplier(self) -> float:
        """See `Multiplied`."""
        return 1.0 if self._is_initial else self.gamma

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        return self.gamma**self.last_epoch


class ConstantLR(Multiplied):
    """Times `factor` for the first steps.

    Args:
        optimizer: See `LRScheduler`.
        factor: Factor to multiply by.
        total_iters: Number of these steps.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: `factor` is not between 0 and 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(
                "Constant multiplicative factor expected to be between 0 and 1."
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def multiplier(self) -> float:
        """See `Multiplied`."""
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        return 1.0 if self.last_epoch >= self.total_iters else self.factor


class LinearLR(Multiplied):
    """In equal steps from one factor to another, for warming up.

    Args:
        optimizer: See `LRScheduler`.
        start_factor: The first.
        end_factor: The last.
        total_iters: Number of steps between them.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: A factor is not between 0 and 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less "
                "or equal to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                "Ending multiplicative factor expected to be between 0 and 1."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def multiplier(self) -> float:
        """See `Multiplied`."""
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        growth = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * growth
        return 1.0 + growth / before

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        growth = self.end_factor - self.start_factor
        steps = min(self.total_iters, self.last_epoch)
        return self.start_factor + growth * steps / self.total_iters


class PolynomialLR(Multiplied):
    """Down to 0 along a polynomial.

    Args:
        optimizer: See `LRScheduler`.
        total_iters: Number of steps down to 0.
        power: Of the polynomial.
        last_epoch: See `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def multiplier(self) -> float:
        """See `Multiplied`."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        ratio: float = (left / before) ** self.power
        return ratio

    def whole_factor(self) -> float:
        """See `Multiplied`."""
        steps = min(self.total_iters, self.last_epoch)
        factor: float = (1.0 - steps / self.total_iters) ** self.power
        return factor
