"""Names of running modules: nodes made while they run get those.

Note [Roots]
~~~~~~~~~~~~
The outermost module that was called is the model, or root. A path begins with the
root's name, and goes on with the name that ``root.named_modules()`` gives the module:
``Generator.layers.0``. The name is that of the class, numbered when there are several,
in the order in which they were first called: ``Linear``, ``Linear#2``; or what
`name_root` was given. No two roots ever have the same, even when one of them is gone,
so nodes of two models are never taken for those of one.

A parameter is called by the path of its module and its own name there, by each of them
if several modules share it: ``Generator.layers.0.weight``. It has these names itself,
from when the model is first called after a change of it, so that a leaf that was
replaced keeps the one that it had until then, and nobody has to look one up.

A module may be a root at one time and a part at another, or a part of two roots: it has
the path under which it runs.
"""

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from gradviz.engine.graph.basic_nodes import NAMES_IN_MODELS
from gradviz.engine.graph.node import MODULE_PATH, MODULE_PATHS
from gradviz.modes import undoing
from gradviz.trace import probe


class ModuleTree(Protocol):
    """A module, as far as it matters here."""

    def named_modules(self) -> Iterator[tuple[str, Any]]:
        """All modules and their names."""

    @property
    def _parameters(self) -> Mapping[str, Any]:
        """Its own parameters; some names may have None."""

    @property
    def _modules(self) -> dict[str, Any]:
        """The modules that it is made of; some names may have None."""


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

#: Modules that are shared at many levels have very many paths; so many are walked.
MAX_PATHS: Final = 100_000

#: The parameters that have names in each model.
_named: "weakref.WeakKeyDictionary[ModuleTree, list[weakref.ref[Any]]]" = (
    weakref.WeakKeyDictionary()
)

#: The parameters of each model that was described, until any module anywhere changes.
_described: "weakref.WeakKeyDictionary[ModuleTree, probe.Model]" = (
    weakref.WeakKeyDictionary()
)


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
        former = _roots.get(module)
        _roots[module] = _numbered(name)
        _known.pop(module, None)
        if former is not None:
            _forget_names(module, former)
    return module


def leaving() -> Callable[[], object]:
    """Return a function that ends the run of the next module to enter.

    It is a C function: see Note [Undone in one call] in `modes`.
    """
    if MODULE_PATHS.get() is None:
        return partial(list, undoing(MODULE_PATH, MODULE_PATHS))
    return partial(MODULE_PATH.set, MODULE_PATH.get())


def enter(module: ModuleTree) -> bool:
    """Begin to run `module` on this thread; return whether it is the outermost."""
    paths = MODULE_PATHS.get()
    if paths is not None:
        path = paths.get(id(module))
        # A module that belongs to no part of the model counts as the one that calls it.
        if path is not None:
            MODULE_PATH.set(path)
        return False
    paths = _paths_below(module)
    MODULE_PATH.set(paths[id(module)])
    MODULE_PATHS.set(paths)
    return True


def described(module: ModuleTree) -> probe.Model:
    """Return a running model's parameters, as reported to a listener."""
    model = _described.get(module)
    if model is None:
        model = _described[module] = _description(module, _roots[module])
    return model


def forget() -> None:
    """Some module got, or lost, a module below it."""
    if _known:
        _known.clear()
        _described.clear()


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
        _name_parameters(module, root)
        _known[module] = paths
    return paths


def _name_parameters(module: ModuleTree, root: str) -> None:
    """Give the parameters of a model their names, and those that left it none."""
    _forget_names(module, root)
    found: dict[int, tuple[Any, list[str]]] = {}
    pending: list[tuple[str, ModuleTree, frozenset[int]]] = [
        (root, module, frozenset())
    ]
    for _ in range(MAX_PATHS):
        if not pending:
            break
        path, one, above = pending.pop()
        for name, parameter in one._parameters.items():
            if parameter is not None:
                _, names = found.setdefault(id(parameter), (parameter, []))
                names.append(f"{path}.{name}")
        pending += [
            (f"{path}.{name}", below, above | {id(one)})
            for name, below in reversed(one._modules.items())
            if below is not None and id(below) not in above
        ]
    for parameter, names in found.values():
        of_models = parameter.__dict__.setdefault(NAMES_IN_MODELS, {})
        of_models[root] = tuple(names)
    _named[module] = [weakref.ref(parameter) for parameter, _ in found.values()]


def _description(module: ModuleTree, root: str) -> probe.Model:
    alive = [reference() for reference in _named.get(module, ())]
    found = [one for one in alive if one is not None]
    return probe.Model(
        root,
        tuple(
            probe.ModelParameter(
                one.__dict__.get(NAMES_IN_MODELS, {}).get(root, ()),
                tuple(one.shape),
                str(one.array.dtype),
                str(one.device),
                one.requires_grad,
            )
            for one in found[: probe.MAX_PARAMETERS]
        ),
        len(found),
    )


def _forget_names(module: ModuleTree, root: str) -> None:
    for reference in _named.pop(module, ()):
        if (former := reference()) is not None:
            former.__dict__.get(NAMES_IN_MODELS, {}).pop(root, None)


def _numbered(name: str) -> str:
    number = next(_numbers.setdefault(name, itertools.count(1)))
    return name if number == 1 else f"{name}#{number}"
