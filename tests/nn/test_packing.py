import copy

import numpy as np
import pytest

import gradviz as gv
from gradviz.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
    unpack_sequence,
    unpad_sequence,
)


def sequences():
    return [gv.arange(n * 1.0) + 10 * n for n in (2, 3, 1)]


def test_longer_sequences_come_first_time_after_time():
    packed = pack_sequence(sequences(), enforce_sorted=False)

    assert packed.data.tolist() == [30, 20, 10, 31, 21, 32]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert packed.unsorted_indices.tolist() == [1, 0, 2]


def test_packed_sequences_can_be_unpacked():
    packed = pack_sequence(sequences(), enforce_sorted=False)

    assert [one.tolist() for one in unpack_sequence(packed)] == [
        [20, 21],
        [30, 31, 32],
        [10],
    ]


def test_unpacking_pads_with_what_is_asked_for():
    packed = pack_sequence(sequences(), enforce_sorted=False)

    padded, lengths = pad_packed_sequence(
        packed, batch_first=True, padding_value=-1, total_length=4
    )

    assert padded.tolist() == [[20, 21, -1, -1], [30, 31, 32, -1], [10, -1, -1, -1]]
    assert lengths.tolist() == [2, 3, 1]


def test_padding_gets_no_gradient():
    padded = gv.ones(3, 2, requires_grad=True)

    pack_padded_sequence(padded, [3, 1]).data.sum().backward()

    assert padded.grad.tolist() == [[1, 1], [1, 0], [1, 0]]


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_can_be_taken_away_again(batch_first):
    padded = pad_sequence(sequences(), batch_first)
    lengths = gv.tensor([2, 3, 1])

    found = unpad_sequence(padded, lengths, batch_first)

    assert [one.tolist() for one in found] == [one.tolist() for one in sequences()]


def test_a_packed_sequence_moves_to_another_dtype_and_device():
    packed = pack_sequence(sequences(), enforce_sorted=False)

    assert packed.to(gv.float32) is packed
    assert packed.double().data.dtype == gv.float64
    there = packed.to("sim:1")
    assert str(there.sorted_indices.device) == "sim:1"
    assert str(there.batch_sizes.device) == "cpu"
    assert there.cpu().data.tolist() == packed.data.tolist()


def test_a_packed_sequence_is_copied_whole():
    packed = copy.deepcopy(pack_sequence(sequences(), enforce_sorted=False))

    assert isinstance(packed, PackedSequence)
    assert packed.batch_sizes.tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("lengths", "options", "words"),
    [
        ([1, 3], {}, "must be sorted in decreasing order"),
        ([3, 0], {}, "Length of all samples has to be greater than 0"),
        ([3], {}, "Expected `len(lengths)` to be equal to batch_size, but got 1"),
        ([[3, 1]], {}, "should be a 1D CPU int64 tensor, but got 2D"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lengths, options, words):
    with pytest.raises(RuntimeError) as error:
        pack_padded_sequence(gv.ones(3, 2), lengths, **options)

    assert words in str(error.value)


def test_no_sequence_is_cut_off():
    with pytest.raises(ValueError, match="total_length=2 and max sequence length"):
        pad_packed_sequence(pack_sequence([gv.ones(3)]), total_length=2)


def test_a_layer_gives_each_sequence_what_it_gets_alone():
    gv.manual_seed(0)
    layer = gv.nn.LSTM(2, 3, bidirectional=True, dtype=gv.float64)
    each = [gv.randn(n, 2, dtype=gv.float64) for n in (2, 4, 1)]

    output, (hidden, cell) = layer(pack_sequence(each, enforce_sorted=False))

    for number, (one, found) in enumerate(
        zip(each, unpack_sequence(output), strict=True)
    ):
        alone, (last, last_cell) = layer(one)
        for part, whole in (
            (found, alone),
            (hidden[:, number], last),
            (cell[:, number], last_cell),
        ):
            np.testing.assert_allclose(
                part.detach().numpy(), whole.detach().numpy(), atol=1e-12
            )
