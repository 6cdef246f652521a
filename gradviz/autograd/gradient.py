"""Gradients as return values instead of in ``.grad``."""

import warnings

import numpy as np

from gradviz.engine import default_engine
from gradviz.engine.protocols import Gradient
from gradviz.ops.variable import Value, Variable, variable
from gradviz.tensors.backward import (
    Gradients,
    Variables,
    as_tuple,
    first_gradients,
    input_edges,
    output_edges,
)


def grad(  # noqa: PLR0913, PLR0917 - PyTorch's signature
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Value, ...]:
    """The sum of the gradients of `outputs` with respect to each of `inputs`.

    Nothing is added to any ``.grad``.

    Args:
        outputs: What to differentiate.
        inputs: With respect to what.
        grad_outputs: The gradient of each output; may be left out for a single
            element.
        retain_graph: Keep what was saved, for another backward; as `create_graph` if
            not given.
        create_graph: Record the backward itself, to differentiate it again.
        only_inputs: Deprecated by PyTorch and ignored, as there.
        allow_unused: Return None for an input that no output came from, instead of
            raising; as `materialize_grads` if not given.
        is_grads_batched: Not supported.
        materialize_grads: Return zeros instead of None.

    Returns:
        A tensor, or None, for each input.

    Raises:
        RuntimeError: As `backward`; or an input was not used, or needs no gradient.
        ValueError: `materialize_grads` without `allow_unused`.
        NotImplementedError: `is_grads_batched`, which needs vmap.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). "
            "To accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if is_grads_batched:
        raise NotImplementedError(
            "is_grads_batched=True needs vmap, which gradviz does not have; call grad "
            "once for each gradient instead"
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when "
            "materialize_grads=True, but got: allow_unused=False."
        )
    roots, wanted = as_tuple(outputs), as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    gradients = first_gradients(roots, grad_outputs, create_graph=create_graph)
    results = default_engine().execute(
        output_edges(roots),
        gradients,
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        accumulate_grad=False,
        outputs=input_edges(wanted),
    )
    if not (materialize_grads or allow_unused):
        _check_used(results)
    return tuple(
        _as_tensor(result, like if materialize_grads else None)
        for result, like in zip(results, wanted, strict=True)
    )


def _check_used(results: tuple[Gradient, ...]) -> None:
    for index, result in enumerate(results):
        if result is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been "
                f"used in the graph. Set allow_unused=True if this is the desired "
                f"behavior."
            )


def _as_tensor(result: Gradient, like: Variable | None) -> Value:
    if result is None:
        return None if like is None else variable(np.zeros_like(like.array))
    return result if isinstance(result, Variable) else variable(result)
