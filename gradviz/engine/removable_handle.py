"""What registering a hook returns."""

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any, Final, Self

_ids: Final = itertools.count()


class RemovableHandle:
    """Takes a hook away again; as a context manager, at the end of the block.

    It keeps nothing alive but `remove`, which must not either.

    Args:
        remove: Takes the hook away; may be called more than once.

    Attributes:
        id: Unique in this process.

    Source: torch/utils/hooks.py, RemovableHandle.
    """

    def __init__(self, remove: Callable[[], None]) -> None:
        self.id = next(_ids)
        self._remove = remove

    def remove(self) -> None:
        """Take the hook away; a pass that is calling it may call it once more."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def append(owner: Any, name: str, entry: object) -> RemovableHandle:  # noqa: ANN401 - has the attribute
    """Append `entry` to a tuple of hooks, by replacing it (E3).

    Args:
        owner: What has the tuple.
        name: The attribute.
        entry: The hook; if it is there twice, removing takes both away.

    Returns:
        A handle, which holds the owner weakly.
    """
    setattr(owner, name, (*getattr(owner, name), entry))
    return removing(owner, name, entry)


def removing(owner: Any, name: str, entry: object) -> RemovableHandle:  # noqa: ANN401 - as above
    """A handle that takes `entry` out of a tuple of hooks; see `append`."""
    reference = weakref.ref(owner)

    def remove() -> None:
        if (alive := reference()) is not None:
            left = tuple(one for one in getattr(alive, name) if one is not entry)
            setattr(alive, name, left)

    return RemovableHandle(remove)


def named_like(
    call: Callable[..., Any], hook: Callable[..., Any]
) -> Callable[..., Any]:
    """`call` under the name of `hook`, which errors quote."""
    functools.update_wrapper(call, hook)
    call.__name__ = getattr(hook, "__name__", "<unknown>")
    return call
