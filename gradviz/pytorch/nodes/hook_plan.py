"""Hooks of PyTorch's nodes: where they are kept, and which a pass is about to call.

A hook of a tensor or a node is an entry of a dict that PyTorch's engine looks at when
the node runs. Nothing here changes such a dict.

Note [Hooks that can be named]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A leaf tells its dicts. Of what an operator made nobody tells them: the tensor may be
gone, and its node keeps the dict in C++. So `hook_registrations` hears of each
registration and leaves a weak reference to the dict with the node. PyTorch calls the
hooks of a module in a hook of its own, which is told as those of the module. Hooks in
C++ are not to be seen; that of `DistributedDataParallel` is known from the module.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeAlias

from gradviz.pytorch.nodes.seen_node import (
    CPP_HOOK,
    DATA_PARALLEL,
    PlannedHook,
    PlannedHooks,
    SeenNode,
)
from gradviz.trace.probe import Hook
from gradviz.trace.reporting.hook_names import HookName, name_of

#: From the id of a hook to the hook, as PyTorch keeps them.
HookEntries: TypeAlias = Mapping[int, Callable[..., Any]]

#: Names of a hook, given the dict in which it is, its id there, and the hook.
LineOf: TypeAlias = Callable[[HookEntries, int], str]

#: PyTorch's hooks that call those of a module, by their qualified names.
_AFTER_INPUTS: Final = "BackwardHook._set_user_hook.<locals>.hook"
_AFTER_OUTPUTS: Final = "BackwardHook.setup_output_hook.<locals>.fn.<locals>.hook"
#: The one of several tensors that calls a function when all gradients are there.
_OF_SEVERAL: Final = "register_multi_grad_hook.<locals>.get_inner_hook.<locals>"


class _NamedHook(NamedTuple):
    """A hook and its name, before it has a number."""

    kind: Hook
    name: HookName


class HookPlan:
    """Names the hooks that a pass is about to call.

    Args:
        line_of: Finds the line that registered a hook.
        path_of: Finds what a module is called.
        of_modules: The module `torch.nn.modules.module`.
        parallel: Modules of the class `DATA_PARALLEL`.
    """

    def __init__(
        self,
        line_of: LineOf,
        path_of: Callable[[Any], str],
        of_modules: Any,  # noqa: ANN401 - PyTorch's
        parallel: Iterable[Any],
    ) -> None:
        self._line_of = line_of
        self._path_of = path_of
        self._of_modules = of_modules
        self._reduced = {
            id(parameter)
            for module in parallel
            for parameter in getattr(module, "_module_parameters", ())
            if parameter.requires_grad
        }

    def of_node(self, node: SeenNode) -> PlannedHooks | None:
        """Return the hooks of a node; None if it has none."""
        leaf = None if node.variable is None else node.variable()
        if not node.hooks and id(leaf) not in self._reduced:
            return None
        before: list[_NamedHook] = []
        pre: list[_NamedHook] = []
        inside: list[_NamedHook] = []
        after: list[_NamedHook] = []
        places = {
            Hook.TENSOR_PRE: before,
            Hook.PRE: pre,
            Hook.POST_ACCUMULATE_GRAD: inside,
            Hook.POST: after,
        }
        if id(leaf) in self._reduced:
            after.append(
                _NamedHook(Hook.POST, HookName(CPP_HOOK, target=DATA_PARALLEL))
            )
        for kind, reference in node.hooks:
            entries = reference()
            if entries is not None:
                for number, hook in list(entries.items()):
                    places[kind] += self._named(kind, entries, number, hook)
        if not (before or pre or inside or after):
            return None
        return PlannedHooks(
            _numbered([*before, *pre]), _numbered(inside), _numbered(after)
        )

    def _named(
        self,
        kind: Hook,
        entries: HookEntries,
        number: int,
        hook: Any,  # noqa: ANN401 - anything callable
    ) -> Iterator[_NamedHook]:
        """Name a hook, or those of a module that it calls."""
        if type(hook) is FunctionType:
            if hook.__qualname__ in (_AFTER_INPUTS, _AFTER_OUTPUTS):
                yield from self._of_module(hook)
                return
            if hook.__qualname__.startswith(_OF_SEVERAL):
                hook = _variable(hook, "fn") or hook
        elif type(hook).__name__ == "_WrappedHook":
            module = None if hook.module is None else hook.module()
            target = "" if module is None else self._path_of(module)
            kind, hook = Hook.MODULE, hook.hook
            yield _NamedHook(kind, name_of(hook, target))
            return
        line = self._line_of(entries, number)
        yield _NamedHook(kind, name_of(hook)._replace(registered_at=line))

    def _of_module(self, hook: FunctionType) -> Iterator[_NamedHook]:
        around = _variable(hook, "self")
        if around is None:
            return
        module, of_all = around.module, self._of_modules
        target = self._path_of(module)
        if hook.__qualname__ == _AFTER_OUTPUTS:
            own = module._backward_pre_hooks, of_all._global_backward_pre_hooks
            for one in around.user_pre_hooks:
                yield _NamedHook(Hook.MODULE_PRE, self._in_dicts(one, own, target))
            if around.input_tensors_index is not None:
                return
        own = module._backward_hooks, of_all._global_backward_hooks
        for one in around.user_hooks:
            yield _NamedHook(Hook.MODULE, self._in_dicts(one, own, target))

    def _in_dicts(
        self, hook: object, dicts: Iterable[HookEntries], target: str
    ) -> HookName:
        """Name a hook of a module by the dict that has it."""
        name = name_of(hook, target)
        for entries in dicts:
            for number, one in list(entries.items()):
                if one is hook:
                    return name._replace(registered_at=self._line_of(entries, number))
        return name


def _numbered(hooks: Iterable[_NamedHook]) -> tuple[PlannedHook, ...]:
    numbers: dict[Hook, int] = {}
    found = []
    for kind, name in hooks:
        index = numbers[kind] = numbers.get(kind, -1) + 1
        found.append(PlannedHook(kind, index, name))
    return tuple(found)


def _variable(function: FunctionType, name: str) -> Any:  # noqa: ANN401 - anything
    """Return a variable of a function's closure; None if there is none."""
    names = function.__code__.co_freevars
    if name not in names or function.__closure__ is None:
        return None
    try:
        return function.__closure__[names.index(name)].cell_contents
    except ValueError:  # it is empty
        return None
