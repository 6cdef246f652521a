"""Backward hooks of modules: nodes around a module's part of the graph.

A module with backward hooks passes its tensor arguments, and its results, through a
node each that changes nothing. Where all gradients of that node are there together, the
hooks are called.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from gradviz.autograd.function import Function
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import MODULE_PATH, Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.threads.hook_calls import Around, ModuleHooks
from gradviz.ops.variables.variable import Variable, raw, variable
from gradviz.trace.probe import Hook
from gradviz.trace.reporting.hook_names import RegisteredHook

#: Takes the module, the gradients of its arguments, and those of its results.
BackwardHook = Callable[[Any, tuple[Gradient, ...], tuple[Gradient, ...]], Any]

#: Takes the module and the gradients of its results.
BackwardPreHook = Callable[[Any, tuple[Gradient, ...]], Any]

_NO_INPUTS: Final = (
    "Full backward hook is firing when gradients are computed with respect to module "
    "outputs since no inputs require gradients. See https://docs.pytorch.org/docs/main/"
    "generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for "
    "more details."
)


class BackwardHookFunction(Function):
    """Hands tensors on as they are, and their gradients.

    What it hands on are views that may not be changed in place, and whose memory may
    not be changed otherwise: the hooks would see the gradient of something else.

    Source: torch/nn/modules/_functions.py, BackwardHookFunction.
    """

    @staticmethod
    def forward(ctx: Any, *args: Variable) -> tuple[Variable, ...]:
        """The tensors themselves."""
        ctx.mark_non_differentiable(*[one for one in args if not one.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Gradient) -> tuple[Gradient, ...]:
        """The gradients themselves."""
        del ctx
        return grad_outputs


class PassThrough:
    """The two nodes around one call of a module, and the hooks that they call.

    Args:
        module: Module that is called.
        hooks: Its backward hooks.
        pre_hooks: Its backward pre-hooks.

    Source: torch/utils/hooks.py, BackwardHook.
    """

    def __init__(
        self,
        module: object,
        hooks: Sequence[RegisteredHook],
        pre_hooks: Sequence[RegisteredHook],
    ) -> None:
        self._module = module
        self._path = MODULE_PATH.get() or type(module).__name__
        self._hooks = hooks
        self._pre_hooks = pre_hooks
        self._num_inputs = 0
        self._inputs: Sequence[int] | None = None
        self._grad_outputs: tuple[Gradient, ...] | None = None

    def of_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with their tensors passed through a node."""
        self._num_inputs = len(args)
        passed, node, places = _pass_through(args)
        if node is not None:
            self._inputs = places
            node.hooks_to_add_to().post += (ModuleHooks(self._after_inputs),)
        return passed

    def of_outputs(self, result: Any) -> Any:
        """The result, with its tensors passed through a node."""
        if not isinstance(result, (Variable, tuple)):
            warnings.warn(
                f"For backward hooks to be called, module output should be a Tensor or "
                f"a tuple of Tensors but received {type(result)}",
                stacklevel=5,
            )
        outputs = result if isinstance(result, tuple) else (result,)
        passed, node, places = _pass_through(outputs)
        if node is not None:
            hook = self._before_outputs(places, len(outputs))
            node.hooks_to_add_to().pre += (ModuleHooks(hook),)
        return passed if isinstance(result, tuple) else passed[0]

    def _before_outputs(
        self, places: Sequence[int], num_outputs: int
    ) -> Callable[[Around, Sequence[Gradient]], Sequence[Gradient]]:
        def hook(around: Around, grads: Sequence[Gradient]) -> Sequence[Gradient]:
            grad_outputs = _spread(grads, places, num_outputs)
            for index, pre_hook in enumerate(self._pre_hooks):
                with around(Hook.MODULE_PRE, index, pre_hook, self._path):
                    changed = pre_hook.call(self._module, grad_outputs)
                if changed is not None:
                    grad_outputs = _checked(
                        changed, num_outputs, "Backward pre hook", "grad_output"
                    )
            if self._inputs is None:
                self._call_without_inputs(around, grad_outputs)
            else:
                self._grad_outputs = grad_outputs
            return _unwrapped(grad_outputs[place] for place in places)

        return hook

    def _after_inputs(
        self, around: Around, grads: Sequence[Gradient], _: Sequence[Gradient]
    ) -> Sequence[Gradient] | None:
        grad_outputs, self._grad_outputs = self._grad_outputs, None
        if grad_outputs is None or self._inputs is None:
            return None  # what arrived did not come through the module's results
        grad_inputs = _spread(grads, self._inputs, self._num_inputs)
        for index, hook in enumerate(self._hooks):
            with around(Hook.MODULE, index, hook, self._path):
                changed = hook.call(self._module, grad_inputs, grad_outputs)
            if changed is not None:
                grad_inputs = _checked(
                    changed, self._num_inputs, "Backward hook", "grad_input"
                )
        return _unwrapped(grad_inputs[place] for place in self._inputs)

    def _call_without_inputs(
        self, around: Around, grad_outputs: tuple[Gradient, ...]
    ) -> None:
        if self._hooks:
            warnings.warn(_NO_INPUTS, stacklevel=2)
        for index, hook in enumerate(self._hooks):
            with around(Hook.MODULE, index, hook, self._path):
                changed = hook.call(
                    self._module, (None,) * self._num_inputs, grad_outputs
                )
            if changed is not None and not (
                isinstance(changed, tuple) and all(one is None for one in changed)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should "
                    "always return None or None for all gradients."
                )


def _pass_through(
    values: Sequence[Any],
) -> tuple[tuple[Any, ...], Node | None, Sequence[int]]:
    """`values`, the node that its tensors pass, if any is needed, and their places."""
    places = [place for place, one in enumerate(values) if isinstance(one, Variable)]
    tensors: list[Variable] = [values[place] for place in places]
    if not (GRAD_ENABLED.get() and any(one.needs_grad for one in tensors)):
        return tuple(values), None, ()
    outputs = BackwardHookFunction.apply(*tensors)
    passed = list(values)
    for place, one in zip(places, outputs, strict=True):
        passed[place] = one
    node = next(one.grad_fn for one in outputs if one.needs_grad)
    return tuple(passed), node, places


def _spread(
    grads: Sequence[Gradient], places: Sequence[int], length: int
) -> tuple[Gradient, ...]:
    """Gradients as tensors, each in its place; None elsewhere."""
    spread: list[Gradient] = [None] * length
    for place, grad in zip(places, grads, strict=True):
        is_raw = grad is not None and not isinstance(grad, Variable)
        spread[place] = variable(grad) if is_raw else grad
    return tuple(spread)


def _unwrapped(grads: Any) -> tuple[Gradient, ...]:
    """Gradients as the engine passes them in this pass."""
    return tuple(grads) if GRAD_ENABLED.get() else tuple(map(raw, grads))


def _checked(
    changed: Any,
    expected: int,
    who: str,
    what: str,
) -> tuple[Gradient, ...]:
    grads = (changed,) if isinstance(changed, Variable) else tuple(changed)
    if len(grads) != expected:
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(grads)}, but "
            f"expected {expected}"
        )
    return grads
