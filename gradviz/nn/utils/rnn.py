"""Sequences of different lengths as one tensor."""

from collections.abc import Sequence

from gradviz.nn import functional as F  # noqa: N812 - PyTorch's habit
from gradviz.ops.shapes.joining import stack
from gradviz.tensors.tensor import Tensor


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences as columns, or rows, of one tensor, the shorter ones padded.

    Args:
        sequences: Each of shape ``(L, *)``.
        batch_first: Whether they become rows.
        padding_value: What is added.
        padding_side: Whether it is added at the ``right`` or the ``left``.

    Raises:
        RuntimeError: There are none, or the side is none.
    """
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in {"right", "left"}:
        raise RuntimeError("padding_side must be one of left or right")
    longest = max(len(one) for one in sequences)
    padded = []
    for one in sequences:
        missing = longest - len(one)
        ends = (0, missing) if padding_side == "right" else (missing, 0)
        around = (0, 0) * (one.ndim - 1) + ends
        padded.append(F.pad(one, around, "constant", padding_value))
    return stack(padded, 0 if batch_first else 1)
