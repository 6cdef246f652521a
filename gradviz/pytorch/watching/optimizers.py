"""Steps of PyTorch's optimizers, heard through hooks for all of them."""

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradviz.program_hooks import after_step
from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.torch_names import PyTorch
from gradviz.trace import probe
from gradviz.trace.reporting.ids import next_step_id


class OptimizerHooks:
    """The hooks.

    Args:
        names: Of PyTorch.
        meet: Called with whoever listens and an optimizer that makes its first step.
        ended: Called with an optimizer that has made a step.
    """

    def __init__(
        self,
        names: PyTorch,
        meet: Callable[[probe.Probe, object], None],
        ended: Callable[[object], None],
    ) -> None:
        self._names = names
        self._meet, self._ended = meet, ended
        self._met: weakref.WeakSet[object] = weakref.WeakSet()
        #: Names of optimizers, and the number of those with the name of each class.
        self._called: weakref.WeakKeyDictionary[object, str] = (
            weakref.WeakKeyDictionary()
        )
        self._numbers: dict[str, Iterator[int]] = {}
        self._compiler = Compiler(names)
        self._compiler.skips(type(self)._begins, type(self)._ends)
        self._remove: list[Callable[[], None]] = []
        self._of_thread = _RunningSteps()

    def install(self) -> None:
        """Begin to hear."""
        self._met.clear()
        optimizers = self._names.of_optimizers
        before = optimizers.register_optimizer_step_pre_hook(self._begins)
        after = optimizers.register_optimizer_step_post_hook(self._ends)
        self._remove += before.remove, after.remove
        if after_step:
            self._remove.append(self._hear_skipped_steps())

    def remove(self) -> None:
        """Hear no more."""
        while self._remove:
            self._remove.pop()()

    def is_in_step(self) -> bool:
        """Return whether the calling thread is in a step of an optimizer."""
        return bool(self._of_thread.steps)

    def tell_held(
        self,
        listener: probe.Probe,
        optimizer: Any,  # noqa: ANN401 - PyTorch's
        names_of: Callable[[Any], Sequence[str]],
    ) -> None:
        """Tell a listener which parameters an optimizer holds.

        Args:
            listener: The listener.
            optimizer: The optimizer.
            names_of: Finds the names of a parameter.
        """
        kind = type(optimizer).__name__
        name = self._called.get(optimizer)
        if name is None:
            number = next(self._numbers.setdefault(kind, itertools.count(1)))
            name = self._called[optimizer] = kind if number == 1 else f"{kind}#{number}"
        for group in optimizer.param_groups:
            for one in group["params"]:
                path = next(iter(names_of(one)), "")
                listener.parameter_held(name, path, str(tuple(one.shape)))

    def _hear_skipped_steps(self) -> Callable[[], None]:
        """Hear of steps that a GradScaler skips; return a function that undoes that.

        No hook tells of them, so its ``step`` is replaced.
        """
        scaler = self._names.torch.amp.GradScaler
        original, of_thread = scaler.step, self._of_thread
        call = self._compiler.call

        @functools.wraps(original)
        def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            before = of_thread.num_ended
            result = original(self, optimizer, *args, **kwargs)
            if of_thread.num_ended == before:
                call(_tell_stepped, optimizer)
            return result

        self._compiler.skips(step)

        def put_back() -> None:
            if scaler.step is step:
                scaler.step = original

        scaler.step = step
        return put_back

    def _begins(self, optimizer: object, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        del args, kwargs
        if not self._names.is_compiling():
            self._compiler.call(self._note_begin, optimizer)

    def _note_begin(self, optimizer: object) -> None:
        listener = probe.current
        step = next_step_id()
        self._of_thread.steps.append((optimizer, step, listener))
        if listener is not None:
            listener.optimizer_begun(step, type(optimizer).__name__)
            if optimizer not in self._met:
                self._meet(listener, optimizer)
                self._met.add(optimizer)

    def _ends(self, optimizer: object, args: Any, kwargs: Any) -> None:  # noqa: ANN401
        del args, kwargs
        if not self._names.is_compiling():
            self._compiler.call(self._note_end, optimizer)

    def _note_end(self, optimizer: object) -> None:
        steps = self._of_thread.steps
        while steps:  # one that raised has said nothing
            ended, step, listener = steps.pop()
            if listener is not None:
                listener.optimizer_ended(step, ended is not optimizer)
            if ended is optimizer:
                break
        self._of_thread.num_ended += 1
        self._ended(optimizer)
        _tell_stepped(optimizer)


def _tell_stepped(optimizer: object) -> None:
    for call in tuple(after_step):
        call(optimizer)


class _RunningSteps(threading.local):
    """The steps that go on, and how many have ended well."""

    num_ended = 0

    def __init__(self) -> None:
        self.steps: list[tuple[object, int, probe.Probe | None]] = []
