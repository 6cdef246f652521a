"""From tensors to the engine and back: checks, first gradients, one call.

Source: torch/autograd/__init__.py, torch/csrc/autograd/python_engine.cpp (N6).
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from gradviz.engine import default_engine
from gradviz.engine.node import Edge
from gradviz.engine.protocols import Gradient
from gradviz.ops.variable import Value, Variable, gradient_edge, raw, variable
from gradviz.tensors.hooks import retain_grad

#: One tensor or several.
Variables: TypeAlias = Variable | Sequence[Variable]

#: One gradient for each of them; None stands for ones.
Gradients: TypeAlias = Variable | Sequence[Variable | None] | None


def backward(
    tensors: Variables,
    grad_tensors: Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    *,
    inputs: Variables | None = None,
) -> None:
    """Add the gradients of `tensors` to the ``.grad`` of the leaves they came from.

    Runs on the calling thread; work for other devices runs on theirs meanwhile.

    Args:
        tensors: What to differentiate.
        grad_tensors: The gradient of each; may be left out for a single element.
        retain_graph: Keep what was saved, for another backward; as `create_graph` if
            not given.
        create_graph: Record the backward itself, to differentiate it again.
        inputs: Add only to the ``.grad`` of these, leaves or not.

    Raises:
        RuntimeError: A tensor has no graph, several elements and no gradient, a
            gradient of another shape, or its graph was freed.
        Exception: Whatever an op or a hook raises.
    """
    outputs = as_tuple(tensors)
    wanted = as_tuple(inputs)
    if inputs is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    gradients = first_gradients(outputs, grad_tensors, create_graph=create_graph)
    roots = output_edges(outputs)
    for one in wanted:
        retain_grad(one)
    edges = input_edges(wanted)
    default_engine().execute(
        roots,
        gradients,
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        accumulate_grad=True,
        outputs=edges,
    )


def as_tuple(value: Gradients) -> tuple[Any, ...]:
    """One or several things, or None for none, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, Variable) else tuple(value)


def output_edges(outputs: Sequence[Variable]) -> list[Edge]:
    """Where the gradients of the outputs go.

    Raises:
        RuntimeError: An output has no graph.
    """
    edges = []
    for index, output in enumerate(outputs):
        edge = gradient_edge(output)
        if edge.node is None:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a "
                f"grad_fn"
            )
        edges.append(edge)
    return edges


def input_edges(inputs: Sequence[Variable]) -> list[Edge]:
    """Where the gradients arrive that the caller asks for.

    Raises:
        RuntimeError: An input needs no gradient.
    """
    edges = [gradient_edge(one) for one in inputs]
    if any(edge.node is None for edge in edges):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edges


def first_gradients(
    outputs: Sequence[Variable], given: Gradients, *, create_graph: bool
) -> list[Gradient]:
    """The gradient of each output: what was given, or 1 for a single element.

    Returns:
        Raw arrays; variables if `create_graph`. None for an output that needs none,
        which is an error of its own; see `output_edges`.

    Raises:
        RuntimeError: One is missing, superfluous, or of another shape.
        TypeError: One is no tensor.
    """
    gradients = [None] * len(outputs) if given is None else list(as_tuple(given))
    firsts = [
        _first(index, output, gradient)
        for index, (output, gradient) in enumerate(zip(outputs, gradients))  # noqa: B905 - checked next, as PyTorch does
    ]
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    return firsts if create_graph else list(map(raw, firsts))


def _first(index: int, output: Variable, gradient: Value) -> Value:
    if gradient is not None:
        _check_gradient(index, output, gradient)
        return gradient
    return _one(output) if output.needs_grad else None


def _one(output: Variable) -> Value:
    array = output.array
    if array.size != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if array.dtype.kind != "f":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got "
            f"{array.dtype}"
        )
    return variable(np.ones_like(array))


def _check_gradient(index: int, output: Variable, gradient: object) -> None:
    if not isinstance(gradient, Variable):
        raise TypeError(
            f"gradients can be either Tensors or None, but got "
            f"{type(gradient).__name__}"
        )
    if gradient.array.shape != output.array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of "
            f"{list(gradient.array.shape)} and output[{index}] has a shape of "
            f"{list(output.array.shape)}."
        )
