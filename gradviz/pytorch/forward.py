"""Which module of a model is running, heard through hooks for all modules.

A node says nothing of the module that made it. Its sequence number does: while a module
runs, its thread gives out numbers that nobody else gets.

Paths and names are as those of gradviz's own modules: see Note [Roots] in `nn.naming`.
What is known of parameters is kept beside them, never on them: what a program saves
stays what it is.
"""

import itertools
import sys
import threading
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.ids import next_call_id
from gradviz.pytorch.names import PyTorch
from gradviz.trace import probe
from gradviz.trace.location import Locations

#: A module, or a tensor, of PyTorch's.
TorchModule: TypeAlias = Any
TorchParameter: TypeAlias = Any

#: The class of what `torch.compile` makes of a module, and what that warns of.
_COMPILED: Final = "OptimizedModule"
_WARNING: Final = r"Using `torch\.compile\(module\)` when there are global hooks"

#: So many changes are remembered of a thread; of more the older half is forgotten.
_MAX_CHANGES: Final = 200_000


class ForwardPlace(NamedTuple):
    """Where in a model nodes were made.

    Attributes:
        module: The path of the module that ran, empty outside of all.
        line: The line that called it, if it is one of PyTorch's own.
    """

    module: str
    line: str


_OUTSIDE: Final = ForwardPlace("", "")


class _RunningModule(NamedTuple):
    """A module that runs, and what was so before it did."""

    module: TorchModule
    before: ForwardPlace
    call: int
    listener: probe.Probe | None


