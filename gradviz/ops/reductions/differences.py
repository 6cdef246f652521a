"""Differences of neighbors along a dimension, and areas between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Dims, Shape, at, wrap_dim, wrap_dims
from gradviz.ops.conventions.promotion import as_floating, python_number
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import mul, sub
from gradviz.ops.elementwise.scalar_arithmetic import over, times
from gradviz.ops.reductions.cumulative import cumsum
from gradviz.ops.shapes.copying import clone
from gradviz.ops.shapes.joining import cat
from gradviz.ops.variables.variable import Value, Variable, raw, variable


@numpy_names
def diff(
    input: Value,
    n: int = 1,
    dim: int = -1,
    prepend: Value = None,
    append: Value = None,
) -> Value:
    """The differences of neighbors along `dim`.

    Args:
        input: With one dimension at least.
        n: Number of times that differences are taken.
        dim: Dimension of the neighbors.
        prepend: Values that come before `input` along `dim`.
        append: Values that come after it.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There is no dimension, or `n` is negative.
    """
    ndim = raw(input).ndim
    if not ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, ndim)
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        if raw(part).ndim != ndim:
            raise RuntimeError(
                "diff expects prepend or append to be the same dimension as input"
            )
    if n == 0:
        return clone(input)
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(min(n, raw(x).shape[dim])):
        earlier = x[at(dim, slice(None, -1))]  # first, as PyTorch does it
        later = x[at(dim, slice(1, None))]
        x = _changed(later, earlier)
    return x


def _changed(later: Value, earlier: Value) -> Value:
    if raw(later).dtype == np.bool_:
        return variable(np.logical_xor(raw(later), raw(earlier)))
    return sub(later, earlier)


def _in_floats(y: Value) -> Value:
    return y if raw(y).dtype.kind in "fc" else variable(as_floating(raw(y)))


def _heights(y: Value, x: Value, dx: Value, dim: int) -> tuple[Value, Value, Value]:
    """Both sides of each strip along a dimension, and its width."""
    before, after = y[at(dim, slice(None, -1))], y[at(dim, slice(1, None))]
    if x is None:
        return before, after, dx
    if raw(x).ndim == 1 and raw(y).ndim > 1:
        if raw(x).size != raw(y).shape[dim]:
            raise RuntimeError(
                "trapezoid: There must be one `x` value for each sample point"
            )
        x = x.view([-1 if i == dim else 1 for i in range(raw(y).ndim)])
        return before, after, diff(x, 1, dim)
    return before, after, diff(x, 1, raw(x).ndim - raw(y).ndim + dim)


@numpy_names
def trapezoid(y: Value, x: Value = None, *, dx: float = 1, dim: int = -1) -> Value:
    """The area under points, by trapezoids along `dim`.

    Args:
        y: Heights.
        x: Positions of the points; instead of `dx`.
        dx: The distance between neighbors.
        dim: Dimension of the neighbors.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: There are not as many of `x`.
    """
    dx = python_number(dx)
    dim = wrap_dim(dim, raw(y).ndim)
    y = _in_floats(y)
    if raw(y).shape[dim] == 0:
        return y.sum(dim)
    before, after, width = _heights(y, x, dx, dim)
    if isinstance(width, Variable):
        return over(((before + after) * width).sum(dim), 2.0)
    ends = y[at(dim, 0)] + y[at(dim, -1)]
    return times(y.sum(dim) - times(ends, 0.5), width)


@numpy_names
def cumulative_trapezoid(
    y: Value, x: Value = None, *, dx: float = 1, dim: int = -1
) -> Value:
    """The running sum of the areas of trapezoids along `dim`; see `trapezoid`."""
    dx = python_number(dx)
    dim = wrap_dim(dim, raw(y).ndim)
    y = _in_floats(y)
    before, after, width = _heights(y, x, dx, dim)
    if isinstance(width, Variable):
        return over(cumsum((before + after) * width, dim), 2.0)
    return cumsum(times(before + after, width / 2.0), dim)


def gradient(
    input: Value,
    *,
    spacing: float | Sequence[Any] | Variable | None = None,
    dim: Dims = None,
    edge_order: int = 1,
) -> list[Value]:
    """The slopes along dimensions, from the neighbors on both sides.

    Args:
        input: Tensor that is differentiated.
        spacing: The distance of neighbors, one for each dimension, or vectors with
            the place of each entry.
        dim: Dimensions to take slopes along; all by default.
        edge_order: 1 to take two entries at an edge, 2 to take three.

    Returns:
        The slopes along each dimension.

    Raises:
        RuntimeError: The arguments do not fit.

    Source: aten/src/ATen/native/ReduceOps.cpp, gradient.
    """
    spacing = python_number(spacing)
    shape = raw(input).shape
    dims = wrap_dims(dim, len(shape))
    steps = _steps_of(spacing, len(shape), dims, is_given=dim is not None)
    if edge_order not in (1, 2):
        raise RuntimeError(
            "torch.gradient only supports edge_order=1 and edge_order=2."
        )
    if any(shape[axis] < edge_order + 1 for axis in dims):
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    slope = _slope_by_place if hasattr(steps[0], "dtype") else _slope
    return [
        slope(input, step, axis, edge_order)
        for axis, step in zip(dims, steps, strict=True)
    ]


def _steps_of(
    spacing: Value, ndim: int, dims: Shape, *, is_given: bool
) -> Sequence[Value]:
    if spacing is None or isinstance(spacing, (int, float)):
        return [1 if spacing is None else spacing] * len(dims)
    if len(spacing) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or it's "
            f"spacing and dim arguments to have the same length, but got a spacing "
            f"argument of length {len(spacing)} and a dim argument of length "
            f"{len(dims)}."
            if is_given
            else f"torch.gradient expected spacing to be unspecified, a scalar, or a "
            f"list of length equal to 'self.dim() = {ndim}', since dim argument was "
            f"not given, but got a list of length {len(spacing)}"
        )
    steps: Sequence[Value] = spacing
    return steps


def _slope(x: Value, step: float, dim: int, edge_order: int) -> Value:
    """Slopes of entries at one distance of each other."""

    def part(start: int | None, stop: int | None) -> Value:
        return x[at(dim, slice(start, stop))]

    if edge_order == 1:
        first, last = part(1, 2) - part(0, 1), part(-1, None) - part(-2, -1)
    else:
        first = times(part(0, 1), -1.5) + times(part(1, 2), 2.0)
        first = first - times(part(2, 3), 0.5)
        last = times(part(-3, -2), 0.5) - times(part(-2, -1), 2.0)
        last = last + times(part(-1, None), 1.5)
    middle = over(over(part(2, None) - part(None, -2), step), 2.0)
    return cat([over(first, step), middle, over(last, step)], dim)


def _slope_by_place(x: Value, place: Value, dim: int, edge_order: int) -> Value:
    """Slopes of entries that are at certain places."""
    rest = (1,) * (raw(x).ndim - dim - 1)
    dtype = as_floating(raw(x)[:0]).dtype
    steps = np.diff(raw(place)).astype(dtype).reshape(-1, *rest)
    before, after = steps[:-1], steps[1:]

    def part(start: int | None, stop: int | None) -> Value:
        return x[at(dim, slice(start, stop))]

    def weighted(parts: Sequence[Value], weights: Sequence[Array]) -> Value:
        one, two, three = [
            mul(variable(weight), each)
            for weight, each in zip(weights, parts, strict=True)
        ]
        return one + two + three

    def curved(near: Array, far: Array) -> tuple[Array, Array, Array]:
        both = near + far
        return -(near + both) / near / both, both / near / far, -near / far / both

    middle = weighted(
        (part(None, -2), part(1, -1), part(2, None)),
        (
            -after / (before * (before + after)),
            (after - before) / (before * after),
            before / (after * (before + after)),
        ),
    )
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / variable(steps[:1])
        last = (part(-1, None) - part(-2, -1)) / variable(steps[-1:])
    else:
        first = weighted(
            (part(0, 1), part(1, 2), part(2, 3)), curved(steps[:1], steps[1:2])
        )
        weights = curved(steps[-1:], steps[-2:-1])
        last = weighted(
            (part(-1, None), part(-2, -1), part(-3, -2)), [-one for one in weights]
        )
    return cat([first, middle, last], dim)


PUBLIC = [
    *names("gv.f", cumulative_trapezoid, gradient, trapezoid, trapz=trapezoid),
    *names("gv.f(out=) x.f", diff),
]
