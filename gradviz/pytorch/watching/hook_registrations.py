"""Registrations of hooks in PyTorch, heard where their handles are made.

Each way to register a hook, on a tensor, a node or a module, makes a `RemovableHandle`.
Its ``__init__`` is replaced as long as a recording goes on: PyTorch's own runs first,
and then the line of the program is noted, and for a tensor's hook the node that will
call it. Neither the handle nor the dict of hooks is changed.

Note [Hooks of nodes]
~~~~~~~~~~~~~~~~~~~~~
`Node.register_hook` is C++: it hands the dict that the node has, or None, to a function
of Python's, and that makes a handle. Which node it is, that function is not told. Where
PyTorch itself registers, a variable of the caller is the node. Of other dicts it is
found before the next pass: each node of the graph is asked to register `_QUESTION`, and
the replaced ``__init__`` refuses, as soon as it has seen which dict the node has. So
nothing is registered. No node is asked where no dict is looked for.
Source: torch/csrc/autograd/python_cpp_function.cpp, registerFunctionHook.
"""

import functools
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from sys import _getframe
from types import FrameType
from typing import Any, Final

from gradviz.pytorch.compiler import Compiler
from gradviz.pytorch.nodes.graph_reader import add_hooks, functions_below
from gradviz.pytorch.nodes.seen_node import HookDict
from gradviz.pytorch.torch_names import PyTorch
from gradviz.trace.probe import Hook
from gradviz.trace.reporting.location import Locations

#: Object that nodes are asked to register in place of a hook; see Note [Hooks of
#: nodes].
_QUESTION: Final = object()

#: Variables of PyTorch's functions that register hooks on a node: that node.
_NODES: Final = ("grad_fn", "acc_grad")

#: Registrations that were removed are forgotten when a dict has so many of them.
_MAX_REMOVED: Final = 100


class OwnHook:
    """A hook of ours on a node; its registration is not reported."""

    __slots__ = ()


class _HasDictError(Exception):
    """Answers `_QUESTION`."""

    def __init__(self, entries: object) -> None:
        super().__init__()
        self.entries = entries


