"""From tensors to the engine and back: checks, first gradients, one call.

Source: torch/autograd/__init__.py, torch/csrc/autograd/python_engine.cpp (N6).
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from gradviz.backends.base import Array, copy_to
from gradviz.engine import default_engine
from gradviz.engine.graph.node import Edge, InputMetadata
from gradviz.engine.graph.protocols import Gradient
from gradviz.engine.threads.tracebacks import shorten
from gradviz.ops.conventions.silence import SILENT, put, setting
from gradviz.ops.variables.variable import Value, Variable, metadata_of, raw, variable
from gradviz.tensors.attributes.size import Size
from gradviz.tensors.gradient_edge import GradientEdge, TensorOrEdge, edge_of
from gradviz.tensors.hooks import retain_grad
from gradviz.trace import probe

#: One tensor or several; a `GradientEdge` may stand for each.
TensorsOrEdges: TypeAlias = TensorOrEdge | Sequence[TensorOrEdge]

#: With respect to what; of a dictionary, the values.
Inputs: TypeAlias = TensorsOrEdges | dict[Any, Variable]

#: One gradient for each of them; None stands for ones.
Gradients: TypeAlias = Variable | Sequence[Variable | None] | None


def backward(
    tensors: TensorsOrEdges,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Gradients = None,
    inputs: Inputs | None = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves they came from.

    Runs on the calling thread; work for other devices runs on theirs meanwhile.

    Args:
        tensors: Tensors to differentiate.
        grad_tensors: The gradient of each; may be left out for a single element.
        retain_graph: Keep what was saved, for another backward; as `create_graph` if
            not given.
        create_graph: Record the backward itself, to differentiate it again.
        grad_variables: PyTorch's old name of `grad_tensors`.
        inputs: Add only to the ``.grad`` of these, leaves or not; of a dictionary, of
            its values.

    Raises:
        RuntimeError: A tensor has no graph, several elements and no gradient, a
            gradient of another shape, or its graph was freed.
        TypeError: Something is not a tensor; `inputs` is a mapping, but no dictionary.
        Exception: Whatever an op or a hook raises.
    """
    if grad_variables is not None:
        grad_tensors = _renamed(grad_tensors, grad_variables)
    wanted = () if inputs is None else input_places(inputs, "backward")
    roots = as_tuple(tensors)
    gradients = first_gradients(roots, grad_tensors, create_graph=create_graph)
    edges = output_edges(roots)
    for one in wanted:
        if isinstance(one, Variable):
            retain_grad(one)
    heard = setting()
    try:
        put(SILENT)  # from here, so that the threads of devices inherit it
        default_engine().execute(
            edges,
            gradients,
            keep_graph=create_graph if retain_graph is None else retain_graph,
            create_graph=create_graph,
            accumulate_grad=True,
            outputs=input_edges(wanted),
        )
    except BaseException as error:
        shorten(error)
        raise
    finally:
        put(heard)


def _renamed(grad_tensors: Gradients, grad_variables: Gradients) -> Gradients:
    warnings.warn(
        "`grad_variables` is deprecated. Use `grad_tensors` instead.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_tensors is not None:
        raise RuntimeError(
            "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
            "`backward()`. Please only use `grad_tensors`."
        )
    return grad_variables


def as_tuple(value: TensorsOrEdges | Gradients) -> tuple[Any, ...]:
    """One or several things, or None for none, as a tuple."""
    if value is None:
        return ()
    if isinstance(value, (Variable, GradientEdge)):
        return (value,)
    return tuple(value)


def input_places(inputs: Inputs, function: str) -> tuple[TensorOrEdge, ...]:
    """Return the tensors and edges in `inputs`, one by one.

    Args:
        inputs: As the user gave it.
        function: Name of PyTorch's function that received it.

    Raises:
        TypeError: A mapping, but no dictionary.
        RuntimeError: There is none.
    """
    if type(inputs) is dict:
        places = tuple(inputs.values())
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not "
            f"{type(inputs).__name__}. Other Mapping types are not supported."
        )
    else:
        places = as_tuple(inputs)
    if not places:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    return places


