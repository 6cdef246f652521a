"""Weights made of a direction and a length."""

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.elementwise.arithmetic import div, mul
from gradviz.ops.elementwise.transcendental import sqrt
from gradviz.ops.reductions.norms import norm_along, norm_of, norm_of_all
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.copying import contiguous
from gradviz.ops.shapes.permutation import transpose
from gradviz.ops.shapes.shape import view
from gradviz.ops.variables.variable import Value, raw


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    return tuple(one for one in range(ndim) if one != dim)


def _length(x: Gradient, dim: int) -> Gradient:
    return sqrt(sum_of(x * x, _others(raw(x).ndim, dim), keepdim=True))


def _direction_gradient(
    grad: Gradient, direction: Gradient, length: Gradient, dim: int
) -> Gradient:
    own = _length(direction, dim)
    along = sum_of(grad * direction, _others(raw(grad).ndim, dim), keepdim=True)
    return (length / own) * (grad - direction * (along / (own * own)))


@differentiable(
    "WeightNormInterfaceBackward0",
    direction=_direction_gradient,
    length=lambda grad, direction, dim: sum_of(
        grad * (direction / _length(direction, dim)),
        _others(raw(grad).ndim, dim),
        keepdim=True,
    ),
)
def _fused(direction: Array, length: Array, dim: int) -> Array:
    others = _others(direction.ndim, dim)
    return direction * (length / norm_of(direction, 2, others, keepdim=True))


def weight_norm(direction: Value, length: Value, dim: int | None) -> Value:
    """The direction, scaled to the length.

    Args:
        direction: The weight but for its length.
        length: That of each slice of dimension `dim`; broadcasts to the direction.
        dim: None for one length.

    Source: aten/src/ATen/native/WeightNorm.cpp, _weight_norm.
    """
    if dim in (0, raw(direction).ndim - 1):
        return _fused(direction, length, dim)
    return mul(direction, div(length, length_of(direction, dim)))


def length_of(x: Value, dim: int | None) -> Value:
    """The length of each slice of dimension `dim`, so that it broadcasts to `x`.

    Source: aten/src/ATen/native/WeightNorm.cpp, norm_except_dim.
    """
    if dim is None:
        return norm_of_all(x)
    if dim != 0:
        return transpose(length_of(transpose(x, 0, dim), 0), 0, dim)
    size, ones = raw(x).shape[0], (1,) * (raw(x).ndim - 1)
    return view(
        norm_along(view(contiguous(x), (size, -1)), 2, (1,), False), (size, *ones)
    )
