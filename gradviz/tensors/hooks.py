"""Hooks on tensors: functions that see a gradient on its way."""

import weakref
from collections.abc import Callable
from typing import Any

from gradviz.engine.graph.node import NodeHooks, TensorHook
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.graph.removable_handle import (
    RemovableHandle,
    append,
    named_like,
    removing,
)
from gradviz.ops.shapes.copying import clone
from gradviz.ops.variables.variable import Variable, as_flowing, as_tensor, variable

__all__ = [
    "RemovableHandle",
    "TensorHook",
    "register_hook",
    "register_post_accumulate_grad_hook",
    "retain_grad",
]


def register_hook(x: Variable, hook: TensorHook) -> RemovableHandle:
    """Call `hook` with the gradient of `x` whenever it was computed.

    The outputs of one op have their hooks called output by output, in the order in
    which the outputs got their first ones.

    Raises:
        RuntimeError: `x` needs no gradient.
    """
    _check_needs_grad(x)
    call = _with_tensors(hook)
    node = x.grad_fn
    # Its own hooks are those of a leaf, which `detach_` may make of `x`.
    here = append(x.own_hooks(), "pre", (0, call))
    if node is None:
        return here
    there = _add_to(node.hooks_to_add_to(), (x.output_nr, call))

    def remove() -> None:
        here.remove()
        there.remove()

    return RemovableHandle(remove)


def _add_to(hooks: NodeHooks, entry: tuple[int, TensorHook]) -> RemovableHandle:
    entries = (*hooks.tensor_pre, entry)
    outputs = list(dict.fromkeys(output_nr for output_nr, _ in entries))
    hooks.tensor_pre = tuple(sorted(entries, key=lambda one: outputs.index(one[0])))
    return removing(hooks, "tensor_pre", entry)


def register_post_accumulate_grad_hook(
    x: Variable, hook: Callable[[Any], object]
) -> RemovableHandle:
    """Call `hook` with the leaf `x` each time its ``.grad`` was updated (C13).

    Raises:
        RuntimeError: `x` needs no gradient, or is not a leaf.
    """
    _check_needs_grad(x)
    if x.grad_fn is not None:
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )

    # Each registration is an entry of its own, even of one and the same function.
    def entry(leaf: Any) -> object:  # noqa: ANN401 - the engine knows a leaf by protocol
        return hook(leaf)

    return append(x.own_hooks(), "post_accumulate", named_like(entry, hook))


def retain_grad(x: Variable) -> None:
    """Make backward fill the ``.grad`` of an op's result, as it does for a leaf.

    Raises:
        RuntimeError: `x` needs no gradient.
    """
    if not x.needs_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if x.grad_fn is None or x.retains_grad:
        return
    tensor = weakref.ref(x)  # the node would otherwise keep alive what keeps it alive

    def keep(gradient: Gradient) -> None:
        owner = tensor()
        if owner is None or gradient is None:
            return
        if isinstance(gradient, Variable):
            new = clone(gradient)
        else:
            new = variable(gradient.copy())
        owner.grad = new if owner.grad is None else owner.grad + new

    hooks = x.grad_fn.hooks_to_add_to()
    hooks.retains_grad[x.output_nr] = named_like(keep, retain_grad)


def _check_needs_grad(x: Variable) -> None:
    if not x.needs_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )


def _with_tensors(hook: TensorHook) -> TensorHook:
    """`hook` for the engine: called with a tensor whatever flows."""

    def call(gradient: Gradient) -> Gradient | None:
        return as_flowing(hook(as_tensor(gradient)))

    return named_like(call, hook)
