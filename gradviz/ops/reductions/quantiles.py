"""Elements below which parts of all elements are."""

from typing import Literal

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements
from gradviz.backends.base import Array
from gradviz.ops.conventions.dimensions import Shape, wrap_dim
from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.dispatch.calling import numpy_names
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.arithmetic import lerp
from gradviz.ops.elementwise.selection import where
from gradviz.ops.reductions.sorting import sort
from gradviz.ops.shapes.gathering import gather
from gradviz.ops.shapes.permutation import transpose
from gradviz.ops.shapes.shape import flatten, reshape, view
from gradviz.ops.shapes.unit_dimensions import squeeze_in_place, unsqueeze
from gradviz.ops.variables.variable import Value, raw, variable

Interpolation = Literal["linear", "lower", "higher", "midpoint", "nearest"]


@numpy_names
def quantile(
    input: Value,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: Interpolation = "linear",
) -> Value:
    """The elements below which parts of all elements are.

    Args:
        input: float32 or float64.
        q: The parts, from 0 to 1: a number, or a tensor with one dimension at most,
            which becomes the first dimension of the result.
        dim: Dimension to take quantiles along; None takes all elements.
        keepdim: Keep the dimension, with length 1.
        interpolation: Method for a quantile that lies between two elements.

    Raises:
        IndexError: There is no such dimension.
        RuntimeError: The arguments do not fit.
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@numpy_names
def nanquantile(
    input: Value,
    q: Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: Interpolation = "linear",
) -> Value:
    """Return the quantiles without NaN; see `quantile`."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(
    name: str,
    x: Value,
    q: Value,
    dim: int | None,
    keepdim: bool,
    interpolation: Interpolation,
) -> Value:
    """Sort, gather the elements on both sides, and interpolate between them.

    Source: aten/src/ATen/native/Sorting.cpp, quantile_compute.
    """
    array = raw(x)
    if isinstance(q, (int, float)) and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    parts = q
    if isinstance(q, (int, float)):
        parts = variable(np.full_like(array, q, shape=()))
    _check_quantile(name, array, raw(parts), interpolation)
    if dim is None:
        axis, shape = 0, (1,) * array.ndim if keepdim else ()
        ranked = sort(flatten(x), -1).values
    else:
        axis = wrap_dim(dim, array.ndim)
        shape = _reduced(array.shape, axis, keepdim)
        is_last = axis == max(array.ndim, 1) - 1
        ranked = sort(
            x if is_last else transpose(unsqueeze(x, -1), axis, -1), -1
        ).values
    ranked = view(ranked, (*shape, raw(ranked).shape[-1] if raw(ranked).ndim else 1))
    ranks = _ranks(raw(ranked), reshape(parts, (-1,)), ignore_nan=name == "nanquantile")
    result = _between(ranked, ranks, interpolation)
    if raw(parts).ndim:
        result = transpose(unsqueeze(result, 0), 0, -1)
    return squeeze_in_place(result, raw(result).shape[:-1])


def _reduced(shape: Shape, dim: int, keepdim: bool) -> Shape:
    if not shape:
        return ()
    return (*shape[:dim], *(1,) * keepdim, *shape[dim + 1 :])


def _ranks(ranked: Array, parts: Value, *, ignore_nan: bool) -> Value:
    """Return the positions of the quantiles along the last dimension, as floats."""
    missing = np.isnan(ranked)
    if ignore_nan:
        numbers = (~missing).sum(axis=-1, keepdims=True)
        return parts * variable(np.maximum(numbers - 1, 0).astype(ranked.dtype))
    last = ranked.shape[-1] - 1
    has_missing = variable(np.any(missing, axis=-1, keepdims=True))
    return where(has_missing, float(last), parts * last)


def _between(ranked: Value, ranks: Value, interpolation: Interpolation) -> Value:
    """Return the elements at `ranks`, or interpolate between two of them."""
    places = raw(ranks)
    match interpolation:
        case "lower":
            places = np.floor(places)
        case "higher":
            places = np.ceil(places)
        case "nearest":
            places = np.round(places)
        case _:
            pass
    below = variable(places.astype(np.int64))
    result = gather(ranked, -1, below)
    if interpolation not in ("linear", "midpoint"):
        return result
    above = variable(np.ceil(places).astype(np.int64))
    weight = ranks - below
    if interpolation == "midpoint":
        weight = variable(np.full_like(places, 0.5))
    return lerp(result, gather(ranked, -1, above), weight)


def _check_quantile(name: str, x: Array, q: Array, interpolation: str) -> None:
    if not x.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if x.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise RuntimeError(
            f"{name}() input tensor must be either float or double dtype"
        )
    if q.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
            f"nearest, but got {interpolation}"
        )
    check_elements(f"{name}: check", _check_range, q, name)


def _check_range(q: np.ndarray, name: str) -> None:
    if not np.all((q >= 0) & (q <= 1)):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


PUBLIC = [*names("gv.f(out=) x.f", nanquantile, quantile)]
