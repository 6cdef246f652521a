"""The nodes that memory with views gets when it is changed in place.

See Note [Views and the graph] in `gradviz.ops.variables.view`.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradviz.backends.arrays.pinned_array import assign
from gradviz.backends.base import Array
from gradviz.engine.graph.grad_mode import GRAD_ENABLED
from gradviz.engine.graph.node import Edge, Node, begin, next_sequence_nr
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.variables.node_hooks import Hookable
from gradviz.ops.variables.variable import (
    NOWHERE,
    Value,
    Variable,
    gradient_edge,
    metadata_of,
    raw,
    variable,
)
from gradviz.ops.variables.view import View, ViewStep, regeneration, replay


class CopySlices(Hookable, Node):
    """The node of a base after one of its views was changed in place.

    It takes the gradient of the whole base. The part that the view shows goes through
    the node of the op in place, the rest on to where the base came from.

    Args:
        base: The base, with the edge it had before.
        view: The view's knowledge of its base.
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
        begin(
            self,
            (gradient_edge(base), *inner.next_edges[1:]),
            (metadata,),
            metadata.device,
            next_sequence_nr(),
        )

    def call(self, inputs: list[Gradient]) -> Sequence[Gradient]:
        """The gradient of the base as it was, and those of the op's other inputs."""
        return self.call_restricted(inputs, (True,) * len(self.next_edges))

    def apply(self, *grads: Gradient) -> Sequence[Gradient]:
        """See `Node.apply`."""
        return self.call(list(grads))

    def call_restricted(
        self, inputs: list[Gradient], wanted: Sequence[bool]
    ) -> Sequence[Gradient]:
        """Compute only the wanted gradients."""
        grad = inputs[0]
        if grad is None:
            return (None,) * len(self.next_edges)
        first, *others = self.inner.call_restricted([replay(self.steps, grad)], wanted)
        whole = None
        if wanted[0] and self.next_edges[0].node is not None:
            whole = self._with_part(grad, first)
        return (whole, *others)

    def release_variables(self) -> None:
        """Release the saved tensors of the op in place."""
        self.inner.release_variables()

    def _with_part(self, grad: Gradient, part: Gradient) -> Gradient:
        """`grad`, with `part` where the view is; zeros there if that is None."""
        if not isinstance(grad, Variable):
            whole = grad.copy()
            target = replay(self.steps, whole)
            # A broadcast array is read-only, even if no element is there twice.
            if np.may_share_memory(target, whole) and target.flags.writeable:
                target[...] = 0 if part is None else part
                return whole
        if part is None:
            part = np.zeros_like(raw(replay(self.steps, grad)))
        return _replaced(grad, part, _positions(self.steps, raw(grad)))


@regeneration
def new_edge(view: Variable, of: View) -> Edge:
    """Return the edge of a view after a change of its base.

    Source: torch/csrc/autograd/variable.cpp, VariableHooks::grad_fn.
    """
    base = of.base
    was_enabled = GRAD_ENABLED.get()
    try:  # without a token: see Note [Silence]
        GRAD_ENABLED.set(True)
        if not base.needs_grad:  # it was detached: gradients end there
            base = variable(base.array, NOWHERE)
        if not of.tracked:
            return gradient_edge(_strided(base, of.steps, view.array))
        return gradient_edge(_tracked(base, of))
    finally:
        GRAD_ENABLED.set(was_enabled)


def _strided(base: Variable, steps: Sequence[ViewStep], data: Array) -> Value:
    return _as_strided(base, _positions(steps, base.array), data)


def _tracked(shown: Variable, of: View) -> Value:
    """The view of `shown`, by its own ops where they were tracked.

    Source: torch/csrc/autograd/variable.cpp, ViewInfo::chain.
    """
    numbered = enumerate(of.steps)
    for is_tracked, group in itertools.groupby(numbered, lambda n: n[0] in of.tracked):
        steps = [step for _, step in group]
        if is_tracked:
            shown = replay(steps, shown)
        else:
            shown = _strided(shown, steps, replay(steps, shown.array))
    return shown


# A view may show the two parts of complex numbers, or pairs as complex numbers. So from
# here on all arrays are rows of real numbers, of which a complex one has two.


def _positions(steps: Iterable[ViewStep], base: Array) -> np.ndarray:
    """Return the positions in `base`, in C order, that a view by `steps` shows.

    The view is made of positions in the place of numbers.
    """
    size = base.size
    if base.dtype.kind == "c":
        pairs = np.arange(2.0 * size).reshape(*base.shape, 2)
        seen = replay(steps, pairs.view(np.complex128)[..., 0])
    else:
        seen = replay(steps, np.arange(float(size)).reshape(base.shape))
    return _row(seen).astype(np.int64)


def _row(x: Array) -> Array:
    """The numbers of an array in C order."""
    flat = x.reshape(-1)
    if x.dtype.kind != "c":
        return flat
    return (flat if flat.flags.c_contiguous else flat.copy()).view(x.real.dtype)


def _shaped(row: Array, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """An array with the numbers in `row`, complex if `dtype` is."""
    if dtype.kind == "c":
        row = row.view(np.result_type(row.dtype, np.complex64))
    return row.reshape(shape)


@differentiable(
    "AsStridedBackward0",
    x=lambda grad, x_shape, x_dtype, positions: _spread(
        grad, x_shape, x_dtype, positions
    ),
)
def _as_strided(x: Array, positions: np.ndarray, data: Array) -> Array:
    """Return the view of its base as `data`, which has already been computed."""
    del x, positions
    return data


@differentiable(
    "AsStridedBackwardBackward0",
    x=lambda grad, x_shape, x_dtype, positions: _taken(
        grad, x_shape, x_dtype, positions
    ),
)
def _spread(
    x: Array, shape: Shape, dtype: np.dtype[Any], positions: np.ndarray
) -> Array:
    """Zeros in `shape`, with the numbers of `x` added at `positions`."""
    row = _row(x)
    count = math.prod(shape) * (2 if dtype.kind == "c" else 1)
    result: Array = np.zeros_like(row, shape=count)
    np.add.at(result, positions, row)
    return _shaped(result, shape, dtype)


@differentiable(
    "TakeBackward0",
    x=lambda grad, x_shape, x_dtype, positions: _spread(
        grad, x_shape, x_dtype, positions
    ),
)
def _taken(
    x: Array, shape: Shape, dtype: np.dtype[Any], positions: np.ndarray
) -> Array:
    """The numbers of `x` at `positions`, in `shape`."""
    return _shaped(_row(x)[positions], shape, dtype)


@differentiable(
    "CopySlicesBackward0",
    x=lambda grad, positions: _replaced(
        grad, np.zeros_like(_row(raw(grad)), shape=positions.shape), positions
    ),
    part=lambda grad, part_shape, part_dtype, positions: _taken(
        grad, part_shape, part_dtype, positions
    ),
)
def _replaced(x: Array, part: Array, positions: np.ndarray) -> Array:
    """`x` with `part` at `positions`."""
    row = _row(x).copy()
    assign(row, positions, _row(part))
    return _shaped(row, x.shape, x.dtype)
