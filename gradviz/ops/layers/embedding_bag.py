"""Bags of embeddings: the sum, mean or maximum of several rows of a table.

Entries of a bag lie side by side, so that each bag is one segment. Which entries are in
which bag, and which are only padding, is seen where the table is: nobody waits for it.
"""

from typing import Final, NamedTuple

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements, in_one_kernel
from gradviz.backends.base import Array, beside, copy_to, device_of
from gradviz.backends.device import CPU
from gradviz.engine.graph.protocols import Gradient
from gradviz.ops.conventions.dimensions import Shape
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.elementwise.selection import masked_fill
from gradviz.ops.layers.embedding import added_up, check_indices, shorten
from gradviz.ops.reductions.reduction import sum as sum_of
from gradviz.ops.shapes.gathering import select_slices, sum_at
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw

_MODES: Final = ("sum", "mean", "max")


class _Bags(NamedTuple):
    """Bag of each entry.

    Attributes:
        numbers: The bag of each entry; one more than the last for ignored entries.
        counts: Number of entries in each bag.
        have_gaps: True if there may be ignored entries.
    """

    numbers: Array
    counts: Array
    have_gaps: bool


def _counts(numbers: Array, num_bags: int) -> Array:
    return np.bincount(numbers, minlength=num_bags + 1)[:num_bags]


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
    sums = in_one_kernel(
        "embedding_bag",
        _sums_of_bags,
        *(weight, scale, indices, bags.numbers, len(bags.counts)),
    )
    return sums / _divisors(bags, sums) if averages else sums


def _sums_of_bags(
    weight: Array, scale: Array | None, indices: Array, numbers: Array, num_bags: int
) -> Array:
    indices, places, numbers = _that_count(indices, numbers, num_bags)
    rows = np.take(weight, indices, axis=0)
    if scale is not None:
        rows *= scale[places][:, None]
    return _of_filled(np.add, rows, numbers, num_bags)


def _that_count(
    indices: Array, numbers: Array, num_bags: int
) -> tuple[Array, Array, Array]:
    """The entries that count: their rows, their places, and their bags, ascending."""
    places = np.flatnonzero(numbers < num_bags)
    return indices[places], places, numbers[places]


def _divisors(bags: _Bags, like: Array) -> Array:
    return np.maximum(bags.counts, 1)[:, None].astype(like.dtype)


def _of_entries(
    grad: Gradient, scale: Gradient | None, bags: _Bags, averages: bool
) -> Gradient:
    """The gradient of each entry's row, given that of the bags."""
    if averages:
        grad = grad / _divisors(bags, raw(grad))
    last = len(bags.counts) - 1
    rows = select_slices(grad, 0, np.minimum(bags.numbers, last))
    if bags.have_gaps:
        rows = rows * (bags.numbers <= last).astype(raw(rows).dtype)[:, None]
    return rows if scale is None else rows * reshape(scale, (-1, 1))


def _of_filled(
    reduce: np.ufunc, rows: Array, numbers: Array, num_bags: int
) -> np.ndarray:
    """Each bag's rows in one; 0 where a bag is empty."""
    result: Array = np.zeros_like(rows, shape=(num_bags, rows.shape[1]))
    filled, starts = _filled(numbers)
    if filled.size:
        result[filled] = reduce.reduceat(rows, starts, axis=0)
    return result


def _filled(numbers: Array) -> tuple[Array, Array]:
    """The bags that have entries, and the first entry of each."""
    starts = np.flatnonzero(
        np.concatenate([numbers[:1] == numbers[:1], numbers[1:] != numbers[:-1]])
    )
    return numbers[starts], starts


# --- maxima -------------------------------------------------------------------------


@differentiable(
    "EmbeddingBagBackward0",
    arrays=("indices",),
    results=("values", "rows"),
    plain=("rows",),
    weight=lambda grad, weight_shape, rows: _at_rows(grad, weight_shape, rows),
    scale=lambda grad: None,  # noqa: ARG005 - formulas take a gradient
)
def _bag_maxima(
    weight: Array, scale: None, indices: Array, bags: _Bags
) -> tuple[Array, Array]:
    """The largest of each bag's rows, by column; and which row it was, -1 for none."""
    del scale  # maxima have none, but a place for its gradient as in PyTorch
    largest, chosen = in_one_kernel(
        "embedding_bag",
        _maxima_of_bags,
        *(weight, indices, bags.numbers, len(bags.counts)),
    )
    return largest, chosen


