"""`glu`: one half of the elements decides how much of the other half passes."""

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import wrap_dim
from gradviz.ops.conventions.refusal import check_kinds
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.activation import sigmoid
from gradviz.ops.shapes.joining import cat
from gradviz.ops.variables.variable import Value, raw


def _halves(x: Gradient, dim: int) -> tuple[Gradient, Gradient]:
    half = raw(x).shape[dim] // 2
    before = (slice(None),) * dim
    return x[(*before, slice(0, half))], x[(*before, slice(half, None))]


@differentiable(
    "GluBackwardBackward0",
    grad=lambda change, x, dim: _by_grad(change, x, dim),
    x=lambda change, grad, x, dim: _by_input(change, grad, x, dim),
)
def _glu_gradient(grad: Array, x: Array, dim: int) -> Array:
    return _slopes(grad, x, dim)


def _by_grad(changes: Gradient, x: Gradient, dim: int) -> Gradient:
    passed, gate = _halves(x, dim)
    of_passed, of_gate = _halves(changes, dim)
    opened = sigmoid(gate)
    return of_passed * opened + of_gate * passed * opened * (1 - opened)


def _by_input(changes: Gradient, grad: Gradient, x: Gradient, dim: int) -> Gradient:
    passed, gate = _halves(x, dim)
    of_passed, of_gate = _halves(changes, dim)
    opened = sigmoid(gate)
    slope = grad * opened * (1 - opened)
    bend = of_passed + of_gate * passed * (1 - 2 * opened)
    return cat([of_gate * slope, bend * slope], dim)


@differentiable("GluBackward0", x=lambda grad, x, dim: _glu_gradient(grad, x, dim))
def _glu(x: Array, dim: int) -> Array:
    check_kinds("glu_cpu", "f", x)
    passed, gate = _halves(x, dim)
    return passed * np.reciprocal(1 + np.exp(-gate))


def _slopes(grad: Gradient, x: Gradient, dim: int) -> Gradient:
    passed, gate = _halves(x, dim)
    opened = sigmoid(gate)
    return cat([grad * opened, grad * passed * opened * (1 - opened)], dim)


def glu(input: Value, dim: int = -1) -> Value:
    """The first half along `dim`, times `sigmoid` of the second half.

    Raises:
        RuntimeError: `input` has no dimensions, or an odd number of elements there.
        IndexError: There is no such dimension.
    """
    array = raw(input)
    if not array.ndim:
        raise RuntimeError(
            "glu does not support scalars because halving size must be even"
        )
    wrapped = wrap_dim(dim, array.ndim)
    if array.shape[wrapped] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {wrapped} is size "
            f"{array.shape[wrapped]}"
        )
    return _glu(input, wrapped)


PUBLIC = [*names("F.f", glu)]
