"""Hooks on tensors: functions that see a gradient on its way.

The engine calls hooks with what flows through it, which is raw arrays in a plain
backward; here they are put into tensors for the user's function, and back.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Self

from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.node import Node, NodeHooks
from gradviz.engine.protocols import Gradient
from gradviz.ops.variable import Variable, raw, variable

#: Takes the gradient, returns another in its place or None.
TensorHook = Callable[[Gradient], Gradient | None]


class RemovableHandle:
    """What a hook's registration returns: `remove` takes the hook away again.

    As a context manager it does so at the end of the block.
    """

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove = remove

    def remove(self) -> None:
        """Take the hook away; a pass that is calling it may call it once more."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_hook(x: Variable, hook: TensorHook) -> RemovableHandle:
    """Call `hook` with the gradient of `x` whenever it was computed.

    The outputs of one op have their hooks called output by output, in the order in
    which the outputs got their first ones.

    Raises:
        RuntimeError: `x` needs no gradient.
    """
    if not x.needs_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    node = x.grad_fn or x.accumulator(keep=True)
    hooks = _hooks_of(node)
    entry = (x.output_nr, _with_tensors(hook))
    entries = (*hooks.tensor_pre, entry)
    outputs = list(dict.fromkeys(output_nr for output_nr, _ in entries))
    hooks.tensor_pre = tuple(sorted(entries, key=lambda one: outputs.index(one[0])))

    def remove() -> None:
        hooks.tensor_pre = tuple(one for one in hooks.tensor_pre if one is not entry)

    return RemovableHandle(remove)


def retain_grad(x: Variable) -> None:
    """Have backward fill the ``.grad`` of what an op made; of a leaf it always does.

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
        new = gradient
        if not isinstance(gradient, Variable):
            new = variable(gradient.copy())
        owner.grad = new if owner.grad is None else owner.grad + new

    _hooks_of(x.grad_fn).retains_grad[x.output_nr] = keep


def _hooks_of(node: Node) -> NodeHooks:
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


def _with_tensors(hook: TensorHook) -> TensorHook:
    """`hook` for the engine: called with a tensor whatever flows."""

    def call(gradient: Gradient) -> Gradient | None:
        if gradient is None or isinstance(gradient, Variable):
            result = hook(gradient)
        else:
            result = hook(variable(gradient))
        return result if GRAD_ENABLED.get() else raw(result)

    # The engine names the hook in its errors; a callable object may have no name.
    return functools.update_wrapper(call, hook)
