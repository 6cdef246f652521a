"""The base of schedulers, which set an optimizer's learning rates step by step."""

import warnings
from collections.abc import Sequence
from typing import Any

from gradviz.optim.optimizer import Optimizer


class LRScheduler:
    """The base class: a subclass computes the rates in `get_lr`.

    Args:
        optimizer: Optimizer whose rates are set.
        last_epoch: Number of steps that have been made, -1 for none.

    Attributes:
        optimizer: See above.
        last_epoch: The step that the rates are for: 0 at first.
        base_lrs: The first rate of each group.

    Raises:
        KeyError: `last_epoch` is given, and a group does not say its first rate.
        TypeError: `optimizer` is none.

    Source: torch/optim/lr_scheduler.py.
    """

    _is_initial = False
    _is_stepping = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] "
                    f"when resuming scheduler with last_epoch >= 0.\nLoad the "
                    f"optimizer's state first; in a fresh run, leave last_epoch at -1"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._num_optimizer_steps = optimizer.num_steps
        self.step_initially()

    def get_lr(self) -> list[float]:
        """The rate of each group in this step; for `step` to call.

        It is computed from the rate before where that is possible, so that schedulers
        can be chained, and a rate changed by hand stays changed.
        """
        raise NotImplementedError

    def closed_form(self) -> list[float]:
        """The rates in this step, computed from the first ones where possible."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step_initially(self) -> None:
        """Set the rates of the first step."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next step; called after the optimizer's.

        Args:
            epoch: Another step than the next; deprecated.
        """
        if (
            self._step_count == 1
            and self.optimizer.num_steps == self._num_optimizer_steps
            and type(self.optimizer).step is Optimizer.step  # else who counts?
        ):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In "
                "PyTorch 1.1.0 and later, you should call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
                "will result in PyTorch skipping the first value of the learning rate "
                "schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self.set_rates(epoch)

    def set_rates(self, epoch: int | None = None) -> None:
        """Go to the next step, or to `epoch`, without asking the optimizer."""
        self._is_stepping = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = self.closed_form()
        finally:
            self._is_stepping = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self.rates()

    def rates(self) -> list[float]:
        """The rates as they are."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def warn_outside_step(self) -> None:
        """Warn callers of `get_lr` that want the rates in effect."""
        if not self._is_stepping:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the scheduler."""
        return {key: one for key, one in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.__dict__.update(state_dict)


def check_optimizer(optimizer: object) -> None:
    """See that something is an optimizer.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:  # noqa: ANN401 - a number or several
    """A value for each group.

    Raises:
        ValueError: There are not as many values as groups.
    """
    num_groups = len(optimizer.param_groups)
    if not isinstance(value, Sequence):
        return [value] * num_groups
    if len(value) != num_groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {num_groups}."
        )
    return list(value)


def warn_of_epoch() -> None:
    """Warn of the deprecated argument of `LRScheduler.step`."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being "
        "deprecated where possible. Please use `scheduler.step()` to step the "
        "scheduler. During the deprecation, if epoch is different from None, the "
        "closed form is used instead of the new chainable form, where available.",
        UserWarning,
        stacklevel=3,
    )
