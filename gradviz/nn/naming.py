"""Which module of a model is running: nodes made meanwhile are called by it.

The outermost module that was called is the model; what is below it has the name that
``model.named_modules()`` gives it, such as ``encoder.0.linear``.
"""

import weakref
from collections.abc import Iterator, Mapping
from contextvars import ContextVar, Token
from typing import Any, Final, Protocol

from gradviz.engine.module_path import MODULE_PATH


class Named(Protocol):
    """A module, as far as it matters here."""

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """All modules and their names."""


#: id of a module -> its name, for all modules of the model that runs; None outside.
_NAMES: Final[ContextVar[Mapping[int, str] | None]] = ContextVar(
    "gradviz.module_names", default=None
)

#: The names of each model that has run, until any module anywhere changes.
_known: "weakref.WeakKeyDictionary[Named, Mapping[int, str]]" = (
    weakref.WeakKeyDictionary()
)

#: What `leave` has to undo.
Entered = tuple[Token[str], Token[Mapping[int, str] | None] | None]


def enter(module: Named) -> Entered:
    """`module` begins to run on this thread."""
    names = _NAMES.get()
    if names is not None:
        name = names.get(id(module))
        # A module that belongs to no part of the model counts as the one that calls it.
        return MODULE_PATH.set(MODULE_PATH.get() if name is None else name), None
    names = _names_below(module)
    return MODULE_PATH.set(""), _NAMES.set(names)


def leave(entered: Entered) -> None:
    """The module that entered has run, or failed."""
    path, names = entered
    MODULE_PATH.reset(path)
    if names is not None:
        _NAMES.reset(names)


def forget() -> None:
    """Some module got, or lost, a module below it."""
    if _known:
        _known.clear()


def _names_below(module: Named) -> Mapping[int, str]:
    names = _known.get(module)
    if names is None:
        names = {id(one): name for name, one in module.named_modules()}
        _known[module] = names
    return names
