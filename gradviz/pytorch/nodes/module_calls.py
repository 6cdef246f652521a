"""Running modules of a model, heard through hooks for all modules.

Paths and names are as those of gradviz's own modules: see Note [Roots] in `nn.naming`.
What is known of parameters is kept beside them, never on them: what a program saves
stays what it is.
"""

import functools
import itertools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.error_origin import ForgivingModels, is_interrupt
from gradviz.pytorch.nodes.data_parallel import DataParallelModels
from gradviz.pytorch.nodes.owners import Owners
from gradviz.pytorch.nodes.places import ForwardPlace, ThreadPlaces
from gradviz.pytorch.torch_names import PyTorch
from gradviz.trace import probe
from gradviz.trace.probe import Tracking
from gradviz.trace.reporting.ids import next_call_id
from gradviz.trace.reporting.location import Locations

#: A module, or a tensor, of PyTorch's.
TorchModule: TypeAlias = Any
TorchParameter: TypeAlias = Any
TorchTensor: TypeAlias = Any

#: No more tensors of one call are looked at.
_MAX_TENSORS: Final = 32

# Python looks a member of an enum up by a call before version 3.12, and each call of a
# module asks for these.
_TRACKED: Final = Tracking.TRACKED
_UNKNOWN: Final = Tracking.UNKNOWN

#: The class of what `torch.compile` makes of a module, and what that warns of.
_COMPILED: Final = "OptimizedModule"
_WARNING: Final = r"Using `torch\.compile\(module\)` when there are global hooks"


class _RunningModule(msgspec.Struct, eq=False):
    """A running module, and the state before its call."""

    module: TorchModule
    before: ForwardPlace
    call: int
    listener: probe.Probe | None
    has_hooks: bool
    is_disabled: bool


class _RunningModules(threading.local):
    """Modules that run on one thread."""

    def __init__(self) -> None:
        self.running: list[_RunningModule] = []


class _MetModule(NamedTuple):
    """A module that has been called, and the facts to reuse at its next call.

    Attributes:
        module: A reference to it.
        root: And to the outermost module that ran then.
        place: Place at which its nodes are made, without a line.
        is_part: True if it belongs to that module, or is it.
        name: Of its class.
        is_torchs: True if that class is one of PyTorch's own.
    """

    module: weakref.ref[TorchModule]
    root: weakref.ref[TorchModule]
    place: ForwardPlace
    is_part: bool
    name: str
    is_torchs: bool


