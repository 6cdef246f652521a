"""Several schedulers: one after the other, or all at once."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.plateau import ReduceLROnPlateau
from gradviz.optim.schedule import LRScheduler


class SeveralSchedulers(LRScheduler):
    """Base of the schedulers of schedulers: their state holds the others'."""

    _schedulers: Sequence[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the schedulers."""
        state = super().state_dict()
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        states = state_dict["_schedulers"]
        super().load_state_dict(state_dict | {"_schedulers": self._schedulers})
        for scheduler, state in zip(self._schedulers, states, strict=True):
            scheduler.load_state_dict(state)

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        kind = type(self).__name__
        for number, one in enumerate(schedulers):
            if not hasattr(one, "optimizer"):
                raise TypeError(
                    f"{kind} at index {number} should have `optimizer` as its "
                    f"attribute."
                )
            if isinstance(one, ReduceLROnPlateau):
                raise ValueError(
                    f"{kind} does not support `ReduceLROnPlateau` scheduler as it "
                    f"requires additional kwargs to be specified when calling `step`, "
                    f"but got one at index {number} in the given schedulers sequence."
                )
            if one.optimizer is not optimizer:
                raise ValueError(
                    f"{kind} expects all schedulers to belong to the same optimizer, "
                    f"but got scheduler {type(one).__name__} at index {number} has "
                    f"{one.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )


class SequentialLR(SeveralSchedulers):
    """One scheduler after the other.

    Args:
        optimizer: See `LRScheduler`.
        schedulers: In their order.
        milestones: The steps at which the others begin.
        last_epoch: See `LRScheduler`.

    Raises:
        ValueError: There are not as many milestones, or a scheduler does not fit.
        TypeError: One is no scheduler.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise ValueError(
                "SequentialLR expects at least one scheduler, but got no scheduler."
            )
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"Sequential Schedulers expects number of schedulers provided to be "
                f"one more than the number of milestone points, but got number of "
                f"schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # All have set the rates of their first step: back to before that.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(schedulers)
        first = schedulers[bisect_right(milestones, 0)]
        first.step_initially()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next step."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            scheduler.set_rates(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(SeveralSchedulers):
    """Several schedulers at once, each changing the rates of the one before.

    Args:
        schedulers: In their order.
        optimizer: Optimizer whose rates are set; the first scheduler's if not given.

    Raises:
        ValueError: There are none, or one does not fit.
        TypeError: One is no scheduler.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but "
                "got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self.rates()

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.rates()


def _undo(schedulers: Sequence[LRScheduler]) -> None:
    for one in schedulers:
        if isinstance(one, SeveralSchedulers):
            _undo(one._schedulers)
        else:
            one.last_epoch -= 1