class ForwardPlaces:
    """Where the nodes of one thread were made: from which number on, in which place."""

    def __init__(self) -> None:
        self.now = _OUTSIDE
        self._begins: list[int] = []
        self._places: list[ForwardPlace] = []

    def of(self, sequence_nr: int) -> ForwardPlace:
        """Where the node of this number was made, outside if that is not known."""
        at = bisect_right(self._begins, sequence_nr)
        return self._places[at - 1] if at else _OUTSIDE

    def move_to(self, place: ForwardPlace, sequence_nr: int) -> None:
        """The nodes from this number on are made at `place`."""
        self.now = place
        if self._begins and self._begins[-1] == sequence_nr:
            self._places[-1] = place  # nothing was made where it has been
            return
        if len(self._begins) >= _MAX_CHANGES:
            del self._begins[: _MAX_CHANGES // 2], self._places[: _MAX_CHANGES // 2]
        self._begins.append(sequence_nr)
        self._places.append(place)


class _RunningModules(threading.local):
    """What one thread's forwards were, and which go on."""

    def __init__(self) -> None:
        self.running: list[_RunningModule] = []
        self.places = ForwardPlaces()


class Models:
    """The models that have run, their names and those of their parameters. Any thread.

    It takes no lock: tables are asked by single calls into C, and made anew as a whole.
    """

    def __init__(self) -> None:
        weak = weakref.WeakKeyDictionary
        #: What each that has run as the outermost one is called.
        self._roots: weakref.WeakKeyDictionary[TorchModule, str] = weak()
        self._numbers: dict[str, Iterator[int]] = {}
        #: The paths below each of these, by the id of a module.
        self._paths: weakref.WeakKeyDictionary[TorchModule, dict[int, str]] = weak()
        #: Where parts of these are. A part that runs by itself, as one does that a
        #: checkpoint computes again, is called by that.
        self._parts: weakref.WeakKeyDictionary[TorchModule, str] = weak()
        #: Modules that ran inside of a model to which they do not belong.
        self._strangers: weakref.WeakSet[TorchModule] = weakref.WeakSet()
        #: id of a parameter -> a reference to it, and its names.
        self._names: dict[int, tuple[weakref.ref[TorchParameter], list[str]]] = {}

    def path_of(self, module: TorchModule, root: TorchModule) -> str | None:
        """The path of a module below the model that runs; None if it has none there."""
        paths = self._paths.get(root)
        if paths is not None and id(module) in paths:
            return paths[id(module)]
        if module in self._strangers:
            return None
        paths = self._paths[root] = self._paths_below(root)
        if id(module) not in paths:
            self._strangers.add(module)
        return paths.get(id(module))

    def _paths_below(self, root: TorchModule) -> dict[int, str]:
        model = self._roots.get(root)
        if model is None:
            name = self._parts.get(root) or self._numbered(type(root).__name__)
            model = self._roots.setdefault(root, name)
        paths = {}
        for name, one in root.named_modules():
            path = paths[id(one)] = f"{model}.{name}" if name else model
            self._parts.setdefault(one, path)
        self._name_parameters(root, model)
        return paths

    def names_of(self, leaf: TorchParameter) -> tuple[str, ...]:
        """What models call a leaf."""
        found = self._names.get(id(leaf))
        return tuple(found[1]) if found and found[0]() is leaf else ()

    def _name_parameters(self, root: TorchModule, model: str) -> None:
        names = self._names
        for key in [key for key, (one, _) in names.items() if one() is None]:
            names.pop(key, None)
        for path, parameter in root.named_parameters(remove_duplicate=False):
            known = names.get(id(parameter))
            if known is None or known[0]() is not parameter:
                known = names[id(parameter)] = (weakref.ref(parameter), [])
            if f"{model}.{path}" not in known[1]:
                known[1].append(f"{model}.{path}")

    def _numbered(self, name: str) -> str:
        number = next(self._numbers.setdefault(name, itertools.count(1)))
        return name if number == 1 else f"{name}#{number}"


class ForwardHooks:
    """The hooks by which it is heard what modules do.

    Args:
        names: Of PyTorch.
    """

    def __init__(self, names: PyTorch) -> None:
        self._names = names
        self.models = Models()
        self._of_thread = _RunningModules()
        self._locations: Locations[str] = Locations(lambda text: text)
        self._remove: list[Callable[[], None]] = []
        self._filter: object = None

    @property
    def places(self) -> ForwardPlaces:
        """Those of the calling thread."""
        return self._of_thread.places

    def install(self) -> None:
        """Begin to hear.

        Compiled modules warn of hooks for all modules, for theirs are called twice.
        Ours leave those modules alone, so there is nothing to be warned of.
        """
        warnings.filterwarnings("ignore", _WARNING, UserWarning)
        self._filter = warnings.filters[0]
        of_modules = self._names.of_modules
        before = of_modules.register_module_forward_pre_hook(self._begins)
        self._remove.append(before.remove)
        after = of_modules.register_module_forward_hook(self._ends, always_call=True)
        self._remove.append(after.remove)

    def remove(self) -> None:
        """Hear no more."""
        while self._remove:
            self._remove.pop()()
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]

    def _begins(self, module: TorchModule, args: object) -> None:
        # First, and alone: `torch.compile` follows this function, too, and takes for
        # granted that this is true.
        if self._names.is_compiling() or type(module).__name__ == _COMPILED:
            return
        del args
        listener, running = probe.current, self._of_thread.running
        places = self._of_thread.places
        path = self._path(module)
        is_torchs = type(module).__module__.startswith("torch.")
        line = self._locations.of_caller() if is_torchs else ""
        call = next_call_id()
        running.append(_RunningModule(module, places.now, call, listener))
        places.move_to(ForwardPlace(path, line), self._names.next_sequence_nr())
        if listener is not None:
            listener.forward_begun(call, path, type(module).__name__)

    def _ends(self, module: TorchModule, args: object, result: object) -> None:
        if self._names.is_compiling() or type(module).__name__ == _COMPILED:
            return
        del args
        running, places = self._of_thread.running, self._of_thread.places
        while running:  # one that raised may have said nothing
            ended = running.pop()
            places.move_to(ended.before, self._names.next_sequence_nr())
            if ended.listener is not None:
                has_failed = result is None and sys.exc_info()[0] is not None
                ended.listener.forward_ended(ended.call, has_failed)
            if ended.module is module:
                break

    def _path(self, module: TorchModule) -> str:
        running = self._of_thread.running
        root = running[0].module if running else module
        try:
            path = self.models.path_of(module, root)
        except Exception:  # noqa: BLE001 - `named_modules` may be a program's own
            path = None
        return self.places.now.module if path is None else path
