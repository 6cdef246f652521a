import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

from gradviz.trace.columns import Block, decode_events, encode_events
from gradviz.trace.frames import Budget, DamageError

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def there_and_back(*blocks: Block) -> list[Block]:
    budget = Budget(1 << 20)
    got = []
    for payload in encode_events(5, blocks):
        thread, decoded = decode_events(payload, budget)
        assert thread == 5
        got += decoded
    return got


def block(*columns: list[int]) -> Block:
    return Block(30, np.array(columns, np.int64))


@settings(max_examples=200)
@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20)))
def test_any_64_bit_integers_survive(columns):
    (got,) = there_and_back(Block(30, columns))

    assert got.code == 30
    np.testing.assert_array_equal(got.columns, columns)


@pytest.mark.parametrize(
    "column",
    [
        [7],
        [LOWEST],
        [7, 7, 7],
        [LOWEST, HIGHEST, LOWEST],
        [0, 255, 0],
        [0, 256, 0],
        [0, 65_535, 0],
        [0, 65_536, 0],
        [0, 2**32 - 1, 0],
        [0, 2**32, 0],
        [-1, 5, -1, -1],
        list(range(1_000_000, 2_000_000, 999)),
    ],
    ids=str,
)
def test_each_width_and_coding_survives(column):
    (got,) = there_and_back(block(column))

    assert got.columns.tolist() == [column]


def test_regular_columns_take_no_bytes_for_each_row():
    (payload,) = encode_events(0, [block(list(range(1000)), [3] * 1000)])

    assert len(payload) < 100


def test_a_long_block_is_cut_into_frames_of_bounded_size():
    columns = np.random.default_rng(0).integers(LOWEST, HIGHEST, (10, 50_000))
    payloads = list(encode_events(5, [Block(20, columns)]))
    got = [one for each in payloads for one in decode_events(each, Budget(1 << 20))[1]]

    assert max(map(len, payloads)) < 600_000
    np.testing.assert_array_equal(
        np.concatenate([one.columns for one in got], axis=1), columns
    )


def test_small_blocks_share_a_frame():
    assert len(list(encode_events(0, [block([1, 2]), block([3]), block([4])]))) == 1


def test_nothing_to_write_makes_no_frame():
    assert list(encode_events(0, [])) == []


def test_rows_may_lie_anywhere_in_memory():
    rows = np.arange(12).reshape(4, 3)
    (got,) = there_and_back(Block(30, rows.T))

    assert got.columns.tolist() == rows.T.tolist()


GOOD = next(encode_events(5, [block([1, 9, 4], [2, 3, 300])]))


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_a_cut_payload_is_refused(cut):
    with pytest.raises(DamageError):
        decode_events(GOOD[:cut], Budget(0))


def test_a_longer_payload_is_refused():
    with pytest.raises(DamageError):
        decode_events(GOOD + b"\0", Budget(0))


@pytest.mark.parametrize(("width", "num_rows"), [(3, 2**32 - 1), (2**16 - 1, 10_000)])
def test_a_block_that_claims_too_much_is_refused_before_it_is_allocated(
    width, num_rows
):
    head = struct.pack("<IHHHII", 0, 1, 30, width, num_rows, 0)

    with pytest.raises(DamageError, match="claims"):
        decode_events(head, Budget(0))


@pytest.mark.parametrize("place", range(len(GOOD)))
def test_a_changed_payload_is_refused_or_still_a_table(place):
    damaged = bytearray(GOOD)
    damaged[place] ^= 0xFF
    try:
        _, blocks = decode_events(bytes(damaged), Budget(0))
    except DamageError:
        return

    assert [one.columns.ndim for one in blocks] == [2]
