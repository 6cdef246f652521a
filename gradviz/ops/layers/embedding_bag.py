"""Bags of embeddings: the sum, mean or maximum of several rows of a table.

Entries of a bag lie side by side, so that each bag is one segment. Entries that are
only padding are left out before anything is computed.
"""

from typing import Final, Literal, NamedTuple

import numpy as np

from gradviz.backends.base import Array, copy_to
from gradviz.backends.device import CPU
from gradviz.engine.protocols import Gradient
from gradviz.ops.elementwise.selection import masked_fill
from gradviz.ops.layers.embedding import added_up, check_indices, shorten
from gradviz.ops.recording.differentiable import differentiable
from gradviz.ops.recording.dimensions import Shape
from gradviz.ops.recording.dtype_names import scalar_type_name
from gradviz.ops.recording.placing import beside
from gradviz.ops.recording.refusal import check_tensors
from gradviz.ops.recording.variable import Value, raw
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.gathering import select_slices, sum_at
from gradviz.ops.shapes.shape import reshape

Mode = Literal["sum", "mean", "max"]

_MODES: Final = ("sum", "mean", "max")


class _Bags(NamedTuple):
    """Which bag each entry is in.

    Attributes:
        numbers: The bag of each entry, ascending.
        counts: How many entries each bag has.
        filled: The bags that have any.
        starts: The first entry of each of those.
    """

    numbers: Array
    counts: Array
    filled: Array
    starts: Array


def _bags(numbers: np.ndarray, num_bags: int, table: Array) -> _Bags:
    """The bags, beside the table that they are of."""
    counts = np.bincount(numbers, minlength=num_bags)
    filled = np.flatnonzero(counts)
    starts = np.cumsum(counts) - counts
    parts = (numbers, counts, filled, starts[filled])
    return _Bags(*[beside(table, one) for one in parts])


# --- sums and means -----------------------------------------------------------------


@differentiable(
    "EmbeddingBagBackward0",
    arrays=("indices",),
    weight=lambda grad, scale, indices, bags, weight_shape, averages, by_frequency: (
        added_up(
            _of_entries(grad, scale, bags, averages),
            indices,
            weight_shape[0],
            -1,
            by_frequency,
        )
    ),
    scale=lambda grad, weight, indices, bags, averages: sum_of(
        _of_entries(grad, None, bags, averages) * select_slices(weight, 0, indices), -1
    ),
)
def _bag_sums(
    weight: Array,
    scale: Array | None,
    indices: Array,
    bags: _Bags,
    averages: bool,
    by_frequency: bool,
) -> Array:
    """The sum, or the mean, of each bag's rows, each times its scale."""
    del by_frequency  # for the gradient
    rows = np.take(weight, indices, axis=0)
    if scale is not None:
        rows *= scale[:, None]
    sums = _of_filled(np.add, rows, bags)
    return sums / _divisors(bags, sums) if averages else sums


def _divisors(bags: _Bags, like: Array) -> Array:
    return np.maximum(bags.counts, 1)[:, None].astype(like.dtype)


def _of_entries(
    grad: Gradient, scale: Gradient | None, bags: _Bags, averages: bool
) -> Gradient:
    """The gradient of each entry's row, given that of the bags."""
    if averages:
        grad = grad / _divisors(bags, raw(grad))
    rows = select_slices(grad, 0, bags.numbers)
    return rows if scale is None else rows * reshape(scale, (-1, 1))


def _of_filled(reduce: np.ufunc, rows: Array, bags: _Bags) -> Array:
    """Each segment of `rows` in one row; 0 where a bag is empty."""
    result: Array = np.zeros_like(rows, shape=(len(bags.counts), rows.shape[1]))
    if bags.filled.size:
        result[bags.filled] = reduce.reduceat(rows, bags.starts, axis=0)
    return result


# --- maxima -------------------------------------------------------------------------


@differentiable(
    "EmbeddingBagBackward0",
    arrays=("indices",),
    results=("values", "rows"),
    plain=("rows",),
    weight=lambda grad, weight_shape, rows: _at_rows(grad, weight_shape, rows),
)
def _bag_maxima(weight: Array, indices: Array, bags: _Bags) -> tuple[Array, Array]:
    """The largest of each bag's rows, by column; and which row it was, -1 for none."""
    rows = np.take(weight, indices, axis=0)
    largest = _of_filled(np.maximum, rows, bags)
    is_largest = (rows == largest[bags.numbers]) | (np.isnan(rows))
    numbers = beside(rows, np.arange(len(rows))[:, None])
    places = np.where(is_largest, numbers, len(rows))
    chosen = np.full_like(indices, -1, shape=largest.shape)
    if bags.filled.size:
        first = np.minimum.reduceat(places, bags.starts, axis=0)
        chosen[bags.filled] = indices[first]
    return largest, chosen


def _at_rows(grad: Gradient, shape: Shape, rows: Array) -> Gradient:
    is_empty = rows < 0
    return sum_at(
        masked_fill(grad, is_empty, 0.0), shape, 0, np.where(is_empty, 0, rows)
    )


