"""The nodes that memory with views gets when it is changed in place.

See Note [Views and the graph] in `gradviz.ops.recording.view`.
"""

from collections.abc import Sequence

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.grad_mode import GRAD_ENABLED
from gradviz.engine.node import Edge, Node, next_sequence_nr
from gradviz.engine.protocols import Gradient
from gradviz.ops.recording.differentiable import differentiable
from gradviz.ops.recording.node_hooks import Hookable
from gradviz.ops.recording.variable import (
    NOWHERE,
    Variable,
    gradient_edge,
    metadata_of,
    raw,
    variable,
)
from gradviz.ops.recording.view import View, regeneration, replay


class CopySlices(Hookable, Node):
    """The node of a base after one of its views was changed in place.

    It takes the gradient of the whole base. The part that the view shows goes through
    the node of the op in place, the rest on to where the base came from.

    Args:
        base: The base, with the edge it had before.
        view: What the view remembers.
        inner: The node of the op in place, whose first edge is that of the view.

    Source: torch/csrc/autograd/functions/tensor.h, struct CopySlices.
    """

    __slots__ = ("inner", "steps")

    cuts_imaginary = True

    def __init__(self, base: Variable, view: View, inner: Node) -> None:
        metadata = metadata_of(base.array)
        # Not the view itself, for its base leads back here.
        self.steps = view.steps
        self.inner = inner
        self._initialise(
            (gradient_edge(base), *inner.next_edges[1:]),
            (metadata,),
            metadata.device,
            next_sequence_nr(),
        )

    def __call__(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradient of the base as it was, and those of the op's other inputs."""
        return self.call_restricted(inputs, (True,) * len(self.next_edges))

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """As `Node.apply`."""
        return self(list(grads))

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """As `__call__`, but only what is wanted."""
        grad = inputs[0]
        if grad is None:
            return (None,) * len(self.next_edges)
        first, *others = self.inner.call_restricted([replay(self.steps, grad)], wanted)
        whole = None
        if wanted[0] and self.next_edges[0].node is not None:
            whole = self._with_part(grad, first)
        return (whole, *others)

    def release_variables(self) -> None:
        """Let go of what the op in place saved."""
        self.inner.release_variables()

    def _with_part(self, grad: Gradient, part: Gradient) -> Gradient:
        """`grad`, with `part` where the view is; zeros there if that is None."""
        if not isinstance(grad, Variable):
            whole = grad.copy()
            target = replay(self.steps, whole)
            if np.may_share_memory(target, whole):
                target[...] = 0 if part is None else part
                return whole
        shape = raw(grad).shape
        if part is None:
            part = np.zeros_like(raw(replay(self.steps, grad)))
        return _replaced(grad, part, replay(self.steps, _positions(shape)))


@regeneration
def new_edge(view: Variable, of: View) -> Edge:
    """The edge of a view whose base was changed.

    Source: torch/csrc/autograd/variable.cpp, VariableHooks::grad_fn.
    """
    base = of.base
    token = GRAD_ENABLED.set(True)
    try:
        if view.array.dtype != base.array.dtype:  # real numbers of complex ones
            return gradient_edge(replay(of.steps, base))
        shape = base.array.shape
        if not base.needs_grad:  # it was detached: gradients end there
            base = variable(base.array, NOWHERE)
        result = _as_strided(base, replay(of.steps, _positions(shape)), view.array)
        return gradient_edge(result)
    finally:
        GRAD_ENABLED.reset(token)


def _positions(shape: tuple[int, ...]) -> np.ndarray:
    """For each place of an array of that shape, which one it is in C order."""
    return np.arange(int(np.prod(shape))).reshape(shape)


@differentiable(
    "AsStridedBackward0",
    x=lambda grad, x_shape, positions: _spread(grad, x_shape, positions),
)
def _as_strided(x: Array, positions: np.ndarray, data: Array) -> Array:
    """What the view shows of its base: `data`, which has been computed already."""
    del x, positions
    return data


@differentiable(
    "AsStridedBackwardBackward0", x=lambda grad, positions: _taken(grad, positions)
)
def _spread(x: Array, shape: tuple[int, ...], positions: np.ndarray) -> Array:
    """Zeros in `shape`, with the elements of `x` added at `positions`."""
    result: Array = np.zeros_like(x, shape=int(np.prod(shape)))
    np.add.at(result, positions.reshape(-1), x.reshape(-1))
    return result.reshape(shape)


@differentiable(
    "TakeBackward0",
    x=lambda grad, x_shape, positions: _spread(grad, x_shape, positions),
)
def _taken(x: Array, positions: np.ndarray) -> Array:
    """The elements of `x` at `positions`."""
    return x.reshape(-1)[positions]


@differentiable(
    "CopySlicesBackward0",
    x=lambda grad, positions: _replaced(
        grad, np.zeros_like(raw(grad), shape=positions.shape), positions
    ),
    part=lambda grad, positions: _taken(grad, positions),
)
def _replaced(x: Array, part: Array, positions: np.ndarray) -> Array:
    """`x` with `part` at `positions`."""
    result = x.reshape(-1).copy()
    result[positions.reshape(-1)] = part.reshape(-1)
    return result.reshape(x.shape)