class HookRegistrations:
    """Notes where hooks are registered. Any thread.

    Args:
        names: Of PyTorch.
        compiler: Keeps Dynamo away.
    """

    def __init__(self, names: PyTorch, compiler: Compiler) -> None:
        self._names = names
        self._compiler = compiler
        self._handle: Any = names.of_hooks.RemovableHandle
        self._replaced: list[tuple[Any, Any]] = []
        self._folder = str(Path(names.torch.__file__).parent)
        self._locations: Locations[str] = Locations(lambda text: text)
        #: Of each dict of hooks the lines, by the ids of hooks. A dict takes its entry
        #: with it, by C code: Dynamo could trace another, which may end anywhere.
        #: Changed by single calls into C.
        self._lines: dict[int, tuple[weakref.ref[Any], dict[int, str]]] = {}
        #: Dicts of nodes that are not known.
        self._unplaced: dict[int, weakref.ref[Any]] = {}
        tensor, module = names.torch.Tensor, names.torch.nn.Module
        of_modules, mixin = names.of_modules, names.torch.autograd.function._HookMixin
        functions = {
            tensor.register_hook: self._of_tensor,
            tensor.register_post_accumulate_grad_hook: self._of_leaf,
            mixin._register_hook: self._of_node,
            module.register_backward_hook: None,
            module.register_full_backward_hook: None,
            module.register_full_backward_pre_hook: None,
            of_modules.register_module_backward_hook: None,
            of_modules.register_module_full_backward_hook: None,
            of_modules.register_module_full_backward_pre_hook: None,
        }
        #: Functions that place in a dict what one of these functions has registered, by
        #: the id of its code.
        self._registering: dict[int, Callable[[FrameType, Any], None] | None] = {
            id(function.__code__): place for function, place in functions.items()
        }

    def install(self) -> None:
        """Begin to hear."""
        original = self._handle.__init__
        ours = self._hearing(original)
        self._handle.__init__ = ours
        self._replaced.append((ours, original))

    def remove(self) -> None:
        """Stop listening; earlier registrations stay known."""
        while self._replaced:
            ours, original = self._replaced.pop()
            if self._handle.__init__ is ours:
                self._handle.__init__ = original

    def line_of(self, entries: object, number: int) -> str:
        """Return the line that registered a hook, empty if unknown."""
        found = self._lines.get(id(entries))
        if found is None or found[0]() is not entries:
            return ""
        return found[1].get(number, "")

    def place(self, roots: Iterable[Any]) -> None:
        """Find the nodes of dicts that were registered on some.

        Args:
            roots: Of a graph that has been read.
        """
        if not self._unplaced or not self._replaced:
            return
        for function in functions_below(roots):
            for register, kind in (
                (function.register_hook, Hook.POST),
                (function.register_prehook, Hook.PRE),
            ):
                try:
                    register(_QUESTION)
                except _HasDictError as answer:
                    entries = answer.entries
                    found = self._unplaced.pop(id(entries), None)
                    if found is not None and found() is entries:
                        add_hooks(function, HookDict(kind, found))
            if not self._unplaced:
                return

    def _hearing(self, original: Callable[..., None]) -> Callable[..., None]:
        """Return the replacement of a handle's ``__init__``."""
        registering, call, note = self._registering, self._compiler.call, self._note
        refuses = id(
            self._names.torch.autograd.function._HookMixin._register_hook.__code__
        )

        @functools.wraps(original)
        def __init__(self: Any, hooks_dict: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807
            frame = _getframe(1)
            of_code = id(frame.f_code)
            if of_code == refuses and frame.f_locals.get("hook") is _QUESTION:
                raise _HasDictError(hooks_dict)
            try:
                original(self, hooks_dict, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            is_ours = of_code == refuses and isinstance(
                frame.f_locals.get("hook"), OwnHook
            )
            if of_code in registering and not is_ours:
                call(note, frame, hooks_dict, self.id)

        self._compiler.skips(__init__)
        return __init__

    def _note(self, frame: FrameType, entries: Any, number: int) -> None:  # noqa: ANN401
        """Note a registration; whatever goes wrong is no matter of the program's."""
        try:
            key = id(entries)
            found = self._lines.get(key)
            if found is None or found[0]() is not entries:
                forget = functools.partial(self._lines.pop, key)
                found = self._lines[key] = weakref.ref(entries, forget), {}
                place = self._registering[id(frame.f_code)]
                if place is not None:
                    place(frame, found[0])
            reference, lines = found
            lines[number] = self._locations.of_caller()
            if len(lines) > len(entries) + _MAX_REMOVED:
                left = {one: lines[one] for one in (*entries, number) if one in lines}
                self._lines[key] = reference, left
        except Exception:  # noqa: BLE001 - the hook is told without its line
            pass

    def _of_tensor(self, frame: FrameType, reference: "weakref.ref[Any]") -> None:
        tensor = frame.f_locals["self"]
        with self._names.no_torch_functions(), self._names.no_dispatch():
            node = tensor.grad_fn
        add_hooks(
            tensor if node is None else node, HookDict(Hook.TENSOR_PRE, reference)
        )

    def _of_leaf(self, frame: FrameType, reference: "weakref.ref[Any]") -> None:
        kind = Hook.POST_ACCUMULATE_GRAD
        add_hooks(frame.f_locals["self"], HookDict(kind, reference))

    def _of_node(self, frame: FrameType, reference: "weakref.ref[Any]") -> None:
        """Place a dict of a node; see Note [Hooks of nodes]."""
        caller = frame.f_back
        if caller is not None and caller.f_code.co_filename.startswith(self._folder):
            names = set(caller.f_code.co_names)
            is_post = "register_hook" in names
            if is_post != ("register_prehook" in names):
                variables = caller.f_locals
                node = next(
                    (variables[one] for one in _NODES if one in variables), None
                )
                if hasattr(type(node), "next_functions"):
                    kind = Hook.POST if is_post else Hook.PRE
                    add_hooks(node, HookDict(kind, reference))
                    return
        entries = reference()
        if entries is not None:
            key, unplaced = id(entries), self._unplaced
            forget = functools.partial(unplaced.pop, key)
            unplaced[key] = weakref.ref(entries, forget)
