"""The gradients of normalizations in a plain backward, where several are wanted.

Note [Gradients at once]
~~~~~~~~~~~~~~~~~~~~~~~~
Let c be the input less its mean, r the inverse standard deviation, g the gradient of
the result, and w the weight. The gradients are

    of the input    r (g w - mean(g w) - c r r mean(g w c))
    of the weight   sum(g c r)
    of the bias     sum(g)

All that is summed is g, or ``g c``, and as w and r are the same for many elements, BLAS
sums them up. So c is made once, and the gradient of the input is in its memory. Layers
go by blocks of rows, in the cache and with the memory of one block for ``g c``.
"""

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.reductions.row_sums import summed, summed_products

#: Number of elements in a block of rows.
_BLOCK: Final = 1 << 17


def layer_gradients(
    wanted: Sequence[bool],
    grad: Array,
    x: Array,
    weight: Array | None,
    normalized: Shape,
    mean: Array,
    rstd: Array,
) -> tuple[Array | None, ...]:
    """Return the gradients of a layer normalization; None if not wanted."""
    shape, count, size = x.shape, mean.size, prod(normalized)
    grad = grad.astype(rstd.dtype, copy=False).reshape((count, size))
    weight = np.ones_like(rstd, shape=size) if weight is None else weight
    weight = weight.astype(rstd.dtype, copy=False).reshape(size)
    x, mean, scale = x.reshape((count, size)), mean.reshape((-1, 1)), rstd.reshape(-1)
    step = max(1, _BLOCK // max(1, size) if type(x) is np.ndarray else count)
    of_x = np.empty_like(rstd, shape=(count, size), order="C")
    of_weight, of_bias = np.zeros_like(weight), np.zeros_like(weight)
    memory = np.empty_like(of_x[:step])
    for start in range(0, count, step):
        rows = slice(start, start + step)
        part, factors = grad[rows], scale[rows]
        centered = np.subtract(x[rows], mean[rows], out=of_x[rows])
        products = np.multiply(part, centered, out=memory[: len(part)])
        if wanted[1]:
            of_weight += np.matmul(factors, products)
        if wanted[2]:
            of_bias += np.matmul(np.ones_like(factors), part)
        if wanted[0]:
            along = np.matmul(products, weight) * (factors * factors / -size)
            level = np.matmul(part, weight) / -size
            centered *= along[:, None]
            centered += level[:, None]
            centered += np.multiply(part, weight, out=products)
            centered *= factors[:, None]
    return (
        of_x.reshape(shape) if wanted[0] else None,
        _shaped(of_weight, normalized) if wanted[1] else None,
        _shaped(of_bias, normalized) if wanted[2] else None,
    )


def batch_gradients(
    wanted: Sequence[bool],
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
) -> tuple[Array | None, ...]:
    """Those of a batch that was normalized by its own statistics.

    `weight`, `mean` and `rstd` broadcast to `x`.
    """
    axes = (0, *range(2, x.ndim))
    count = x.size // x.shape[1]
    grad = grad.astype(rstd.dtype, copy=False)
    centered = x - mean
    level, along = summed(grad, axes), summed_products(grad, centered, axes)
    of_x = None
    if wanted[0]:
        centered *= along * (rstd * rstd / -count)
        centered -= level / count
        centered += grad
        centered *= rstd if weight is None else rstd * weight
        of_x = centered
    channels = (x.shape[1],)
    return (
        of_x,
        _shaped(along * rstd, channels) if wanted[1] else None,
        _shaped(level, channels) if wanted[2] else None,
    )


def group_gradients(
    wanted: Sequence[bool],
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
) -> tuple[Array | None, ...]:
    """Those of a normalization of groups of channels.

    Means and deviations have shape ``(N, groups)``.
    """
    samples, groups = mean.shape
    shape = (samples, groups, x.shape[1] // groups, prod(x.shape[2:]))
    grad = grad.astype(rstd.dtype, copy=False).reshape(shape)
    mean, rstd = mean[..., None, None], rstd[..., None, None]
    centered = x.reshape(shape) - mean
    level, along = summed(grad, (3,)), summed_products(grad, centered, (3,))
    channels = (x.shape[1],)
    of_weight = np.sum(along * rstd, axis=0) if wanted[1] else None
    of_bias = np.sum(level, axis=0) if wanted[2] else None
    of_x = None
    if wanted[0]:
        factors = np.ones_like(rstd, shape=channels) if weight is None else weight
        factors = factors.astype(rstd.dtype, copy=False).reshape((*shape[1:3], 1))
        count = shape[2] * shape[3]
        along = np.sum(along * factors, axis=2, keepdims=True)
        level = np.sum(level * factors, axis=2, keepdims=True)
        centered *= along * (rstd * rstd / -count)
        centered -= level / count
        centered += grad * factors
        centered *= rstd
        of_x = centered.reshape(x.shape)
    return of_x, _shaped(of_weight, channels), _shaped(of_bias, channels)


def _shaped(gradient: Array | None, shape: Shape) -> Array | None:
    return None if gradient is None else gradient.reshape(shape)
