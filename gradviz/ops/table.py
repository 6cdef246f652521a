"""The table of all public names of ops, gathered from the modules that define them."""

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TypeAlias

from gradviz import ops
from gradviz.ops.dispatch.differentiable import Op
from gradviz.ops.dispatch.public import Home

#: The ops of each place, by the names that they have there.
OpTable: TypeAlias = dict[Home, dict[str, Op]]


def public(home: Home) -> Mapping[str, Op]:
    """Return the ops with a public name in a place, by that name."""
    return _table()[home]


def publish(home: Home, owner: type | ModuleType) -> list[str]:
    """Give a module or a class the public names of ops that belong there.

    Returns:
        The names.

    Raises:
        ImportError: It has one of its own already.
    """
    for name, op in public(home).items():
        if hasattr(owner, name):
            raise ImportError(
                f"{owner.__name__} defines {name!r} itself, and PUBLIC of a module of "
                f"ops names it too: remove one of them"
            )
        setattr(owner, name, op)
    return sorted(public(home))


def gathered(modules: Iterable[ModuleType]) -> OpTable:
    """Return the table of the ops in modules' lists ``PUBLIC``.

    Raises:
        ImportError: A name is said twice.
    """
    table: OpTable = {}
    said_by: dict[tuple[Home, str], str] = {}
    for module in modules:
        for home, name, op in getattr(module, "PUBLIC", ()):
            first = said_by.setdefault((home, name), module.__name__)
            if name in table.setdefault(home, {}):
                raise ImportError(
                    f"the public name {name!r} ({home.name}) is said twice, by PUBLIC "
                    f"of {first} and of {module.__name__}: remove one of them"
                )
            table[home][name] = op
    return table


@functools.cache
def _table() -> OpTable:
    modules = pkgutil.walk_packages(ops.__path__, f"{ops.__name__}.")
    return gathered(
        importlib.import_module(one.name) for one in modules if one.name != __name__
    )
