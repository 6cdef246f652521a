"""Sequences of different lengths: padded to one tensor, or packed without padding."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from gradviz.ops.layers.packed_sequence import pack_padded
from gradviz.tensors.creation.factories import arange, empty_like, full
from gradviz.tensors.creation.from_data import as_tensor
from gradviz.tensors.tensor import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences without padding: their elements at time 0, those at time 1, ...

    Longer sequences come first. Recurrent layers take and return these.

    Attributes:
        data: All elements, shape ``(sum of lengths, *)``.
        batch_sizes: Number of sequences that have an element at each time; on the host.
        sorted_indices: The order that puts longer sequences first, None if they are.
        unsorted_indices: The order that undoes it.

    Source: torch/nn/utils/rnn.py.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Takes the fields; or the first two as one tuple."""
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    @property
    def is_cuda(self) -> bool:
        """True if the data is on a CUDA device."""
        return self.data.device.type == "cuda"

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """With data of another dtype or on another device; see `Tensor.to`."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = (
            None if one is None else one.to(data.device)
            for one in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, *orders)

    def cpu(self) -> Self:
        """With data on the host."""
        return self.to("cpu")

    def double(self) -> Self:
        """With data in double precision."""
        return self.to(dtype=np.dtype(np.float64))

    def float(self) -> Self:
        """With data in single precision."""
        return self.to(dtype=np.dtype(np.float32))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The order that undoes an order."""
    if permutation is None:
        return None
    inverse = empty_like(permutation)
    places = arange(permutation.numel(), device=permutation.device)
    return inverse.scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Padded sequences without the padding.

    Args:
        input: Shape ``(T, N, *)``, or ``(N, T, *)`` if `batch_first`.
        lengths: Length of each sequence.
        batch_first: True if sequences are rows.
        enforce_sorted: Insist that longer sequences come first; else they are sorted.

    Raises:
        RuntimeError: The lengths do not fit, or are not sorted.
    """
    numbers = as_tensor(lengths).cpu().numpy()
    if numbers.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{numbers.ndim}D cpu Long tensor"
        )
    numbers = numbers.astype(np.int64)
    order = None
    if not enforce_sorted:
        ranks = np.argsort(-numbers, kind="stable")
        numbers = numbers[ranks]
        order = as_tensor(ranks, device=input.device)
        input = input.index_select(0 if batch_first else 1, order)
    _check_lengths(input.shape[0 if batch_first else 1], numbers)
    sizes = (np.arange(numbers[0])[:, None] < numbers).sum(1)
    packed = pack_padded(input, numbers, batch_first)
    return PackedSequence(packed, as_tensor(sizes), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`.

    Args:
        sequence: Sequence that was packed.
        batch_first: True if sequences are to be rows.
        padding_value: Value that is put behind the shorter ones.
        total_length: Length of the result; that of the longest if not given.

    Returns:
        The padded sequences, and how long each is.

    Raises:
        ValueError: One is longer than `total_length`.
    """
    data = sequence.data
    sizes = sequence.batch_sizes.numpy()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                f"Expected total_length to be at least the length of the longest "
                f"sequence in input, but got total_length={total_length} and max "
                f"sequence length being {length}"
            )
        length = total_length
    shape = (length, int(sizes[0]), *data.shape[1:])
    padded = full(shape, padding_value, dtype=data.dtype, device=data.device)
    start = offset = 0
    # As many times at once as have the same number of sequences.
    for end in [*(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]:
        size = int(sizes[start])
        next_offset = offset + (end - start) * size
        block = data[offset:next_offset].view(end - start, size, *data.shape[1:])
        padded[start:end, :size] = block
        start, offset = end, next_offset
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = as_tensor((sizes[:, None] > np.arange(sizes[0])).sum(0))
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences as columns, or rows, of one tensor, the shorter ones padded.

    Args:
        sequences: Each of shape ``(L, *)``.
        batch_first: True if they become rows.
        padding_value: Value that is added.
        padding_side: Side on which it is added, ``right`` or ``left``.

    Raises:
        RuntimeError: There are none, or the side is none.
    """
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in {"right", "left"}:
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    first = sequences[0]
    longest = max(len(one) for one in sequences)
    shape = (len(sequences), longest) if batch_first else (longest, len(sequences))
    padded = full(
        (*shape, *first.shape[1:]),
        padding_value,
        dtype=first.dtype,
        device=first.device,
    )
    for number, one in enumerate(sequences):
        part = slice(len(one))
        if padding_side == "left":
            part = slice(longest - len(one), longest)
        padded[(number, part) if batch_first else (part, number)] = one
    return padded


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Undo `pad_sequence`.

    Args:
        padded_sequences: Shape ``(T, N, *)``, or ``(N, T, *)`` if `batch_first`.
        lengths: Length of each sequence.
        batch_first: True if sequences are rows.
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(
    sequences: Sequence[Tensor], enforce_sorted: bool = True
) -> PackedSequence:
    """Pack sequences of different lengths; see `pack_padded_sequence`."""
    lengths = as_tensor([len(one) for one in sequences])
    padded = pad_sequence(sequences)
    return pack_padded_sequence(padded, lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Undo `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def _check_lengths(batch_size: int, lengths: np.ndarray) -> None:
    if len(lengths) != batch_size:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(lengths)} (batch_size={batch_size})"
        )
    if np.any(lengths <= 0):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in "
            "'lengths' that is <= 0"
        )
    if np.any(np.diff(lengths) > 0):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` "
            "is True. You can pass `enforce_sorted=False` to pack_padded_sequence "
            "and/or pack_sequence to sidestep this requirement if you do not need ONNX "
            "exportability."
        )