# --- what users call ----------------------------------------------------------------


def embedding_bag(  # noqa: PLR0913, PLR0917 - PyTorch's signature
    input: Value,
    weight: Value,
    offsets: Value | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Value:
    """The sum, mean or maximum of several rows of a table, for each of several bags.

    Args:
        input: The numbers of the rows, int64 or int32: each row of shape ``(B, N)`` is
            a bag, or `offsets` says where in shape ``(N,)`` each bag begins.
        weight: The table, shape ``(rows, width)``.
        offsets: Where each bag begins, shape ``(B,)``.
        max_norm: Rows that are longer are first shortened to this, in place.
        norm_type: The exponent of that norm.
        scale_grad_by_freq: Divide gradients by how often a row was looked up.
        mode: "sum", "mean" or "max"; of an empty bag each of them is 0.
        sparse: Not supported.
        per_sample_weights: By what to multiply each row of a sum; shape of `input`.
        include_last_offset: Whether `offsets` also says where the last bag ends.
        padding_idx: A row that does not count.

    Returns:
        Shape ``(B, width)``.

    Raises:
        ValueError: The shapes do not fit, or there is no such mode.
        RuntimeError: There is no such row, or a dtype does not fit.
        NotImplementedError: A sparse gradient is wanted, or weights of what is no sum.

    Source: torch/nn/functional.py and aten/src/ATen/native/EmbeddingBag.cpp.
    """
    check_tensors("embedding_bag", weight=weight, indices=input)
    if sparse:
        raise NotImplementedError(
            "embedding_bag(): sparse gradients are not supported; use sparse=False"
        )
    indices, table = raw(input), raw(weight)
    _check_mode(mode, indices, per_sample_weights, scale_grad_by_freq)
    starts = _starts(indices, offsets, include_last_offset)
    scale = per_sample_weights
    indices = copy_to(indices, CPU).reshape(-1)
    check_indices(indices, table, "embedding_bag")
    _check_scale(scale, table)
    num_rows = len(table)
    numbers = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if padding_idx is not None:
        if not -num_rows <= padding_idx < num_rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{num_rows} "
                f"through {num_rows - 1}, but got {padding_idx}"
            )
        counts = np.flatnonzero(indices != padding_idx % num_rows)
        indices, numbers = indices[counts], numbers[counts]
        scale = (
            scale
            if scale is None
            else select_slices(reshape(scale, (-1,)), 0, beside(table, counts))
        )
    if max_norm is not None:
        shorten(table, np.unique(indices), max_norm, norm_type)
    bags = _bags(numbers, len(starts) - 1, table)
    rows = beside(table, indices)
    if mode == "max":
        return _bag_maxima(weight, rows, bags)[0]
    if scale is not None and raw(scale).ndim != 1:
        scale = reshape(scale, (-1,))
    averages = mode == "mean"
    return _bag_sums(weight, scale, rows, bags, averages, scale_grad_by_freq)


def _check_mode(
    mode: str, indices: Array, scale: Value | None, by_frequency: bool
) -> None:
    if scale is not None and raw(scale).shape != indices.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({_size(raw(scale))}) is not None, "
            f"then it must have the same shape as the input ({_size(indices)})"
        )
    if indices.ndim not in (1, 2):
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{indices.ndim}"
        )
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and by_frequency:
        raise ValueError(
            "max mode does not support scaling the gradient by the frequency"
        )
    if scale is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is "
            f"only supported for mode='sum' (got mode='{mode}'). Please open a feature "
            f"request on GitHub."
        )


def _starts(indices: Array, offsets: Value | None, include_last: bool) -> Array:
    """Where each bag begins, and where the last one ends."""
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"if input is 2D, then offsets has to be None, as input is treated is "
                f"a mini-batch of fixed length sequences. However, found offsets of "
                f"type {type(offsets)}"
            )
        rows, length = indices.shape
        return np.arange(rows + 1) * length
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    starts = copy_to(raw(offsets), CPU)
    if starts.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
            f"to start from position 0. However, got {int(starts[0])}"
        )
    if starts.size and starts[-1] > len(indices):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {len(indices)} but "
            f"got offsets[-1] of {int(starts[-1])}"
        )
    if include_last:
        if not starts.size or starts[-1] != len(indices):
            raise RuntimeError(
                f"embedding_bag: with include_last_offset, the last of offsets has to "
                f"be input's length {len(indices)}, but offsets are {starts.tolist()}"
            )
        return starts
    return np.concatenate([starts, np.full_like(starts, len(indices), shape=1)])


def _check_scale(scale: Value | None, table: Array) -> None:
    if scale is not None and raw(scale).dtype != table.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'weight' to have the same type as tensor "
            f"for argument #1 'per_sample_weights'; but type "
            f"torch.{scalar_type_name(table.dtype)}Tensor does not equal "
            f"torch.{scalar_type_name(raw(scale).dtype)}Tensor (while checking "
            f"arguments for embedding_bag)"
        )


def _size(array: Array) -> str:
    return f"torch.Size({list(array.shape)})"
