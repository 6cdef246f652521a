"""Hooks called for each node that an op makes."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from gradviz.backends.base import Array
from gradviz.engine.graph.node import Node
from gradviz.modes import Mode

CreationHook: TypeAlias = Callable[[Node], object]

#: Takes the node, the results of its op, and what that was given as far as it is known:
#: arrays, variables, numbers, the result itself and facts of it.
Observer: TypeAlias = Callable[[Node, Sequence[Array], Sequence[Any]], None]

#: Outer hooks first. The threads of a backward inherit them.
_HOOKS: Final[Mode[tuple[CreationHook, ...]]] = Mode(
    "gradviz.creation_hooks", default=()
)
_OBSERVERS: Final[Mode[tuple[Observer, ...]]] = Mode(
    "gradviz.creation_observers", default=()
)
#: Observers of all contexts. Changed by single calls into C.
_OF_ALL_CONTEXTS: Final[list[Observer]] = []
_IS_IN_HOOK: Final = ContextVar("gradviz.is_in_creation_hook", default=False)

#: One entry for each of both that any context has: ops ask no further while there are
#: none. Not a number, as an attribute of a module takes eight times as long to read.
CREATION_HOOKS_IN_USE: Final[list[None]] = []


@contextlib.contextmanager
def telling(hook: CreationHook) -> Iterator[None]:
    """Call `hook` for the nodes made in this context, during a block."""
    CREATION_HOOKS_IN_USE.append(None)
    outer = _HOOKS.get()
    _HOOKS.set((*outer, hook))
    try:
        yield
    finally:
        CREATION_HOOKS_IN_USE.pop()
        _HOOKS.set(outer)


@contextlib.contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """A block in which `observer` sees nodes and results made in this context.

    It must not run ops.
    """
    CREATION_HOOKS_IN_USE.append(None)
    outer = _OBSERVERS.get()
    _OBSERVERS.set((*outer, observer))
    try:
        yield
    finally:
        CREATION_HOOKS_IN_USE.pop()
        _OBSERVERS.set(outer)


def observe_all(observer: Observer) -> Callable[[], None]:
    """Call `observer` for all nodes and results; return a function that ends it.

    It must not run ops.
    """
    CREATION_HOOKS_IN_USE.append(None)
    _OF_ALL_CONTEXTS.append(observer)

    def stop() -> None:
        CREATION_HOOKS_IN_USE.pop()
        _OF_ALL_CONTEXTS.remove(observer)

    return stop


def call(node: Node, results: Sequence[Array] = (), values: Sequence[Any] = ()) -> None:
    """Call the hooks of this context for a complete `node`.

    Args:
        node: The node.
        results: Results of its op.
        values: Values that its op was given; see `Observer`.

    Raises:
        RuntimeError: A hook returned something, or made a node itself.
    """
    for observer in (*_OF_ALL_CONTEXTS, *_OBSERVERS.get()):
        observer(node, results, values)
    hooks = _HOOKS.get()
    if not hooks:
        return
    if _IS_IN_HOOK.get():
        raise RuntimeError(
            f"a node creation hook ran an op that made {node!r}; work on detached "
            f"tensors, or under no_grad"
        )
    try:  # without a token: see Note [Silence]
        _IS_IN_HOOK.set(True)
        for hook in hooks:
            if hook(node) is not None:
                raise RuntimeError("node creation hooks should return None")
    finally:
        _IS_IN_HOOK.set(False)