class Models:
    """The models that have run, their names and those of their parameters. Any thread.

    It takes no lock: tables are asked by single calls into C, and made anew as a whole.

    Args:
        model_of: Finds the model of a part or a parameter that did not run as one.
    """

    def __init__(
        self, model_of: Callable[[Any], TorchModule | None] = lambda _: None
    ) -> None:
        self._model_of = model_of
        weak = weakref.WeakKeyDictionary
        #: Names of modules that have run as the outermost one.
        self._roots: weakref.WeakKeyDictionary[TorchModule, str] = weak()
        self._numbers: dict[str, Iterator[int]] = {}
        #: The paths below each of these, by the id of a module.
        self._paths: weakref.WeakKeyDictionary[TorchModule, dict[int, str]] = weak()
        #: The modules of each of these.
        self._modules: weakref.WeakKeyDictionary[
            TorchModule, list[weakref.ref[TorchModule]]
        ] = weak()
        #: Places of their parts. A part that runs by itself, as one does that a
        #: checkpoint computes again, is called by that.
        self._parts: weakref.WeakKeyDictionary[TorchModule, str] = weak()
        #: The parameters of each model, until it gets other modules.
        self._described: weakref.WeakKeyDictionary[TorchModule, probe.Model] = weak()
        #: Modules that ran inside of a model to which they do not belong.
        self._strangers: weakref.WeakSet[TorchModule] = weakref.WeakSet()
        #: id of a parameter -> a reference to it, and its names.
        self._names: dict[int, tuple[weakref.ref[TorchParameter], list[str]]] = {}

    def begin(self) -> None:
        """Forget which models have run; they keep the names that they had."""
        self._paths.clear()
        self._names.clear()
        self._described.clear()

    def changed(self, module: TorchModule) -> None:
        """Describe models anew if a part of one of them has changed."""
        if module in self._parts:
            self._described.clear()

    def name_of(self, module: TorchModule) -> str:
        """Return the name of a module that ran."""
        return self._parts.get(module) or class_of(module)

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
            name = self._name_as_a_part(root) or self._numbered(class_of(root))
            model = self._roots.setdefault(root, name)
        self._described.pop(root, None)
        paths = {}
        modules = self._modules[root] = []
        for name, one in root.named_modules():
            modules.append(weakref.ref(one))
            path = paths[id(one)] = f"{model}.{name}" if name else model
            self._parts.setdefault(one, path)
        self._name_parameters(root, model)
        return paths

    def _name_as_a_part(self, module: TorchModule) -> str | None:
        """Name of a module within its model, None if it is a model itself."""
        if module not in self._parts:
            whole = self._model_of(module)
            if whole is not None and whole is not module:
                self._paths[whole] = self._paths_below(whole)
        return self._parts.get(module)

    def module_name(self, module: TorchModule) -> str:
        """Return the path of a module in a model that ran, else its class."""
        try:
            return self._parts.get(module) or class_of(module)
        except TypeError:  # it cannot be hashed
            return class_of(module)

    def roots(self) -> list[TorchModule]:
        """Return the models that have run."""
        return list(self._roots)

    def buffers(self) -> Iterator[TorchTensor]:
        """Yield the buffers of all models since `begin`."""
        for root in list(self._paths):
            for reference in self._modules.get(root, ()):
                module = reference()
                if module is not None:
                    own = vars(module).get("_buffers", {})
                    yield from (one for one in [*own.values()] if one is not None)

    def names_of(self, leaf: TorchParameter) -> tuple[str, ...]:
        """Names of a leaf; those of a parameter include models that never ran."""
        found = self._names.get(id(leaf))
        if (found is None or found[0]() is not leaf) and is_parameter(leaf):
            with ForgivingModels():
                model = self._model_of(leaf)
                if model is not None:
                    self._paths[model] = self._paths_below(model)
            found = self._names.get(id(leaf))
        return tuple(found[1]) if found and found[0]() is leaf else ()

    def meet(self, parameters: Iterable[TorchParameter]) -> None:
        """Name the models of some parameters, even if the models never run."""
        for one in parameters:
            if id(one) not in self._names:
                model = self._model_of(one)
                if model is not None and model not in self._paths:
                    self._paths[model] = self._paths_below(model)

    def tell(self, listener: probe.Probe) -> None:
        """Tell a listener of the parameters of all models since `begin`."""
        for root in list(self._paths):
            name = self._roots[root]
            if "." in name:
                continue  # a part of a model, which ran by itself
            model = self._described.get(root)
            if model is None:
                model = self._described[root] = _description(root, name)
            listener.model_defined(model)

    def name_own_parameters(
        self, parameters: dict[str, TorchParameter | None], path: str
    ) -> None:
        """Name a module's parameters as it starts to run.

        `torch.func.functional_call` gives it others for one call.
        """
        names = self._names
        try:
            for key, one in parameters.items():
                if one is not None:
                    known = names.get(id(one))
                    if known is None or known[0]() is not one:
                        self._note_name(one, f"{path}.{key}")
        except Exception as error:  # as `ForgivingModels`, which takes longer
            if is_interrupt(error):
                raise

    def _name_parameters(self, root: TorchModule, model: str) -> None:
        for path, parameter in root.named_parameters(remove_duplicate=False):
            self._note_name(parameter, f"{model}.{path}")

    def _note_name(self, parameter: TorchParameter, name: str) -> None:
        key, names = id(parameter), self._names
        known = names.get(key)
        if known is None or known[0]() is not parameter:
            # As in `Owners`, no Python code runs when a parameter goes.
            reference = weakref.ref(parameter, functools.partial(names.pop, key))
            known = names[key] = (reference, [])
        if name not in known[1]:
            known[1].append(name)

    def _numbered(self, name: str) -> str:
        number = next(self._numbers.setdefault(name, itertools.count(1)))
        return name if number == 1 else f"{name}#{number}"


