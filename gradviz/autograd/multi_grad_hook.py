"""One hook for the gradients of several tensors."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from gradviz.autograd.current_pass import current_graph_task_id, will_execute_node
from gradviz.locks import SafeLock
from gradviz.ops.variables.variable import Variable, gradient_edge
from gradviz.tensors.hooks import RemovableHandle, register_hook


def register_multi_grad_hook(
    tensors: Sequence[Variable],
    fn: Callable[[Any], object],
    *,
    mode: Literal["all", "any"] = "all",
) -> RemovableHandle:
    """Call `fn` once per pass, when gradients of `tensors` have been computed (C16).

    Args:
        tensors: The tensors.
        fn: With ``"all"`` it is called with a list of all gradients, None for those
            that the pass does not compute, after the last one. With ``"any"`` it is
            called with the first gradient.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle that removes the hook.

    Raises:
        ValueError: Another mode.
        RuntimeError: With ``"all"``, if a tensor needs no gradient.

    Source: torch/autograd/graph.py, register_multi_grad_hook.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    make = _all if mode == "all" else _any
    handles = make(tensors, fn)

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return RemovableHandle(remove)


class _Gathered(NamedTuple):
    """Gradients that have arrived in one pass.

    Attributes:
        gradients: One per tensor, None until it arrives.
        missing: A list as long as the number of gradients still to come.
    """

    gradients: list[Any]
    missing: list[None]


def _all(
    tensors: Sequence[Variable], fn: Callable[[Any], object]
) -> list[RemovableHandle]:
    nodes = [gradient_edge(one).node for one in tensors]
    passes: dict[int, _Gathered] = {}
    mutex = SafeLock()  # tensors may be on devices with threads of their own

    def gather(index: int, gradient: Any) -> None:  # noqa: ANN401 - a tensor or None
        task = current_graph_task_id()
        with mutex:
            gathered = passes.get(task)
            if gathered is None:
                count = sum(
                    node is not None and will_execute_node(node) for node in nodes
                )
                gathered = _Gathered([None] * len(nodes), [None] * count)
                passes[task] = gathered
            gathered.gradients[index] = gradient
            gathered.missing.pop()
            is_last = not gathered.missing
            if is_last:
                del passes[task]
        if is_last:
            fn(gathered.gradients)

    return [
        register_hook(one, functools.partial(gather, index))
        for index, one in enumerate(tensors)
    ]


def _any(
    tensors: Sequence[Variable], fn: Callable[[Any], object]
) -> list[RemovableHandle]:
    called: set[int] = set()
    mutex = SafeLock()

    @functools.wraps(fn)
    def call_once(gradient: Any) -> None:  # noqa: ANN401 - a tensor or None
        task = current_graph_task_id()
        with mutex:
            is_first = task not in called
            called.add(task)
        if is_first:
            fn(gradient)

    return [register_hook(one, call_once) for one in tensors if one.requires_grad]
