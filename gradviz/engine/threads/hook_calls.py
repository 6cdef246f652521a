"""Calls of a node's hooks, and checks of their results."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias

from gradviz.engine.graph.basic_nodes import AccumulateGrad
from gradviz.engine.graph.node import Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.tasks.graph_task import GraphTask
from gradviz.trace.probe import Hook
from gradviz.trace.reporting.hook_names import name_of

#: Takes a kind, an index, a hook and its module's path; returns a block that reports
#: the call of that hook.
Around: TypeAlias = Callable[[Hook, int, object, str], AbstractContextManager[None]]


class ModuleHooks:
    """A node hook that calls a module's hooks, which are reported in its place.

    Args:
        call: Called with `Around` and the arguments of the node's hook.
    """

    def __init__(self, call: Callable[..., Sequence[Gradient] | None]) -> None:
        self.call = call

    def __call__(self, *gradients: Sequence[Gradient]) -> Sequence[Gradient] | None:
        """Call the hooks of the module, without reports."""
        return self.call(lambda *_: contextlib.nullcontext(), *gradients)


def call_tensor_pre_hooks(
    graph_task: GraphTask, node: Node, inputs: list[Gradient]
) -> list[Gradient]:
    """Run the hooks of the node's outputs, then those that retain their gradients.

    They run for undefined gradients too, which they receive as None (E3). Source:
    torch/csrc/autograd/engine.cpp, call_tensor_pre_hooks.
    """
    hooks = node.hooks
    if hooks is None:
        return inputs
    tensor_pre, retains_grad = hooks.tensor_pre, tuple(hooks.retains_grad.items())
    for index, (input_nr, hook) in enumerate(tensor_pre):
        with _calling(graph_task, node, Hook.TENSOR_PRE, index, hook):
            _replace(hook, inputs, input_nr, hook(inputs[input_nr]))
    for index, (input_nr, hook) in enumerate(retains_grad):
        with _calling(graph_task, node, Hook.RETAINS_GRAD, index, hook):
            _replace(hook, inputs, input_nr, hook(inputs[input_nr]))
    return inputs


def call_pre_hooks(
    graph_task: GraphTask, node: Node, inputs: list[Gradient]
) -> list[Gradient]:
    """Run the hooks that see all gradients before the node does.

    Source: torch/csrc/autograd/engine.cpp, call_pre_hooks.
    """
    hooks = node.hooks
    if hooks is None:
        return inputs
    for index, hook in enumerate(hooks.pre):
        with _calling(graph_task, node, Hook.PRE, index, hook):
            result = _result(graph_task, node, hook, tuple(inputs))
            if result is not None:
                inputs = list(_checked(hook, inputs, result))
    return inputs


def call_post_hooks(
    graph_task: GraphTask,
    node: Node,
    outputs: Sequence[Gradient],
    inputs: Sequence[Gradient],
) -> Sequence[Gradient]:
    """Run the hooks that see the gradients the node returned and received.

    Source: torch/csrc/autograd/engine.cpp, call_post_hooks.
    """
    hooks = node.hooks
    if hooks is None:
        return outputs
    for index, hook in enumerate(hooks.post):
        with _calling(graph_task, node, Hook.POST, index, hook):
            result = _result(graph_task, node, hook, tuple(outputs), tuple(inputs))
            if result is not None:
                outputs = _checked(hook, outputs, result)
    return outputs


def call_post_accumulate_grad_hooks(
    graph_task: GraphTask, node: AccumulateGrad
) -> None:
    """Run the hooks of a leaf whose ``.grad`` is up to date (C13)."""
    kind = Hook.POST_ACCUMULATE_GRAD
    node.call_post_hooks(
        lambda index, hook: _calling(graph_task, node, kind, index, hook)
    )


def _result(
    graph_task: GraphTask,
    node: Node,
    hook: Callable[..., Sequence[Gradient] | None],
    *gradients: Sequence[Gradient],
) -> Sequence[Gradient] | None:
    """Return the result of a hook of a node."""
    if isinstance(hook, ModuleHooks):
        around = functools.partial(_calling, graph_task, node)
        return hook.call(around, *gradients)
    return hook(*gradients)


@contextlib.contextmanager
def _calling(
    graph_task: GraphTask,
    node: Node,
    kind: Hook,
    index: int,
    hook: object,
    target: str = "",
) -> Iterator[None]:
    """Report the call of a hook and its return; its error names the node.

    For a hook that calls a module's hooks, those are reported instead.
    """
    probe = None if isinstance(hook, ModuleHooks) else graph_task.probe
    if probe:
        probe.hook_called(graph_task.id, node.id, kind, index, *name_of(hook, target))
    try:
        yield
    except Exception as error:
        error.add_note(f"in {kind.name.lower()} hook {index} of {node!r}")
        raise
    if probe:
        probe.hook_returned(graph_task.id, node.id, kind, index)


def _replace(
    hook: object, inputs: list[Gradient], input_nr: int, result: Gradient
) -> None:
    if result is not None:
        _check_value(hook, inputs[input_nr], result)
        inputs[input_nr] = result


def _checked(
    hook: object, before: Sequence[Gradient], result: object
) -> Sequence[Gradient]:
    """Return a hook's result for several gradients, always as a sequence (G16)."""
    after = result if isinstance(result, (tuple, list)) else (result,)
    if len(after) != len(before):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values "
            f"(got {len(after)}, but expected {len(before)})"
        )
    for old, new in zip(before, after, strict=True):
        _check_value(hook, old, new)
    return after


def _check_value(hook: object, before: Gradient, after: Gradient) -> None:
    """Refuse a replacement of another kind (G16).

    Source: torch/csrc/autograd/python_hook.cpp, check_single_result.
    """
    if after is None:
        return
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not hasattr(before, "shape"):
        return
    if not hasattr(after, "shape"):
        raise TypeError(
            f"expected Variable, but hook returned '{type(after).__name__}'"
        )
    for kind in ("dtype", "device"):
        was, got = getattr(before, kind, None), getattr(after, kind, None)
        if was != got:
            raise RuntimeError(
                f"hook '{_name(hook)}' has changed the type of value (was {was} "
                f"got {got})"
            )
    if before.shape != after.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")


def _name(hook: object) -> str:
    return getattr(hook, "__name__", type(hook).__name__)
