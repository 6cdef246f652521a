"""The gradients of layer and batch normalization as one op, for ``create_graph``.

Note [Gradients of a normalization]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Let x' be the normalized input, r the inverse standard deviation, g the gradient of the
result, w the weight and s = g w. P takes from an array its mean, and then its part
along x':

    P(a) = a - mean(a) - x' mean(a x')

Then the gradients of input, weight and bias are r P(s), sum(g x') and sum(g). Let v, u
and t be the gradients that come for these. As P is symmetric, those of g and w follow
at once:

    of g    w r P(v) + u x' + t
    of w    sum(g r P(v))

That of x has a part from x', for which P serves again (a gradient c of x' is r P(c) of
x), and one from r, whose derivative by x is -r r x' / n:

    of x    r P(u g - r (v mean(s x') + s mean(v x')))
            - r r x' (mean(v s) - mean(v) mean(s) - mean(v x') mean(s x'))

All means are over what shares one; sums are over what shares a weight.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradviz.backends.base import Array
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.dispatch.differentiable import differentiable, without_gradient
from gradviz.ops.elementwise.transcendental import rsqrt
from gradviz.ops.reductions.reduction import mean as mean_of
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Variable, raw


class Normal(NamedTuple):
    """Parameters of a normalization, and its wanted gradients.

    Attributes:
        axes: Axes that share a mean.
        eps: Added to variances.
        by_itself: True if the input's own mean and variance were used; if not, these
            are constants.
        wanted: True for each of the gradients of input, weight and bias that is wanted.
    """

    axes: Shape
    eps: float
    by_itself: bool
    wanted: tuple[bool, ...]


@differentiable(
    "NativeBatchNormBackwardBackward0",
    results=("of_x", "of_weight", "of_bias"),
    joint=lambda wanted, grads, grad, x, weight, mean, rstd, how: _of_batch(
        wanted[:3], grads, grad, x, weight, mean, rstd, how
    ),
    grad=lambda grads, grad, x, weight, mean, rstd, how: _of_batch(
        (True, False, False), grads, grad, x, weight, mean, rstd, how
    )[0],
    x=lambda grads, grad, x, weight, mean, rstd, how: _of_batch(
        (False, True, False), grads, grad, x, weight, mean, rstd, how
    )[1],
    weight=lambda grads, grad, x, weight, mean, rstd, how: _of_batch(
        (False, False, True), grads, grad, x, weight, mean, rstd, how
    )[2],
    mean=without_gradient,
    rstd=without_gradient,
)
def batch_norm_gradients(
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    how: Normal,
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias; empty if not wanted."""
    scale = _by_channel(rstd, x)
    centered = (x - _by_channel(mean, x)) * scale
    scaled = grad if weight is None else grad * _by_channel(weight, x)
    of_x = of_weight = of_bias = np.zeros_like(grad, shape=(0,))
    if how.wanted[0]:
        inner = _projected(scaled, centered, how.axes) if how.by_itself else scaled
        of_x = (inner * scale).astype(x.dtype, copy=False)
    if how.wanted[1]:
        of_weight = (grad * centered).sum(axis=how.axes)
    if how.wanted[2]:
        of_bias = grad.sum(axis=how.axes)
    return of_x, of_weight, of_bias


@differentiable(
    "NativeLayerNormBackwardBackward0",
    results=("of_x", "of_weight", "of_bias"),
    joint=lambda wanted, grads, grad, x, mean, rstd, weight, how: _of_layer(
        (wanted[0], wanted[1], wanted[4]), grads, grad, x, mean, rstd, weight, how
    ),
    grad=lambda grads, grad, x, mean, rstd, weight, how: _of_layer(
        (True, False, False), grads, grad, x, mean, rstd, weight, how
    )[0],
    x=lambda grads, grad, x, mean, rstd, weight, how: _of_layer(
        (False, True, False), grads, grad, x, mean, rstd, weight, how
    )[1],
    mean=without_gradient,
    rstd=without_gradient,
    weight=lambda grads, grad, x, mean, rstd, weight, how: _of_layer(
        (False, False, True), grads, grad, x, mean, rstd, weight, how
    )[4],
    bias=without_gradient,
)
def layer_norm_gradients(
    grad: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    how: Normal,
) -> tuple[Array, Array, Array]:
    """Return the gradients of input, weight and bias; empty if not wanted."""
    del bias
    others = tuple(range(x.ndim - len(how.axes)))
    centered = (x - mean) * rstd
    of_x = of_weight = of_bias = np.zeros_like(grad, shape=(0,))
    if how.wanted[0]:
        scaled = grad if weight is None else grad * weight
        of_x = _projected(scaled, centered, how.axes) * rstd
        of_x = of_x.astype(x.dtype, copy=False)
    if how.wanted[1]:
        of_weight = (grad * centered).sum(axis=others)
    if how.wanted[2]:
        of_bias = grad.sum(axis=others)
    return of_x, of_weight, of_bias


