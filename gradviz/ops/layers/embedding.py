"""Embeddings: rows of a table, looked up by number."""

import numpy as np

from gradviz.backends.arrays.wrapped_array import check_elements, in_one_kernel
from gradviz.backends.base import Array
from gradviz.ops.conventions.dtype_names import scalar_type_name
from gradviz.ops.conventions.refusal import check_tensors
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.dispatch.public import names
from gradviz.ops.shapes.gathering import add_rows, in_bounds
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "EmbeddingBackward0",
    arrays=("indices",),
    weight=lambda grad, indices, weight_shape, padding_idx, by_frequency: added_up(
        grad, indices, weight_shape[0], padding_idx, by_frequency
    ),
)
def _embedding(
    weight: Array, indices: Array, padding_idx: int, by_frequency: bool
) -> Array:
    del padding_idx, by_frequency  # for the gradient
    return np.take(weight, indices, axis=0)


@differentiable(
    "EmbeddingDenseBackwardBackward0",
    arrays=("indices",),
    x=lambda grad, indices, padding_idx, by_frequency: _looked_up(
        grad, indices, padding_idx, by_frequency
    ),
)
def added_up(
    x: Array, indices: Array, num_rows: int, padding_idx: int, by_frequency: bool
) -> Array:
    """The gradients of the entries, added up by row."""
    return in_one_kernel(
        "embedding_backward", _sums, x, indices, num_rows, padding_idx, by_frequency
    )


def _sums(
    x: Array, indices: Array, num_rows: int, padding_idx: int, by_frequency: bool
) -> Array:
    width = x.shape[-1]
    result: Array = np.zeros_like(x, shape=(num_rows, width), order="C")
    rows = np.reshape(indices, -1)
    add_rows(result, rows, np.reshape(x, (rows.size, width)))
    if by_frequency:
        counts = np.maximum(np.bincount(rows, minlength=num_rows), 1)
        result /= np.reshape(counts.astype(x.dtype), (-1, 1))
    if padding_idx >= 0:
        result[padding_idx] = 0
    return result


@differentiable(
    "EmbeddingDenseBackwardBackward0",
    arrays=("indices",),
    x=lambda grad, indices, x_shape, padding_idx, by_frequency: added_up(
        grad, indices, x_shape[0], padding_idx, by_frequency
    ),
)
def _looked_up(x: Array, indices: Array, padding_idx: int, by_frequency: bool) -> Array:
    """The transpose of `added_up`."""
    rows = np.take(x, indices, axis=0)
    scale = (indices != padding_idx).astype(x.dtype)
    if by_frequency:
        scale = scale / in_one_kernel("bincount", _how_often, indices)
    return rows * scale[..., None]


def _how_often(indices: Array) -> Array:
    """For each index how many there are of it."""
    return np.bincount(np.reshape(indices, -1))[indices]


def embedding(
    input: Value,
    weight: Value,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """Rows of a table.

    Args:
        input: The numbers of the rows, int64 or int32, of any shape.
        weight: The table, shape ``(rows, width)``.
        padding_idx: A row that gets no gradient.
        max_norm: Rows that are longer are first shortened to this, in place.
        norm_type: The exponent of that norm.
        scale_grad_by_freq: Divide gradients by how often a row was looked up.
        sparse: Not supported.

    Raises:
        IndexError: There is no such row.
        RuntimeError: The shape of the table or the dtype of the numbers does not fit.
        NotImplementedError: A sparse gradient is wanted.
    """
    check_tensors("embedding", weight=weight, indices=input)
    indices, table = raw(input), raw(weight)
    if sparse:
        raise NotImplementedError(
            "embedding(): sparse gradients are not supported; use sparse=False"
        )
    if padding_idx is None:
        padding_idx = -1
    elif not -table.shape[0] <= padding_idx < table.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += table.shape[0]
    check_indices(indices, table, "embedding")
    if max_norm is not None:
        shorten(table, np.reshape(indices, -1), max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq)


def check_indices(indices: Array, table: Array, op: str) -> None:
    """See that a table has rows of these numbers.

    Args:
        indices: The numbers.
        table: Array that should be a table.
        op: Op that asks.

    Raises:
        IndexError: There is no such row.
        RuntimeError: The shape of the table or the dtype of the numbers does not fit.
    """
    if table.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in (np.int64, np.int32):
        kind = scalar_type_name(indices.dtype)
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following "
            f"scalar types: Long, Int; but got torch.{kind}Tensor instead (while "
            f"checking arguments for {op})"
        )
    if indices.size:
        check_elements(f"{op}: check", _check_rows, indices, table.shape[0], op)


def _check_rows(indices: np.ndarray, rows: int, op: str) -> None:
    if in_bounds(indices, rows):
        return
    if op == "embedding":
        raise IndexError("index out of range in self")
    wrong = (indices < 0) | (indices >= rows)
    first = indices.reshape(-1)[np.argmax(wrong)]
    raise RuntimeError(
        f"{op}: Expected idx >= 0 && idx < num_embeddings but found idx to be {first}"
    )


def shorten(table: Array, rows: Array, max_norm: float, norm_type: float) -> None:
    """Scale rows down in place to a norm of `max_norm` at most.

    One that is named twice is written twice: the same, as all are read before.
    """
    norms = np.sum(np.abs(table[rows]) ** norm_type, axis=1) ** (1 / norm_type)
    scale = np.where(norms > max_norm, max_norm / (norms + 1e-7), 1)
    table[rows] = table[rows] * scale[:, None].astype(table.dtype)


PUBLIC = [*names("F.f", embedding)]
