"""Steps of PyTorch's optimizers, heard through hooks for all of them."""

import threading
from collections.abc import Callable
from typing import Any, Final

from gradviz.ids import next_step_id
from gradviz.pytorch.names import PyTorch
from gradviz.trace import probe

#: Called after every step that an optimizer of PyTorch's has made.
after_step: Final[list[Callable[[], None]]] = []


class OptimizerHooks:
    """The hooks.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._names = names
        self._remove: list[Callable[[], None]] = []
        self._of_thread = _RunningSteps()

    def install(self) -> None:
        """Begin to hear."""
        optimizers = self._names.of_optimizers
        before = optimizers.register_optimizer_step_pre_hook(self._begins)
        after = optimizers.register_optimizer_step_post_hook(self._ends)
        self._remove += before.remove, after.remove

    def remove(self) -> None:
        """Hear no more."""
        while self._remove:
            self._remove.pop()()

    def _begins(self, optimizer: object, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        del args, kwargs
        if self._names.is_compiling():
            return
        listener = probe.current
        step = next_step_id()
        self._of_thread.steps.append((optimizer, step, listener))
        if listener is not None:
            listener.optimizer_begun(step, type(optimizer).__name__)

    def _ends(self, optimizer: object, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        del args, kwargs
        if self._names.is_compiling():
            return
        steps = self._of_thread.steps
        while steps:  # one that raised has said nothing
            ended, step, listener = steps.pop()
            if listener is not None:
                listener.optimizer_ended(step, ended is not optimizer)
            if ended is optimizer:
                break
        for call in tuple(after_step):
            call()


class _RunningSteps(threading.local):
    """The steps that go on."""

    def __init__(self) -> None:
        self.steps: list[tuple[object, int, probe.Probe | None]] = []
