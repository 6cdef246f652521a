"""Functions and classes of a process that a recording replaces, found by comparison."""

import sys
from types import FunctionType, ModuleType

#: What a module or a class has by a name: its id, since whoever has what makes locks is
#: taken for a program that makes its own.
Snapshot = dict[tuple[str, str], int]


def callables() -> Snapshot:
    """Return all callables in all loaded modules, and in their classes.

    Those of gradviz and of the tests are their own affair.
    """
    found = {}
    for module_name, module in tuple(sys.modules.items()):
        if not isinstance(module, ModuleType) or _is_ours(module_name):
            continue
        for name, value in tuple(vars(module).items()):
            if callable(value):
                found[module_name, name] = id(value)
            if issubclass(type(value), type) and not _is_ours(value.__module__):
                found.update(_methods(value))
    return found


def replaced(before: Snapshot) -> set[str]:
    """Return the names that were replaced, such as ``threading.Lock``."""
    now = callables()
    return {
        ".".join(key)
        for key, value in now.items()
        if key in before and before[key] != value
    }


def _methods(owner: type) -> Snapshot:
    where = f"{owner.__module__}.{owner.__qualname__}"
    return {
        (where, name): id(value)
        for name, value in tuple(type.__getattribute__(owner, "__dict__").items())
        if isinstance(value, FunctionType)
    }


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in {"gradviz", "tests"}
