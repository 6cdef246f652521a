"""Packing a padded batch of sequences: without the padding, time after time."""

import numpy as np

from gradviz.backends.base import Array, beside
from gradviz.ops.dispatch.differentiable import differentiable
from gradviz.ops.shapes.gathering import sum_slices
from gradviz.ops.shapes.shape import reshape
from gradviz.ops.variables.variable import Value, raw


@differentiable(
    "PackPaddedSequenceBackward0",
    x=lambda grad, x_shape, places: reshape(
        sum_slices(grad, (x_shape[0] * x_shape[1], *x_shape[2:]), 0, places), x_shape
    ),
)
def _packed(x: Array, places: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])[places]


def pack_padded(x: Value, lengths: np.ndarray, batch_first: bool) -> Value:
    """Return everything but padding, one time step after the other.

    Args:
        x: Padded sequences as columns, shape ``(T, N, *)``; or as rows.
        lengths: Length of each, descending.
        batch_first: True if they are rows.

    Returns:
        Shape ``(sum of lengths, *)``.

    Source: aten/src/ATen/native/PackedSequence.cpp.
    """
    shape = raw(x).shape
    length, batch = shape[1::-1] if batch_first else shape[:2]
    times, sequences = np.nonzero(np.arange(length)[:, None] < lengths)
    places = sequences * length + times if batch_first else times * batch + sequences
    return _packed(x, beside(raw(x), places))
