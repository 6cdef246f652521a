"""The handle returned when a hook is registered."""

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final, Self

from gradviz.trace.reporting.hook_names import LINES, REGISTERED_AT

_ids: Final = itertools.count()


class RemovableHandle:
    """Removes a hook; as a context manager, at the end of the block.

    It keeps nothing alive but `remove`, which must hold nothing strongly either.

    Args:
        remove: Removes the hook; may be called more than once.

    Attributes:
        id: Unique in this process.

    Source: torch/utils/hooks.py, RemovableHandle.
    """

    def __init__(self, remove: Callable[[], None]) -> None:
        self.id = next(_ids)
        self._remove = remove

    def remove(self) -> None:
        """Remove the hook; may be called twice, and by the pass that calls the hook."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def append(owner: Any, name: str, entry: object) -> RemovableHandle:  # noqa: ANN401 - has the attribute
    """Append `entry` to a tuple of hooks by replacing the tuple (E3).

    Args:
        owner: Object that has the tuple.
        name: Attribute that holds the tuple.
        entry: The hook; if it is there twice, the handle removes both.

    Returns:
        A handle, which holds the owner weakly.
    """
    setattr(owner, name, (*getattr(owner, name), entry))
    return removing(owner, name, entry)


def removing(owner: Any, name: str, entry: object) -> RemovableHandle:  # noqa: ANN401 - as above
    """Return a handle that removes `entry` from a tuple of hooks; see `append`."""
    reference = weakref.ref(owner)

    def remove() -> None:
        if (alive := reference()) is not None:
            left = tuple(one for one in getattr(alive, name) if one is not entry)
            setattr(alive, name, left)

    return RemovableHandle(remove)


def named_like(
    call: Callable[..., Any], hook: Callable[..., Any]
) -> Callable[..., Any]:
    """Return `call` under the name and line of `hook`, which errors quote."""
    functools.update_wrapper(call, hook)
    setattr(call, REGISTERED_AT, LINES.of_caller())
    call.__name__ = getattr(hook, "__name__", "<unknown>")
    return call
