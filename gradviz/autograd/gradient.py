"""Gradients as return values instead of in ``.grad``."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from gradviz.engine import default_engine
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.threads.tracebacks import shorten
from gradviz.ops.conventions.silence import SILENT, put, setting
from gradviz.ops.variables.variable import Value, Variable, variable
from gradviz.tensors.backward import (
    Gradients,
    Inputs,
    TensorsOrEdges,
    as_tuple,
    first_gradients,
    input_edges,
    input_places,
    output_edges,
)
from gradviz.tensors.gradient_edge import TensorOrEdge
from gradviz.tensors.tensor import Tensor


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: dict[Any, Variable],
    grad_outputs: Gradients = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: bool | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> dict[Any, Tensor]: ...


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: Gradients = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    allow_unused: Literal[False] | None = ...,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor, ...]: ...


@overload
def grad(
    outputs: TensorsOrEdges,
    inputs: TensorsOrEdges,
    grad_outputs: Gradients = ...,
    retain_graph: bool | None = ...,
    create_graph: bool = ...,
    only_inputs: bool = ...,
    *,
    allow_unused: bool,
    is_grads_batched: bool = ...,
    materialize_grads: bool = ...,
) -> tuple[Tensor | None, ...]: ...


def grad(  # noqa: PLR0913, PLR0917 - PyTorch's signature
    outputs: TensorsOrEdges,
    inputs: Inputs,
    grad_outputs: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Value, ...] | dict[Any, Value]:
    """Return the sum of the gradients of `outputs` with respect to each input.

    Nothing is added to any ``.grad``.

    Args:
        outputs: Tensors to differentiate; a `GradientEdge` may stand for each.
        inputs: With respect to what: as `outputs`, or a dictionary of tensors.
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
        A tensor, or None, for each input; by its key if they came in a dictionary.

    Raises:
        RuntimeError: As `backward`; or an input was not used, or needs no gradient.
        TypeError: As `backward`.
        ValueError: `materialize_grads` without `allow_unused`.
        NotImplementedError: `is_grads_batched`, which needs vmap.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when "
            "materialize_grads=True, but got: allow_unused=False."
        )
    roots, wanted = as_tuple(outputs), input_places(inputs, "grad")
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
    gradients = first_gradients(roots, grad_outputs, create_graph=create_graph)
    heard = setting()
    try:
        put(SILENT)  # as in `backward`
        results = default_engine().execute(
            output_edges(roots),
            gradients,
            keep_graph=create_graph if retain_graph is None else retain_graph,
            create_graph=create_graph,
            accumulate_grad=False,
            outputs=input_edges(wanted),
        )
    except BaseException as error:
        shorten(error)
        raise
    finally:
        put(heard)
    if not (materialize_grads or allow_unused):
        _check_used(results)
    tensors = tuple(map(_as_tensor, results))
    if materialize_grads:
        tensors = _materialized(tensors, wanted, requires_grad=create_graph)
    if isinstance(inputs, dict):
        return dict(zip(inputs, tensors, strict=True))
    return tensors


def _check_used(results: tuple[Gradient, ...]) -> None:
    for index, result in enumerate(results):
        if result is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been "
                f"used in the graph. Set allow_unused=True if this is the desired "
                f"behavior."
            )


def _as_tensor(result: Gradient) -> Value:
    if result is None or isinstance(result, Variable):
        return result
    return variable(result)


def _materialized(
    results: Sequence[Value], inputs: Sequence[TensorOrEdge], *, requires_grad: bool
) -> tuple[Value, ...]:
    """`results` with zeros in place of None."""

    def filled(result: Value, like: TensorOrEdge) -> Value:
        if result is not None:
            return result
        if not isinstance(like, Variable):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a "
                "GradientEdge"
            )
        zeros = variable(np.zeros_like(like.array))
        zeros.needs_grad = requires_grad
        return zeros

    return tuple(map(filled, results, inputs))
