"""Learning rates that fall along a cosine."""

import math

from gradviz.optim.optimizer import Optimizer
from gradviz.optim.schedule import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` along a cosine, and up again (Loshchilov & Hutter, 2017).

    Args:
        optimizer: See `LRScheduler`.
        T_max: Number of steps after which it is down.
        eta_min: Lowest learning rate.
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
        """See `LRScheduler.get_lr`."""
        self.warn_outside_step()
        if self._is_initial:
            return self.rates()
        if self._step_count == 1 and self.last_epoch > 0:
            return self.closed_form()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate before was the lowest: nothing to multiply.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                rate + (base - self.eta_min) * rise
                for rate, base in zip(self.rates(), self.base_lrs, strict=True)
            ]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (rate - self.eta_min) + self.eta_min for rate in self.rates()]

    def closed_form(self) -> list[float]:
        """See `LRScheduler.closed_form`."""
        height = self._height(self.last_epoch)
        return [
            self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs
        ]

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to `eta_min` along a cosine, again and again.

    Args:
        optimizer: See `LRScheduler`.
        T_0: Number of steps after which it starts again for the first time.
        T_mult: Factor by which each time is longer than the one before.
        eta_min: Lowest learning rate.
        last_epoch: See `LRScheduler`.

    Attributes:
        T_i: Number of steps of this time.
        T_cur: Number of those steps that have been made.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 - PyTorch's name
        T_mult: int = 1,  # noqa: N803 - PyTorch's name
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type "
                f"{type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """See `LRScheduler.get_lr`."""
        self.warn_outside_step()
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [
            self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs
        ]

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next step, or of `epoch`, which may be a fraction.

        Raises:
            ValueError: `epoch` is negative.
        """
        self._step_count += 1
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        self.set_rates(epoch)

    def set_rates(self, epoch: float | None = None) -> None:
        """See `LRScheduler.set_rates`."""
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        super().set_rates(math.floor(epoch))

    def _go_to(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        num_restarts = 0
        if epoch < self.T_0:
            start: float = 0
        elif self.T_mult == 1:
            start = epoch - epoch % self.T_0
        else:
            growth = self.T_mult - 1
            num_restarts = int(math.log(epoch / self.T_0 * growth + 1, self.T_mult))
            start = self.T_0 * (self.T_mult**num_restarts - 1) / growth
        self.T_cur = epoch - start
        self.T_i = self.T_0 * self.T_mult**num_restarts