def _maxima_of_bags(
    weight: Array, indices: Array, numbers: Array, num_bags: int
) -> tuple[Array, Array]:
    indices, _, numbers = _that_count(indices, numbers, num_bags)
    rows = np.take(weight, indices, axis=0)
    largest = _of_filled(np.maximum, rows, numbers, num_bags)
    is_largest = (rows == largest[numbers]) | (np.isnan(rows))
    places = np.where(
        is_largest, beside(rows, np.arange(len(rows))[:, None]), len(rows)
    )
    chosen = np.full_like(indices, -1, shape=largest.shape)
    filled, starts = _filled(numbers)
    if filled.size:
        chosen[filled] = indices[np.minimum.reduceat(places, starts, axis=0)]
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
        offsets: Start of each bag, shape ``(B,)``.
        max_norm: Rows that are longer are first shortened to this, in place.
        norm_type: The exponent of that norm.
        scale_grad_by_freq: Divide gradients by how often a row was looked up.
        mode: "sum", "mean" or "max"; of an empty bag each of them is 0.
        sparse: Not supported.
        per_sample_weights: Factor for each row of a sum; shape of `input`.
        include_last_offset: True if `offsets` also has the end of the last bag.
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
    numbers, num_bags = _numbers(indices, offsets, include_last_offset, table)
    scale = per_sample_weights
    rows = _there(indices, table).reshape(-1)
    check_indices(rows, table, "embedding_bag")
    _check_scale(scale, table)
    if padding_idx is not None:
        num_rows = len(table)
        if not -num_rows <= padding_idx < num_rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{num_rows} "
                f"through {num_rows - 1}, but got {padding_idx}"
            )
        numbers = np.where(rows == padding_idx % num_rows, num_bags, numbers)
    if max_norm is not None:
        shorten(table, rows, max_norm, norm_type)
    counts = in_one_kernel("bincount", _counts, numbers, num_bags)
    bags = _Bags(numbers, counts, padding_idx is not None)
    if mode == "max":
        return _bag_maxima(weight, None, rows, bags)[0]
    if scale is not None and raw(scale).ndim != 1:
        scale = reshape(scale, (-1,))
    averages = mode == "mean"
    return _bag_sums(weight, scale, rows, bags, averages, scale_grad_by_freq)


def _there(array: Array, table: Array) -> Array:
    """An array on the device of the table."""
    device = device_of(table) or CPU
    return array if device_of(array) is device else copy_to(array, device)


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


def _numbers(
    indices: Array, offsets: Value | None, include_last: bool, table: Array
) -> tuple[Array, int]:
    """The bag of each entry, beside the table, and how many bags there are."""
    if indices.ndim == 2:
        if offsets is not None:
            raise ValueError(
                f"if input is 2D, then offsets has to be None, as input is treated is "
                f"a mini-batch of fixed length sequences. However, found offsets of "
                f"type {type(offsets)}"
            )
        count, length = indices.shape
        return beside(table, np.repeat(np.arange(count), length)), count
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    starts = _there(raw(offsets), table)
    if starts.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if include_last and not starts.size:
        _check_last(starts, indices.size)
    if starts.size:
        check_elements("embedding_bag: check", _check_starts, starts, indices.size)
    if include_last:
        check_elements("embedding_bag: check", _check_last, starts, indices.size)
        starts = starts[:-1]
    entries = beside(table, np.arange(indices.size))
    return np.searchsorted(starts, entries, side="right") - 1, starts.size


def _check_starts(starts: np.ndarray, num_entries: int) -> None:
    if starts[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
            f"to start from position 0. However, got {int(starts[0])}"
        )
    if starts[-1] > num_entries:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {num_entries} but "
            f"got offsets[-1] of {int(starts[-1])}"
        )


def _check_last(starts: np.ndarray, num_entries: int) -> None:
    if not starts.size or starts[-1] != num_entries:
        raise RuntimeError(
            f"embedding_bag: with include_last_offset, the last of offsets has to be "
            f"input's length {num_entries}, but offsets are {starts.tolist()}"
        )


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


PUBLIC = [*names("F.f", embedding_bag)]
