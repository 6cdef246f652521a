"""Backwards that cannot be differentiated themselves, and raise if they are."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gradviz.autograd.grad_mode import no_grad
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge, Node
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.variables.node_hooks import Hookable
from gradviz.ops.variables.variable import (
    Variable,
    gradient_edge,
    metadata_of,
    variable,
)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that is not to be differentiated itself.

    It runs with gradient mode off; differentiating its results raises an error. Source:
    torch/autograd/function.py, once_differentiable.
    """

    @functools.wraps(fn)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the user's
        with no_grad():
            outputs = fn(ctx, *args, **kwargs)
        needs_grad = any(isinstance(arg, Variable) and arg.needs_grad for arg in args)
        if not (GRAD_ENABLED.get() and needs_grad):
            return outputs
        is_tuple = isinstance(outputs, tuple)
        delayed = delay_error(
            "trying to differentiate twice a function that was marked with "
            "@once_differentiable",
            tuple(map(_leaf_of, outputs if is_tuple else (outputs,))),
        )
        return delayed if is_tuple else delayed[0]

    return call


class Error(Hookable, Node):
    """A node that raises instead of computing gradients.

    Source: torch/csrc/autograd/functions/basic_ops.h, struct Error.
    """

    __slots__ = ("message",)

    message: str

    def apply(self, *grads: Gradient) -> NoReturn:
        """Raise.

        Raises:
            RuntimeError: Always.
        """
        del grads
        raise RuntimeError(self.message)


def delay_error(message: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return `values`, with new tensors whose node is an `Error`."""
    node = Error(
        map(gradient_edge, values),
        [
            metadata_of(one.array) if isinstance(one, Variable) else None
            for one in values
        ],
    )
    node.message = message
    return tuple(
        variable(one.array, Edge(node, index)) if isinstance(one, Variable) else one
        for index, one in enumerate(values)
    )


def _leaf_of(value: Any) -> Any:  # noqa: ANN401 - what the user returned
    """Return a leaf behind an `Error`, so that a pass needs it."""
    if not isinstance(value, Variable):
        return value
    leaf = variable(value.array)
    leaf.needs_grad = True
    return leaf
