"""Inputs and results of functions of functions.

Source: torch/autograd/functional.py.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from gradviz.autograd.functional_checks import checked_tuple
from gradviz.autograd.gradient import grad
from gradviz.ops.variables.variable import Value

#: Takes tensors; returns a tensor or a tuple of them.
Func: TypeAlias = Callable[..., Any]

#: A tensor or a tuple of them.
Tensors: TypeAlias = Value

#: Name of the results of the user's function in messages.
RESULT: Final = "outputs of the user-provided function"


def leaves(
    what: str, given: Tensors, name: str, *, create_graph: bool
) -> tuple[bool, tuple[Value, ...]]:
    """Return tensors to differentiate by, and whether they came in a tuple."""
    is_tuple, tensors = checked_tuple(what, given, name)
    return is_tuple, tuple(
        one.view_as(one)
        if create_graph and one.requires_grad
        else one.detach().requires_grad_()
        for one in tensors
    )


def constants(
    vector: Sequence[Value] | None, *, create_graph: bool
) -> Sequence[Value] | None:
    """Return a given vector, recorded only if the caller may differentiate it."""
    if vector is None:
        return None
    return tuple(
        one if create_graph and one.requires_grad else one.detach() for one in vector
    )


def gradients(
    outputs: Sequence[Value],
    inputs: tuple[Value, ...],
    vector: Sequence[Value] | None,
    *,
    create_graph: bool,
    retain_graph: bool | None = None,
) -> tuple[Value, ...]:
    """Return `grad` of the differentiable outputs; None for each input if none is."""
    vector = vector or (None,) * len(outputs)
    pairs = [
        (output, first)
        for output, first in zip(outputs, vector, strict=True)
        if output is not None and output.requires_grad
    ]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [output for output, _ in pairs],
        inputs,
        [first for _, first in pairs],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


def finished(tensors: Sequence[Value], create_graph: bool) -> tuple[Value, ...]:
    """Return the tensors for the caller: detached unless differentiated again."""
    return tuple(one if create_graph else one.detach() for one in tensors)


def as_given(values: tuple[Any, ...], is_tuple: bool) -> Any:  # noqa: ANN401 - a tensor or a tuple
    """Return a tuple if the caller had one, its only element otherwise."""
    return values if is_tuple else values[0]