def _of_batch(
    wanted: Sequence[bool],
    grads: Sequence[Gradient],
    grad: Gradient,
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
    how: Normal,
) -> tuple[Gradient, ...]:
    """One for each edge of `batch_norm_gradients`, of those that are wanted."""
    v, u, t = (grads[0], *(_by_channel(one, x) for one in grads[1:]))
    weight = _by_channel(weight, x)
    mean, rstd = _by_channel(mean, x), _by_channel(rstd, x)
    if how.by_itself:
        mean, rstd = _as_functions_of(x, mean, rstd, how)
        found = _second(wanted, (v, u, t), grad, x, weight, mean, rstd, how.axes)
    else:
        found = _second_by_running(wanted, (v, u, t), grad, x, weight, mean, rstd)
    of_grad, of_x, of_weight = found
    if of_weight is not None:
        of_weight = sum_of(of_weight, how.axes)
    return of_grad, of_x, of_weight, None, None


def _of_layer(
    wanted: Sequence[bool],
    grads: Sequence[Gradient],
    grad: Gradient,
    x: Gradient,
    mean: Gradient,
    rstd: Gradient,
    weight: Gradient,
    how: Normal,
) -> tuple[Gradient, ...]:
    """One for each edge of `layer_norm_gradients`, of those that are wanted."""
    mean, rstd = _as_functions_of(x, mean, rstd, how)
    of_grad, of_x, of_weight = _second(
        wanted, grads, grad, x, weight, mean, rstd, how.axes
    )
    others = tuple(range(raw(x).ndim - len(how.axes)))
    if of_weight is not None and others:
        of_weight = sum_of(of_weight, others)
    return of_grad, of_x, None, None, of_weight, None


def _second(
    wanted: Sequence[bool],
    grads: Sequence[Gradient],
    grad: Gradient,
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
    axes: Shape,
) -> tuple[Gradient, Gradient, Gradient]:
    """See Note [Gradients of a normalization]; that of the weight is still to sum."""
    v, u, t = grads
    centered = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight
    projected = None if v is None else rstd * _projected(v, centered, axes)
    of_grad = of_x = of_weight = None
    if wanted[0]:
        if projected is not None:
            of_grad = projected if weight is None else projected * weight
        of_grad = _and_of_parameters(of_grad, u, centered, t, x)
    if wanted[1]:
        inner = None if u is None else u * grad
        if v is not None:
            along, level = _mean(scaled * centered, axes), _mean(scaled, axes)
            v_along, v_level = _mean(v * centered, axes), _mean(v, axes)
            inner = _plus(inner, -rstd * (v * along + scaled * v_along))
            rest = _mean(v * scaled, axes) - v_level * level - v_along * along
            of_x = -rstd * rstd * centered * rest
        if inner is not None:
            of_x = _plus(rstd * _projected(inner, centered, axes), of_x)
    if wanted[2] and projected is not None:
        of_weight = grad * projected
    return of_grad, of_x, of_weight


def _second_by_running(
    wanted: Sequence[bool],
    grads: Sequence[Gradient],
    grad: Gradient,
    x: Gradient,
    weight: Gradient,
    mean: Gradient,
    rstd: Gradient,
) -> tuple[Gradient, Gradient, Gradient]:
    """`_second` where mean and deviation are numbers that do not depend on `x`."""
    v, u, t = grads
    of_grad = of_x = of_weight = None
    if wanted[0]:
        if v is not None:
            of_grad = v * rstd if weight is None else v * (weight * rstd)
        centered = None if u is None else (x - mean) * rstd
        of_grad = _and_of_parameters(of_grad, u, centered, t, x)
    if wanted[1] and u is not None:
        of_x = u * grad * rstd
    if wanted[2] and v is not None:
        of_weight = grad * (v * rstd)
    return of_grad, of_x, of_weight


def _and_of_parameters(
    of_grad: Gradient, u: Gradient, centered: Gradient, t: Gradient, x: Gradient
) -> Gradient:
    """Return `of_grad` plus the parts from the gradients of weight and bias."""
    of_grad = _plus(of_grad, None if u is None else u * centered)
    of_grad = _plus(of_grad, t)
    if of_grad is not None and raw(of_grad).shape != raw(x).shape:
        return of_grad + x * 0  # of the bias alone, which has no shape of its own
    return of_grad


def _as_functions_of(
    x: Gradient, mean: Gradient, rstd: Gradient, how: Normal
) -> tuple[Gradient, Gradient]:
    """Return mean and inverse deviation of `x` again, for third-order gradients."""
    if not isinstance(x, Variable):
        return mean, rstd
    mean = _mean(x, how.axes)
    deviation = x - mean
    return mean, rsqrt(_mean(deviation * deviation, how.axes) + how.eps)


def _projected(a: Gradient, centered: Gradient, axes: Shape) -> Gradient:
    return a - _mean(a, axes) - centered * _mean(a * centered, axes)


def _mean(a: Gradient, axes: Shape) -> Gradient:
    return mean_of(a, axes, keepdim=True)


def _plus(total: Gradient, more: Gradient) -> Gradient:
    if total is None or more is None:
        return more if total is None else total
    return total + more


def _by_channel(value: Gradient, x: Gradient) -> Gradient:
    """One number for each channel, so that it broadcasts to `x`."""
    if value is None or raw(x).ndim == 2:
        return value
    return reshape(value, (-1, *(1,) * (raw(x).ndim - 2)))
