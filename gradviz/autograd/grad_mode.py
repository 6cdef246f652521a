"""Switching the recording of graphs on and off, for a block or a function."""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from gradviz.engine.grad_mode import (
    GRAD_ENABLED,
    MULTITHREADING_ENABLED,
    is_grad_enabled,
)

P = ParamSpec("P")
R = TypeVar("R")


class _GradMode:
    """A context manager and decorator that sets the gradient mode.

    The setting belongs to the thread, and to the coroutine if there is one.
    """

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []  # a stack: one object may be entered again

    def __enter__(self) -> Self:
        self._before.append(GRAD_ENABLED.get())
        GRAD_ENABLED.set(self._mode)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        GRAD_ENABLED.set(self._before.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, always called in this mode."""
        mode = self._mode

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with _GradMode(mode):
                return function(*args, **kwargs)

        return call


class no_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record no graph: for a block (``with``) or a function (decorator)."""

    def __init__(self) -> None:
        super().__init__(mode=False)


class enable_grad(_GradMode):  # noqa: N801 - PyTorch's name
    """Record graphs again inside `no_grad`."""

    def __init__(self) -> None:
        super().__init__(mode=True)


class set_grad_enabled(_GradMode):  # noqa: N801 - PyTorch's name
    """Record graphs or not: from the call on, or to the end of the ``with`` block.

    Args:
        mode: Whether to record.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        self._before.append(GRAD_ENABLED.get())
        GRAD_ENABLED.set(mode)

    def __enter__(self) -> Self:
        if not self._before:
            super().__enter__()
        return self

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, always called in this mode; the current mode is restored."""
        GRAD_ENABLED.set(self._before.pop())
        return super().__call__(function)


class set_multithreading_enabled:  # noqa: N801 - PyTorch's name
    """Let backward use the threads of devices or not; by default it does.

    Without them everything runs on the calling thread, in an order that can be
    foretold. From the call on, or to the end of the ``with`` block. The setting belongs
    to the thread that calls backward.

    Args:
        mode: Whether backward may use them.
    """

    def __init__(self, mode: bool) -> None:
        self._before = MULTITHREADING_ENABLED.get()
        MULTITHREADING_ENABLED.set(mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        MULTITHREADING_ENABLED.set(self._before)


__all__ = [
    "enable_grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