def _description(root: TorchModule, model: str) -> probe.Model:
    """Return the parameters of a model; none if its own methods fail."""
    names: dict[int, list[str]] = {}
    found: dict[int, TorchParameter] = {}
    with ForgivingModels():
        for path, one in root.named_parameters(remove_duplicate=False):
            found[id(one)] = one
            names.setdefault(id(one), []).append(f"{model}.{path}")
    some = itertools.islice(found.items(), probe.MAX_PARAMETERS)
    parameters = (_parameter(one, names[key]) for key, one in some)
    return probe.Model(model, tuple(parameters), len(found))


def _parameter(one: TorchParameter, names: list[str]) -> probe.ModelParameter:
    shape = None
    with ForgivingModels():  # a lazy module has not run yet
        shape = tuple(one.shape)
    if shape is not None and not all(type(size) is int for size in shape):
        shape = None  # symbolic
    return probe.ModelParameter(
        tuple(names),
        shape,
        str(one.dtype).removeprefix("torch."),
        str(one.device),
        bool(one.requires_grad),
    )


def _tracking_of(names: PyTorch, values: Iterable[object]) -> Tracking:
    """Return the part that the tensors among some values have in a graph.

    No subclass of the program, and no mode, hears that the tensors are asked.
    """
    torch = names.torch
    some = list(itertools.islice(_tensors(values, torch.Tensor), _MAX_TENSORS))
    if not some:
        return Tracking.NO_TENSORS
    with names.no_torch_functions():
        if any(one.requires_grad for one in some):
            return Tracking.TRACKED
        if not torch.is_grad_enabled():
            return Tracking.DISABLED
        dtypes = {one.dtype for one in some}
    if not any(one.is_floating_point or one.is_complex for one in dtypes):
        return Tracking.INTEGERS
    return Tracking.UNTRACKED


def _tensors(values: Iterable[object], kind: type) -> Iterator[Any]:
    """Yield tensors, and those inside of plain containers.

    Others are left alone: what iterates over them may be the program's.
    """
    for value in values:
        if isinstance(value, kind):
            yield value
        elif type(value) in {tuple, list}:
            yield from (one for one in value if isinstance(one, kind))  # type: ignore[attr-defined]
        elif isinstance(value, dict):
            parts = dict.values(value)
            yield from (one for one in parts if isinstance(one, kind))


def class_of(module: TorchModule) -> str:
    """The name of a module's class; of one of TorchScript's, that of its source."""
    kind = type(module)
    if kind.__module__.startswith("torch.jit"):
        return str(getattr(module, "original_name", kind.__name__))
    return kind.__name__


def is_parameter(leaf: TorchParameter) -> bool:
    """Tell if a leaf is a parameter, and not an input that requires a gradient."""
    kind = type(leaf)
    return "Parameter" in kind.__name__ or getattr(leaf, "_is_param", False) is True


