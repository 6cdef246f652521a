"""Registry of models, so that parameters and modules find theirs without a call.

A model that is not called, for its class has a `__call__` of its own or the program
calls another method, is heard of only when it is made: modules register their parts and
parameters, of which PyTorch's hooks tell. What was made before the recording is looked
for once, when the first parameter is met that nobody knows.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from gradviz.live_objects import instances_of
from gradviz.pytorch.error_origin import ForgivingModels
from gradviz.pytorch.torch_names import PyTorch

#: A module, or a part or parameter of one, of PyTorch's.
_Module: TypeAlias = Any
_Owned: TypeAlias = Any

#: Modules that only hold others, each of which is a model by itself.
_HOLDERS: Final = frozenset(
    {"ModuleDict", "ModuleList", "OptimizedModule", "ParameterDict", "ParameterList"}
)


class Owners:
    """Models by their parts. Any thread.

    It takes no lock: tables are changed by single calls into C, or made anew as a
    whole. A module is forgotten by C code too: Python drops an exception that a signal
    handler raises while a weak reference ends in Python code.

    Args:
        names: Of PyTorch.
        changed: Called with a module that gets a part or a parameter.
    """

    def __init__(self, names: PyTorch, changed: Callable[[_Module], None]) -> None:
        self._of_modules: Final = names.of_modules
        self._changed = changed
        self._remove: list[Callable[[], None]] = []
        #: Modules that have parts or parameters, by their ids.
        self._modules: dict[int, weakref.ref[_Module]] = {}
        #: id of a part or parameter -> a reference to it, and to its model.
        self._models: dict[int, tuple[weakref.ref[_Owned], weakref.ref[_Module]]] = {}
        self._is_complete = False
        #: True if modules that were made before the hooks are known too.
        self._has_searched = False

    def install(self) -> None:
        """Begin to hear of modules that are made."""
        of_modules = self._of_modules
        for register in (
            of_modules.register_module_module_registration_hook,
            of_modules.register_module_parameter_registration_hook,
        ):
            self._remove.append(register(self._registers).remove)
        self._has_searched = False

    def remove(self) -> None:
        """Hear no more."""
        while self._remove:
            self._remove.pop()()

    def model_of(self, one: _Owned) -> _Module | None:
        """The model to which a part or a parameter belongs; None if that is unknown."""
        model = self._known(one)
        if model is None and not self._is_complete:
            self._index()
            model = self._known(one)
        if model is None and not self._has_searched:
            self._search()
            self._index()
            model = self._known(one)
        return model

    def _known(self, one: _Owned) -> _Module | None:
        found = self._models.get(id(one))
        return found[1]() if found is not None and found[0]() is one else None

    def _registers(self, module: _Module, name: str, one: _Owned) -> None:
        """A hook: `one` becomes a part or a parameter of `module`."""
        del name, one
        self._note(module)
        self._changed(module)

    def _note(self, module: _Module) -> None:
        key, modules = id(module), self._modules
        known = modules.get(key)
        if known is None or known() is not module:
            modules[key] = weakref.ref(module, functools.partial(modules.pop, key))
        self._is_complete = False

    def _search(self) -> None:
        """Find the modules that were made before anybody listened."""
        for one in instances_of(self._of_modules.Module):
            self._note(one)
        self._has_searched = True  # an interrupt leaves it to be done again

    def _index(self) -> None:
        """Find the model of each part."""
        self._is_complete = True  # until a module is made, maybe meanwhile
        try:
            self._models = self._found()
        except BaseException:  # an interrupt leaves it to be done again
            self._is_complete = False
            raise

    def _found(self) -> dict[int, tuple[weakref.ref[_Owned], weakref.ref[_Module]]]:
        models: dict[int, tuple[weakref.ref[_Owned], weakref.ref[_Module]]] = {}
        for model in self._roots():
            reference = weakref.ref(model)
            with ForgivingModels():
                for part in model.modules():
                    models.setdefault(id(part), (weakref.ref(part), reference))
                for parameter in model.parameters():
                    owned = weakref.ref(parameter), reference
                    models.setdefault(id(parameter), owned)
        return models

    def _roots(self) -> list[_Module]:
        """The models: modules that are parts of none, in the order they were made.

        Those that only hold others come last, for what else they hold.
        """
        made = [reference() for reference in list(self._modules.values())]
        alive = sorted((one for one in made if one is not None), key=_holds_others)
        parts: set[int] = set()
        for one in alive:
            if not _holds_others(one):
                parts.update(map(id, _parts(one)))
        return [one for one in alive if id(one) not in parts]


def _holds_others(module: _Module) -> bool:
    return type(module).__name__ in _HOLDERS


def _parts(module: _Module) -> list[_Module]:
    """Modules that a module consists of, and those inside of pure containers."""
    found = [module]
    for one in found:  # grows while it is walked
        if one is module or _holds_others(one):
            with ForgivingModels():
                found += [part for part in one._modules.values() if part is not None]
    return found[1:]
