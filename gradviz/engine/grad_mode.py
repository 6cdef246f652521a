"""Whether operations build a graph: on in the forward pass, off in most backwards.

Of a context rather than of a thread: a new thread starts with the default, as
in PyTorch, and besides that a coroutine keeps its own setting across an ``await``.
"""

from contextvars import ContextVar
from typing import Final

from gradviz.modes import Mode

#: Whether operations record nodes. Inside a backward it equals ``create_graph``.
GRAD_ENABLED: Final = ContextVar("gradviz.grad_enabled", default=True)
#: Asks it. Found in one step, as `silence.setting` is: each op asks.
grad_enabled: Final = GRAD_ENABLED.get

#: Whether work for devices may leave the calling thread.
#: Source: c10/core/AutogradState.h, multithreading_enabled (K5).
MULTITHREADING_ENABLED: Final = Mode("gradviz.multithreading_enabled", default=True)


def is_grad_enabled() -> bool:
    """Whether operations record nodes in this context."""
    return grad_enabled()


def is_multithreading_enabled() -> bool:
    """Whether a backward begun here may use the device threads."""
    return MULTITHREADING_ENABLED.get()
