"""Gradient mode: on in the forward pass, off in most backward passes.

It belongs to a context rather than to a thread: a new thread starts with the default,
as in PyTorch, and a coroutine keeps its own setting across an ``await``.
"""

from contextvars import ContextVar
from typing import Final

from gradviz.modes import Mode

#: True if operations record nodes. Inside a backward pass it equals ``create_graph``.
GRAD_ENABLED: Final = ContextVar("gradviz.grad_enabled", default=True)
#: Bound once, like `silence.setting`, because every op calls it.
grad_enabled: Final = GRAD_ENABLED.get

#: True if work for devices may leave the calling thread. Source:
#: c10/core/AutogradState.h, multithreading_enabled (K5).
MULTITHREADING_ENABLED: Final = Mode("gradviz.multithreading_enabled", default=True)


def is_grad_enabled() -> bool:
    """Return whether operations record nodes in this context."""
    return grad_enabled()


def is_multithreading_enabled() -> bool:
    """Return whether a backward started here may use the device threads."""
    return MULTITHREADING_ENABLED.get()
