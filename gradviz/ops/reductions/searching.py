"""Search for values: their place in an order, and whether they are among others."""

from typing import Literal

import numpy as np

from gradviz.ops.conventions.promotion import Operand
from gradviz.ops.dispatch.public import names
from gradviz.ops.variables.variable import Value, raw, variable


def searchsorted(
    sorted_sequence: Value,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value = None,
) -> Value:
    """Return the indices at which values keep a sequence sorted.

    Args:
        sorted_sequence: In order along the last dimension.
        input: The values: a number, or as many dimensions, equal but for the last; for
            a vector any.
        out_int32: Return int32 instead of int64.
        right: After equal elements instead of before.
        side: ``left`` or ``right``, instead of `right`.
        sorter: The indices that sort the sequence, if it is not sorted.

    Raises:
        RuntimeError: The arguments do not fit.
    """
    sequence, values = raw(sorted_sequence), raw(input)
    if not hasattr(values, "dtype"):
        values = np.full_like(sequence, values, shape=())
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side "
            "of left while right was True"
        )
    if sorter is not None:
        sequence = np.take_along_axis(sequence, raw(sorter), -1)
    where: Literal["left", "right"] = "right" if right or side == "right" else "left"
    if sequence.ndim <= 1:
        found = np.searchsorted(sequence, values, where)
    else:
        if values.ndim != sequence.ndim or values.shape[:-1] != sequence.shape[:-1]:
            raise RuntimeError(
                f"torch.searchsorted(): boundaries tensor should be 1 dimension or the "
                f"first N-1 dimensions of boundaries tensor and input value tensor "
                f"must match, but we got boundaries tensor {list(sequence.shape)} and "
                f"input value tensor {list(values.shape)}"
            )
        # Each value against all of its row: a row has no `searchsorted` of its own.
        rows, each = np.expand_dims(sequence, -2), np.expand_dims(values, -1)
        found = (rows <= each if where == "right" else rows < each).sum(axis=-1)
    return variable(
        (found + np.zeros_like(values, dtype=np.int64)).astype(
            np.int32 if out_int32 else np.int64
        )
    )


def bucketize(
    input: Operand, boundaries: Value, *, out_int32: bool = False, right: bool = False
) -> Value:
    """Return the index of the bucket of each value; see `searchsorted`.

    Raises:
        RuntimeError: The boundaries are no vector.
    """
    if raw(boundaries).ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got "
            f"dim({raw(boundaries).ndim})"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    """For each element, whether it is among others.

    Args:
        elements: Elements to look at: a tensor or a number.
        test_elements: The others: a tensor or a number.
        assume_unique: No element is there twice.
        invert: True if the result tells which elements are not among the others.
    """
    del assume_unique
    return variable(np.isin(raw(elements), raw(test_elements), invert=invert))


PUBLIC = [
    *names("gv.f", isin),
    *names("gv.f(out=)", bucketize, searchsorted),
]
