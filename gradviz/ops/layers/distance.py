"""Lengths and distances of vectors."""

from math import inf

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.algebra.products import broadcast_batches
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import div, mul, neg, sub
from gradviz.ops.elementwise.scalar_arithmetic import floored, plus
from gradviz.ops.elementwise.selection import clamp_min
from gradviz.ops.reductions.norms import norm_along, norm_gradient, norm_of, vector_norm
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.broadcasting import expand, restored
from gradviz.ops.shapes.gathering import select_slices, sum_slices
from gradviz.ops.shapes.unit_dimensions import unsqueeze
from gradviz.ops.variables.variable import Value, raw


def pairwise_distance(
    x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    """The norm of the differences of vectors, which are along the last dimension.

    Args:
        x1: Vectors.
        x2: Vectors they are compared with; broadcasts.
        p: The exponent of the norm.
        eps: Added to differences, so that no norm is 0.
        keepdim: Keep the last dimension, with length 1.

    Source: aten/src/ATen/native/Distance.cpp, pairwise_distance.
    """
    last = (max(raw(x1).ndim, raw(x2).ndim) - 1,)
    return norm_along(plus(sub(x1, x2), eps), p, last, keepdim)


def normalize(
    input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None
) -> Value:
    """Vectors scaled to length 1.

    Args:
        input: Vectors along `dim`.
        p: The exponent of the norm.
        dim: The dimension.
        eps: The norm that is divided by at least.
        out: Not supported.

    Source: torch/nn/functional.py, normalize.
    """
    del out
    norms = vector_norm(input, p, dim, keepdim=True)
    return div(input, expand(clamp_min(norms, eps), raw(input).shape))


def cosine_similarity(x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    """The cosine of the angle between vectors.

    Args:
        x1: Vectors along `dim`.
        x2: Vectors they are compared with; broadcasts.
        dim: The dimension.
        eps: The norm that is divided by at least.

    Source: aten/src/ATen/native/Distance.cpp, cosine_similarity.
    """
    shape = broadcast_batches(raw(x1).shape, raw(x2).shape)
    if raw(x1).shape != raw(x2).shape:
        x2 = expand(x2, shape)
        x1 = expand(x1, shape)
    # The second comes first where PyTorch leaves the order to the compiler.
    norms = [floored(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2)]
    second = div(x2, norms[1])
    return sum_of(mul(div(x1, norms[0]), second), dim)


@differentiable(
    "CdistBackward0",
    x=lambda grad, x, y, p, result: _cdist_gradient(grad, x, y, p, result, -2),
    y=lambda grad, x, y, p, result: neg(_cdist_gradient(grad, x, y, p, result, -3)),
)
def _cdist(x: Array, y: Array, p: float) -> Array:
    differences = x[..., :, None, :] - y[..., None, :, :]
    return norm_of(differences, p, (differences.ndim - 1,), keepdim=False)


def _cdist_gradient(
    grad: Gradient, x: Gradient, y: Gradient, p: float, result: Gradient, summed: int
) -> Gradient:
    differences = unsqueeze(x, -2) - unsqueeze(y, -3)
    last = (raw(differences).ndim - 1,)
    through = _distance_gradient(grad, differences, result, p, last)
    return sum_of(differences * 0 if through is None else through, summed)


def _distance_gradient(
    grad: Gradient, differences: Gradient, result: Gradient, p: float, dims: Shape
) -> Gradient:
    """`norm_gradient`, but if several elements are the largest, each gets all of it."""
    if p != inf:
        return norm_gradient(grad, differences, result, p, dims)
    array = raw(differences)
    is_largest = np.abs(array) == restored(raw(result), array.shape, dims)
    return restored(grad, array.shape, dims) * (np.sign(array) * is_largest)


def cdist(
    x1: Value, x2: Value, p: float = 2.0, compute_mode: str | None = None
) -> Value:
    """The distance of each row of one matrix from each row of another.

    Args:
        x1: Shape ``(..., P, M)``.
        x2: Shape ``(..., R, M)``.
        p: The exponent of the norm of a difference.
        compute_mode: Ignored; there is one way.

    Raises:
        RuntimeError: Shapes or the exponent do not fit.
    """
    del compute_mode
    for name, shape in (("X1", raw(x1).shape), ("X2", raw(x2).shape)):
        if len(shape) < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {len(shape)}D"
            )
    columns = raw(x1).shape[-1], raw(x2).shape[-1]
    if columns[0] != columns[1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {columns[0]} X2: "
            f"{columns[1]}"
        )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return _cdist(x1, x2, p)


@differentiable(
    "PdistBackward0",
    x=lambda grad, x, p, result: _pdist_gradient(grad, x, p, result),
)
def _pdist(x: Array, p: float) -> Array:
    first, second = np.triu_indices(len(x), 1)
    return norm_of(x[first] - x[second], p, (1,), keepdim=False)


def _pdist_gradient(
    grad: Gradient, x: Gradient, p: float, result: Gradient
) -> Gradient:
    shape = raw(x).shape
    pairs = [beside(raw(x), one) for one in np.triu_indices(shape[0], 1)]
    first, second = (select_slices(x, 0, one) for one in pairs)
    through = _distance_gradient(grad, first - second, result, p, (1,))
    if through is None:
        return x * 0
    one, other = (sum_slices(through, shape, 0, places) for places in pairs)
    return one - other


def pdist(input: Value, p: float = 2.0) -> Value:
    """The distance of each row of a matrix from each of those after it.

    Args:
        input: Shape ``(N, M)``.
        p: The exponent of the norm of a difference.

    Returns:
        Shape ``(N * (N - 1) / 2,)``.

    Raises:
        RuntimeError: `input` is not a matrix of floats, or the exponent is negative.

    Source: aten/src/ATen/native/Distance.cpp, pdist.
    """
    x = raw(input)
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if x.dtype.kind != "f":
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist(input, float(p))


@differentiable(
    "DistBackward0",
    x=lambda grad, x, y, p, result: _dist_gradient(grad, x, y, p, result),
    y=lambda grad, x, y, p, result: neg(_dist_gradient(grad, x, y, p, result)),
)
def _dist(x: Array, y: Array, p: float) -> Array:
    return norm_of(x - y, p, None, keepdim=False)


def _dist_gradient(
    grad: Gradient, x: Gradient, y: Gradient, p: float, result: Gradient
) -> Gradient:
    difference = x - y
    dims = tuple(range(raw(difference).ndim))
    through = norm_gradient(grad, difference, result, p, dims)
    return difference * 0 if through is None else through


def dist(input: Value, other: Value, p: float = 2) -> Value:
    """The norm of the difference of two tensors, as vectors; they broadcast."""
    return _dist(input, other, p)


PUBLIC = [
    *names("gv.f", cdist),
    *names("gv.f x.f", dist),
    *names("gv.f F.f", cosine_similarity, pairwise_distance),
    *names("F.f", normalize, pdist),
]