class ForwardHooks:
    """The hooks that hear the calls of modules.

    Args:
        names: Of PyTorch.
        begins: Called with the id of a call of a module, if it is the outermost that
            runs on its thread.
        ends: Called with that id when it has ended.
        keeps_lines: Tells if nodes keep lines of their own, so that the line that calls
            a module need not be looked for.
    """

    def __init__(
        self,
        names: PyTorch,
        begins: Callable[[int], None],
        ends: Callable[[int], None],
        keeps_lines: Callable[[], bool] = lambda: False,
    ) -> None:
        self._names = names
        self._keeps_lines = keeps_lines
        self._outermost_begins, self._outermost_ends = begins, ends
        torch = names.torch
        self._tensor, self._plain_parameters = torch.Tensor, {torch.nn.Parameter}
        self._is_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        #: Number of modes for functions that the program is in, on the calling thread.
        self._num_modes: Callable[[], int] = torch._C._len_torch_function_stack
        self._compiler = Compiler(names)
        self._compiler.skips(type(self)._begins, type(self)._ends)
        self._owners = Owners(names, self._changed)
        self.models = Models(self._owners.model_of)
        self.places = ThreadPlaces(names.thread_number)
        self.data_parallel = DataParallelModels(names)
        self._of_thread = _RunningModules()
        self._locations: Locations[str] = Locations(lambda text: text)
        self._remove: list[Callable[[], None]] = []
        #: By the id of a module. Any thread; changed by single calls into C.
        self._met: dict[int, _MetModule] = {}
        #: The hooks of calls that go on, or were interrupted.
        self._of_calls: dict[int, Any] = {}
        self._filter: object = None
        #: Path of a module -> whether each of its parameters required a gradient at its
        #: last call. Any thread; changed by single calls into C.
        self._required: dict[str, tuple[bool, ...]] = {}

    def install(self) -> None:
        """Begin to hear.

        Compiled modules warn of hooks for all modules, for theirs are called twice.
        Ours leave those modules alone, so there is nothing to be warned of.
        """
        warnings.filterwarnings("ignore", _WARNING, UserWarning)
        self._filter = warnings.filters[0]
        self.places.begin()
        self._of_thread = _RunningModules()
        self._met = {}
        self._required = {}
        of_modules = self._names.of_modules
        before = of_modules.register_module_forward_pre_hook(self._begins)
        self._remove.append(before.remove)
        after = of_modules.register_module_forward_hook(self._ends, always_call=True)
        self._remove.append(after.remove)
        self._owners.install()
        self.models.begin()

    def remove(self) -> None:
        """Hear no more."""
        while self._remove:
            self._remove.pop()()
        while self._of_calls:
            self._of_calls.popitem()[1].remove()
        self._owners.remove()
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]

    def now(self) -> tuple[ForwardPlace, int]:
        """Return the place of the calling thread, and its innermost call, or -1."""
        running = self._of_thread.running
        return self.places.of_caller().now, running[-1].call if running else -1

    def _changed(self, module: TorchModule) -> None:
        self._met.clear()
        self.models.changed(module)

    def _begins(self, module: TorchModule, args: object) -> None:
        # First, and alone: `torch.compile` follows this function, too, and takes for
        # granted that this is true.
        if self._names.is_compiling() or type(module).__name__ == _COMPILED:
            return
        self._compiler.call(self._note_begin, module, args)

    def _note_begin(self, module: TorchModule, args: object) -> None:
        listener, running = probe.current, self._of_thread.running
        places = self.places.of_caller()
        root = running[0].module if running else module
        met = self._met.get(id(module))
        if met is None or met.module() is not module or met.root() is not root:
            met = self._meet(module, root, places.now)
        own, place = vars(module), met.place
        if met.is_part and (parameters := own.get("_parameters")):
            self.models.name_own_parameters(parameters, place.module)
            if listener is not None:
                self._tell_required(listener, parameters, place.module)
        if met.is_torchs and not self._keeps_lines():
            place = ForwardPlace(place.module, self._locations.of_caller())
        call = next_call_id()
        has_hooks = bool(own.get("_forward_hooks")) and (
            self._end_after_hooks(module, call)
        )
        if listener is not None:
            # First: an interrupt may leave a call open, but end none that never began.
            arguments, line = self._arguments(args)
            listener.forward_begun(call, place.module, met.name, arguments, line)
        if not running:
            self._outermost_begins(call)
        is_disabled = not self._is_grad_enabled()
        running.append(
            _RunningModule(module, places.now, call, listener, has_hooks, is_disabled)
        )
        places.move_to(place, self._names.next_sequence_nr())

    def _arguments(self, args: object) -> tuple[Tracking, str]:
        """Return the part that arguments have in a graph, and the line that gave them.

        The line is looked for where gradients end: not below a module that runs without
        any.
        """
        tracking = _UNKNOWN
        if isinstance(args, tuple) and args:  # those by keyword are not told of
            tracking = self._tracking(args[0], args)
        running = self._of_thread.running
        if self._is_grad_enabled():
            is_end = tracking is not _TRACKED
        else:
            tracking = Tracking.DISABLED
            is_end = not running or not running[-1].is_disabled
        if is_end and self._keeps_lines():
            return tracking, self._locations.of_caller()
        return tracking, ""

    def _tracking(self, first: object, values: tuple[object, ...]) -> Tracking:
        """Return the part that some values have in a graph; `first` is one of them.

        The usual case, one tensor that requires a gradient, is told without a detour.
        """
        if type(first) is self._tensor and not self._num_modes():
            tensor: Any = first
            if tensor.requires_grad:
                return _TRACKED
        with ForgivingModels():
            return _tracking_of(self._names, values)
        return _UNKNOWN

    def _required_of(self, parameters: dict[str, Any]) -> tuple[bool, ...]:
        """Tell of each parameter if it requires a gradient; no subclass hears of it."""
        some = list(parameters.values())
        if set(map(type, some)) == self._plain_parameters and not self._num_modes():
            return tuple([one.requires_grad for one in some])
        with ForgivingModels(), self._names.no_torch_functions():
            return tuple([one is None or one.requires_grad for one in some])
        return (True,) * len(some)

    def _tell_required(
        self, listener: probe.Probe, parameters: dict[str, Any], path: str
    ) -> None:
        """Tell which parameters of a module have another ``requires_grad`` by now."""
        required = self._required_of(parameters)
        before = self._required.get(path)
        if required == before:
            return
        self._required[path] = required
        if before is None or len(before) != len(required):
            before = (True,) * len(required)
        for name, was, now in zip(parameters, before, required, strict=True):
            if was is not now:
                listener.requires_grad_set(f"{path}.{name}", now)

    def _meet(
        self, module: TorchModule, root: TorchModule, now: ForwardPlace
    ) -> _MetModule:
        """Find the facts needed at each call of a module, and keep them.

        One that does not belong to the model that runs has the place of its caller,
        which may be another one next time.
        """
        path = None
        with ForgivingModels():
            path = self.models.path_of(module, root)
        self.data_parallel.note(module)
        met = _MetModule(
            weakref.ref(module),
            weakref.ref(root),
            ForwardPlace(now.module if path is None else path, ""),
            path is not None,
            class_of(module),
            type(module).__module__.startswith("torch."),
        )
        if met.is_part:
            self._met[id(module)] = met
        return met

    def _ends(self, module: TorchModule, args: object, result: object) -> None:
        if self._names.is_compiling() or type(module).__name__ == _COMPILED:
            return
        del args
        self._compiler.call(self._note_end, module, result)

    def _note_end(self, module: TorchModule, result: object) -> None:
        running = self._of_thread.running
        if running and running[-1].module is module and running[-1].has_hooks:
            return  # they are still to come
        self._leave(module, result)

    def _leave(self, module: TorchModule, result: object) -> None:
        running, places = self._of_thread.running, self.places.of_caller()
        has_failed = result is None and sys.exc_info()[0] is not None
        next_sequence_nr = self._names.next_sequence_nr
        while running:  # one that raised may have said nothing
            ended = running.pop()
            number = next_sequence_nr()
            if ended.module is module and not has_failed:
                number += self._makes_a_node(module, result)
            places.move_to(ended.before, number)
            if ended.listener is not None:
                results = _UNKNOWN
                if ended.module is module and not has_failed:
                    results = self._tracking(result, (result,))
                ended.listener.forward_ended(ended.call, has_failed, results)
            if not running:
                self._outermost_ends(ended.call)
            if ended.module is module:
                break

    def _end_after_hooks(self, module: TorchModule, call: int) -> bool:
        """Hear of a module's end after its own hooks, which work for it.

        Hooks for all modules are called before those, so the last of them has to be one
        of ours, for this one call.
        """
        of_thread, of_calls = self._of_thread, self._of_calls
        thread = threading.get_ident()

        def ends(one: TorchModule, args: object, result: object) -> None:
            del args
            if thread != threading.get_ident():
                return  # the module runs on two threads, and this is the other one
            of_calls.pop(call, handle).remove()
            if any(other.call == call for other in of_thread.running):
                self._compiler.call(self._leave, one, result)

        self._compiler.skips(ends)
        handle = None
        with ForgivingModels():  # the module's class may not allow it
            handle = module.register_forward_hook(ends, always_call=True)
        if handle is None:
            return False
        of_calls[call] = handle
        return True

    def _makes_a_node(self, module: TorchModule, result: object) -> bool:
        """Return whether a module's backward hooks make a node of its results.

        Source: torch/nn/modules/module.py, _call_impl; torch/utils/hooks.py,
        BackwardHook._apply_on_tensors
        """
        of_modules, own = self._names.of_modules, vars(module)
        of_module, of_all = (
            own.get("_backward_hooks"),
            of_modules._global_backward_hooks,
        )
        if not (
            (of_module and own.get("_is_full_backward_hook") is not False)
            or own.get("_backward_pre_hooks")
            or (of_all and of_modules._global_is_full_backward_hook is not False)
            or of_modules._global_backward_pre_hooks
        ):
            return False
        torch = self._names.torch
        some = result if isinstance(result, tuple) else (result,)
        return torch.is_grad_enabled() and any(
            isinstance(one, torch.Tensor) and one.requires_grad for one in some
        )