def output_edges(outputs: Sequence[TensorOrEdge]) -> list[Edge]:
    """Return the edges of the gradients of the outputs.

    Raises:
        RuntimeError: An output has no graph.
    """
    edges = []
    for index, output in enumerate(outputs):
        edge = edge_of(output)
        if edge.node is None:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a "
                f"grad_fn"
            )
        edges.append(edge)
    return edges


def input_edges(inputs: Sequence[TensorOrEdge]) -> list[Edge]:
    """Return the edges of the gradients that the caller asks for.

    Raises:
        RuntimeError: An input needs no gradient, or is not a tensor.
    """
    edges = []
    for one in inputs:
        if not isinstance(one, (Variable, GradientEdge)):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got "
                f"{type(one).__name__}"
            )
        edge = edge_of(one)
        if edge.node is None:
            raise RuntimeError(
                "One of the differentiated Tensors does not require grad"
            )
        edges.append(edge)
    return edges


def first_gradients(
    outputs: Sequence[TensorOrEdge], given: Gradients, *, create_graph: bool
) -> list[Gradient]:
    """Return the gradient of each output: the given one, or 1 for one element.

    Returns:
        Raw arrays; variables if `create_graph`. None for an output that needs none,
        which is an error of its own; see `output_edges`.

    Raises:
        RuntimeError: One is missing, superfluous, or of another shape.
        TypeError: One is not a tensor.
    """
    gradients = [None] * len(outputs) if given is None else list(as_tuple(given))
    firsts = [
        _first(index, output, gradient)
        for index, (output, gradient) in enumerate(zip(outputs, gradients))  # noqa: B905 - checked next, as PyTorch does
    ]
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    if (listener := probe.current) is not None:
        _report_losses(listener, outputs)
    return firsts if create_graph else list(map(raw, firsts))


def _report_losses(listener: probe.Probe, outputs: Sequence[TensorOrEdge]) -> None:
    """Report a loss on the host that is not finite: one number, which costs no wait."""
    for index, output in enumerate(outputs):
        if not isinstance(output, Variable) or not isinstance(output.array, np.ndarray):
            continue
        array = output.array
        if array.size != 1 or array.dtype.kind != "f":
            continue
        if not math.isfinite(number := array.item()):
            node = -1 if output.grad_fn is None else output.grad_fn.id
            what, is_nan = probe.Checked.LOSS, math.isnan(number)
            listener.not_finite(
                *(-1, node, what, index, is_nan, False, "", "", -1, "", "", "")
            )
            return


def _first(index: int, output: TensorOrEdge, gradient: Value) -> Value:
    metadata = _metadata_of(index, output)
    if gradient is not None:
        _check_gradient(index, metadata, gradient)
        return gradient
    if isinstance(output, Variable) and not output.needs_grad:
        return None
    return variable(_ones(metadata))


def _metadata_of(index: int, output: TensorOrEdge) -> InputMetadata:
    if isinstance(output, Variable):
        return metadata_of(output.array)
    if not isinstance(output, GradientEdge):
        raise TypeError(
            f"expected each output to be a Tensor or a GradientEdge, but element "
            f"{index} is of type {type(output).__name__}"
        )
    metadata = output.node.input_metadata[output.output_nr]
    if metadata is None:
        raise RuntimeError(
            f"output {index} is an edge to {output.node!r}, which does not say what "
            f"gradient it expects there"
        )
    return metadata


def _ones(metadata: InputMetadata) -> Array:
    if prod(metadata.shape) != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if metadata.dtype.kind != "f":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got "
            f"{metadata.dtype}"
        )
    return copy_to(np.ones(metadata.shape, metadata.dtype), metadata.device)


def _check_gradient(index: int, output: InputMetadata, gradient: object) -> None:
    if not isinstance(gradient, Variable):
        raise TypeError(
            f"gradients can be either Tensors or None, but got "
            f"{type(gradient).__name__}"
        )
    array = gradient.array
    if array.shape != output.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of "
            f"{Size(array.shape)} and output[{index}] has a shape of "
            f"{Size(output.shape)}."
        )
    if (array.dtype.kind == "c") != (output.dtype.kind == "c"):
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have "
            f"the same dtype. Mismatch in dtype: grad_output[{index}] has a dtype of "
            f"{array.dtype} and output[{index}] has a dtype of {output.dtype}."
        )
