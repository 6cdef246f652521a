"""Who is told of each node that an op makes."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import Final, TypeAlias

from gradviz.backends.base import Array
from gradviz.engine.node import Node

Hook: TypeAlias = Callable[[Node], None]

#: Takes the node and the results of its op.
Observer: TypeAlias = Callable[[Node, Sequence[Array]], None]

#: Outer hooks first. A context variable, so that the threads of a backward inherit it.
_HOOKS: Final[ContextVar[tuple[Hook, ...]]] = ContextVar(
    "gradviz.creation_hooks", default=()
)
_OBSERVERS: Final[ContextVar[tuple[Observer, ...]]] = ContextVar(
    "gradviz.creation_observers", default=()
)
_IS_IN_HOOK: Final = ContextVar("gradviz.is_in_creation_hook", default=False)

#: How many of both there are in all contexts: ops ask no further while it is 0.
num_hooks = 0


def add(hook: Hook) -> "Token[tuple[Hook, ...]]":
    """Tell `hook` of the nodes made in this context, until `remove`."""
    global num_hooks
    num_hooks += 1
    return _HOOKS.set((*_HOOKS.get(), hook))


def remove(token: "Token[tuple[Hook, ...]]") -> None:
    """Undo an `add`."""
    global num_hooks
    num_hooks -= 1
    _HOOKS.reset(token)


def observe(observer: Observer) -> "Token[tuple[Observer, ...]]":
    """Show `observer` nodes and results in this context, until `stop_observing`.

    It must not run ops.
    """
    global num_hooks
    num_hooks += 1
    return _OBSERVERS.set((*_OBSERVERS.get(), observer))


def stop_observing(token: "Token[tuple[Observer, ...]]") -> None:
    """Undo an `observe`."""
    global num_hooks
    num_hooks -= 1
    _OBSERVERS.reset(token)


def call(node: Node, results: Sequence[Array] = ()) -> None:
    """Tell the hooks of this context of `node`, which is complete.

    Args:
        node: The node.
        results: What its op computed.

    Raises:
        RuntimeError: A hook returned something, or made a node itself.
    """
    for observer in _OBSERVERS.get():
        observer(node, results)
    hooks = _HOOKS.get()
    if not hooks:
        return
    if _IS_IN_HOOK.get():
        raise RuntimeError(
            f"a node creation hook ran an op that made {node!r}; work on detached "
            f"tensors, or under no_grad"
        )
    token = _IS_IN_HOOK.set(True)
    try:
        for hook in hooks:
            if hook(node) is not None:
                raise RuntimeError("node creation hooks should return None")
    finally:
        _IS_IN_HOOK.reset(token)
