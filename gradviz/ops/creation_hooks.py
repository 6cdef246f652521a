"""Who is told of each node that an op makes."""

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Final, TypeAlias

from gradviz.engine.node import Node

Hook: TypeAlias = Callable[[Node], None]

#: Outer hooks first. A context variable, so that the threads of a backward inherit it.
_HOOKS: Final[ContextVar[tuple[Hook, ...]]] = ContextVar(
    "gradviz.creation_hooks", default=()
)
_IS_IN_HOOK: Final = ContextVar("gradviz.is_in_creation_hook", default=False)

#: How many hooks there are in all contexts: ops ask no further while it is 0.
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


def call(node: Node) -> None:
    """Tell the hooks of this context of `node`, which is complete.

    Raises:
        RuntimeError: A hook returned something, or made a node itself.
    """
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
