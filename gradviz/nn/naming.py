"""Which module of a model is running: nodes made meanwhile are called by it.

Note [Roots]
~~~~~~~~~~~~
The outermost module that was called is the model, or root. A path begins with the
root's name, and goes on with the name that ``root.named_modules()`` gives the module:
``Generator.layers.0``. The name is that of the class, numbered when there are several,
in the order in which they were first called: ``Linear``, ``Linear#2``; or what
`name_root` was given. No two roots ever have the same, even when one of them is gone,
so nodes of two models are never taken for those of one.

A module may be a root at one time and a part at another, or a part of two roots: it has
the path under which it runs.
"""

import itertools
import weakref
from collections.abc import Iterator, Mapping
from contextvars import Token
from typing import Any, Final, Protocol, TypeVar

from gradviz.engine.node import MODULE_PATH, MODULE_PATHS


class ModuleTree(Protocol):
    """A module, as far as it matters here."""

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """All modules and their names."""


M = TypeVar("M", bound=ModuleTree)

#: The names of those that have run as a root, or were given one.
_roots: Final[weakref.WeakKeyDictionary[ModuleTree, str]] = weakref.WeakKeyDictionary()

#: Numbers the roots of each name. Both tables are asked by `setdefault`, so that of
#: two threads one is first.
_numbers: Final[dict[str, Iterator[int]]] = {}

#: The paths in each model that has run, until any module anywhere changes.
_known: "weakref.WeakKeyDictionary[ModuleTree, Mapping[int, str]]" = (
    weakref.WeakKeyDictionary()
)

#: What `leave` has to undo.
PathTokens = tuple[Token[str], Token[Mapping[int, str] | None] | None]


def name_root(module: M, name: str) -> M:
    """Call a model by `name` in pictures and traces, instead of by its class.

    That is where the paths of its modules begin while it is the outermost one that
    runs. A name that another model has had is numbered.

    Args:
        module: The model.
        name: Without dots.

    Returns:
        `module`.

    Raises:
        ValueError: It is no such name.
    """
    if not name or "." in name or "#" in name:
        raise ValueError(
            f"got {name!r} as the name of a model, expected some text without '.', "
            f"which separates the names in a path, and '#', which precedes a number"
        )
    if _roots.get(module, "").partition("#")[0] != name:
        _roots[module] = _numbered(name)
        _known.pop(module, None)
    return module


def enter(module: ModuleTree) -> PathTokens:
    """`module` begins to run on this thread."""
    paths = MODULE_PATHS.get()
    if paths is not None:
        path = paths.get(id(module))
        # A module that belongs to no part of the model counts as the one that calls it.
        return MODULE_PATH.set(MODULE_PATH.get() if path is None else path), None
    paths = _paths_below(module)
    return MODULE_PATH.set(paths[id(module)]), MODULE_PATHS.set(paths)


def leave(entered: PathTokens) -> None:
    """The module that entered has run, or failed."""
    path, paths = entered
    MODULE_PATH.reset(path)
    if paths is not None:
        MODULE_PATHS.reset(paths)


def forget() -> None:
    """Some module got, or lost, a module below it."""
    if _known:
        _known.clear()


def _paths_below(module: ModuleTree) -> Mapping[int, str]:
    paths = _known.get(module)
    if paths is None:
        root = _roots.get(module)
        if root is None:
            root = _roots.setdefault(module, _numbered(type(module).__name__))
        paths = {
            id(one): f"{root}.{name}" if name else root
            for name, one in module.named_modules()
        }
        _known[module] = paths
    return paths


def _numbered(name: str) -> str:
    number = next(_numbers.setdefault(name, itertools.count(1)))
    return name if number == 1 else f"{name}#{number}"
