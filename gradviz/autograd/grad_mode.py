"""Modes of recording graphs, for a block or a function."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, overload

from gradviz.autograd.mode_decorator import decorated
from gradviz.engine.graph.grad_mode import (
    GRAD_ENABLED,
    MULTITHREADING_ENABLED,
    is_grad_enabled,
)
from gradviz.ops.variables import inference
from gradviz.ops.variables.variable import Variable
from gradviz.ops.variables.version import INFERENCE
from gradviz.ops.variables.view import force_tracking, is_tracking_forced

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference",
    "is_inference_mode_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """A context manager and decorator that sets the gradient mode.

    The setting belongs to the thread, and to the coroutine if there is one.
    """

    mode: bool

    def __init__(self) -> None:
        self._before: list[bool] = []  # a stack: one object may be entered again

    def __enter__(self) -> Self:
        self._before.append(GRAD_ENABLED.get())
        GRAD_ENABLED.set(self.mode)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        GRAD_ENABLED.set(self._before.pop())

    def __call__(self, function: F) -> F:
        """Return `function` always running in this mode; coroutines, too."""
        wrapped: F = decorated(self.clone, function)
        return wrapped

    def clone(self) -> "_GradMode":
        """Return another object that sets the same mode."""
        return type(self)()


class _BareGradMode(_GradMode):
    """Base of modes that decorate without parentheses: ``@no_grad``."""

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """See the class."""
        return object.__new__(cls) if function is None else cls()(function)


class no_grad(_BareGradMode):  # noqa: N801 - PyTorch's name
    """Record no graph: for a block (``with``) or a function (decorator)."""

    mode = False


class enable_grad(_BareGradMode):  # noqa: N801 - PyTorch's name
    """Record graphs again inside `no_grad`."""

    mode = True


class set_grad_enabled(_GradMode):  # noqa: N801 - PyTorch's name
    """Record graphs or not: from the call on, or to the end of the ``with`` block.

    Args:
        mode: True if graphs are recorded.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode
        self._before.append(GRAD_ENABLED.get())
        GRAD_ENABLED.set(mode)

    def __enter__(self) -> Self:
        if not self._before:
            super().__enter__()
        return self

    def __call__(self, function: F) -> F:
        """Return `function` always running in this mode; restore the current mode."""
        GRAD_ENABLED.set(self._before.pop())
        return super().__call__(function)

    def clone(self) -> "set_grad_enabled":
        """Return another object, in effect from now on."""
        return set_grad_enabled(self.mode)

    def __repr__(self) -> str:
        return f"gradviz.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode:  # noqa: N801 - PyTorch's name
    """Record nothing at all: for a block (``with``) or a function (decorator).

    Tensors made in this mode count no changes and remember no views, and may never take
    part in differentiation.

    Args:
        mode: True if the mode is entered, False if it is left for the block.

    Source: torch/autograd/grad_mode.py, inference_mode.
    """

    mode: bool

    def __new__(cls, mode: "bool | Callable[..., Any]" = True) -> Any:  # noqa: ANN401 - or the decorated function
        """See the class; it may also decorate without parentheses."""
        if not isinstance(mode, bool):
            return cls()(mode)
        new = object.__new__(cls)
        new.mode = mode
        new._entered = []
        return new

    _entered: list[inference.Leaving]

    def __enter__(self) -> Self:
        inference.enter(self.mode, self._entered)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        inference.leave(self._entered)

    def __call__(self, function: F) -> F:
        """Return `function` always running in this mode; coroutines, too."""
        wrapped: F = decorated(self.clone, function)
        return wrapped

    def clone(self) -> "inference_mode":
        """Return another object for the same mode."""
        another: inference_mode = inference_mode(self.mode)
        return another


def is_inference(input: Variable) -> bool:  # noqa: A002 - PyTorch's name
    """Return whether a tensor was made in inference mode."""
    return input.version is INFERENCE


def is_inference_mode_enabled() -> bool:
    """Return whether ops return inference tensors here."""
    return inference.is_on()


class set_multithreading_enabled:  # noqa: N801 - PyTorch's name
    """Let backward use the threads of devices or not; by default it does.

    Without them everything runs on the calling thread, in a predictable order. It
    applies from the call on, or to the end of the ``with`` block. The setting belongs
    to the thread that calls backward.

    Args:
        mode: True if backward may use them.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before = MULTITHREADING_ENABLED.get()
        MULTITHREADING_ENABLED.set(mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        MULTITHREADING_ENABLED.set(self._before)

    def __call__(self, function: F) -> F:
        """Return `function` always running so; restore the current setting."""
        MULTITHREADING_ENABLED.set(self._before)
        wrapped: F = decorated(self.clone, function)
        return wrapped

    def clone(self) -> "set_multithreading_enabled":
        """Return another object, in effect from now on."""
        return set_multithreading_enabled(self.mode)


class _force_original_view_tracking:  # noqa: N801 - PyTorch's name
    """Give views new nodes of their own ops when their base is changed.

    Otherwise they get one of `as_strided`. The setting counts where a view is made. It
    applies from the call on, or to the end of the ``with`` block, and belongs to the
    thread.

    Args:
        mode: True if views get such nodes.

    Source: torch/autograd/grad_mode.py, _force_original_view_tracking.
    """

    def __init__(self, mode: bool) -> None:
        self.prev = is_tracking_forced()
        self.mode = mode
        force_tracking(mode)

    def __enter__(self) -> None:
        force_tracking(self.mode)

    def __exit__(self, *_: object) -> None:
        force_tracking(self.prev)

    def __call__(self, function: F) -> F:
        """Return `function` always running so; restore the current setting."""
        force_tracking(self.prev)
        wrapped: F = decorated(self.clone, function)
        return wrapped

    def clone(self) -> "_force_original_view_tracking":
        """Return another object, in effect from now on."""
        return _force_original_view_tracking(self.mode)


def is_view_replay_enabled() -> bool:
    """Return whether new views will get the nodes of their own ops."""
    return is_tracking_forced()


class _unsafe_preserve_version_counter:  # noqa: N801 - PyTorch's name
    """Count no changes of tensors in a block: their saved values remain valid.

    Args:
        tensors: One or several.

    Source: torch/autograd/grad_mode.py, _unsafe_preserve_version_counter.
    """

    def __init__(self, tensors: Variable | tuple[Variable, ...]) -> None:
        several = (tensors,) if isinstance(tensors, Variable) else tensors
        self._versions = [(x, x.shared_version().value) for x in several]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        for tensor, value in self._versions:
            tensor.shared_version().value = value
