import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradviz.trace.format.columns import (
    Part,
    RowLayout,
    RowTable,
    decode_events,
    encode_events,
    tabulate,
)
from gradviz.trace.format.frames import Budget, DamageError

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def rows(*columns, code=30) -> RowTable:
    """Rows that have these columns, and stand for one event each."""
    table = np.array(columns, np.int64)
    layout = RowLayout(len(table), (Part(code, 0, tuple(range(len(table)))),))
    return tabulate(layout, table.T.ravel().tolist())


def there_and_back(*some: RowTable):
    """The columns of some rows, encoded and decoded."""
    got = []
    for payload in encode_events(5, some):
        thread, blocks = decode_events(payload, Budget(1 << 20))
        assert thread == 5
        got += blocks
    codes = [part.code for one in some for part in one.layout.parts]
    assert [block.code for block in got] == codes
    return [block.columns.tolist() for block in got]


TABLES = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=20))


@settings(max_examples=200)
@given(st.lists(TABLES, min_size=1, max_size=3))
def test_any_64_bit_integers_survive(tables):
    blocks = [rows(*table, code=code) for code, table in enumerate(tables)]

    assert there_and_back(*blocks) == [table.tolist() for table in tables]


@pytest.mark.parametrize(
    "column",
    [
        [7],
        [LOWEST],
        [7, 7, 7],
        [LOWEST, HIGHEST, LOWEST],
        [LOWEST, 0, HIGHEST],
        [0, 127, 0],
        [0, 128, 0],
        [0, 32_767, 0],
        [0, 32_768, 0],
        [0, 2**31 - 1, 0],
        [0, 2**31, 0],
        [0, 2**62, 0],
        [-1, 5, -1, -1],
        list(range(1_000_000, 2_000_000, 999)),
    ],
    ids=lambda column: str(column[:4]),
)
def test_each_width_survives(column):
    assert there_and_back(rows(column)) == [[column]]


def test_columns_do_not_depend_on_their_neighbors():
    one, other = [0, 1, 2], [HIGHEST, LOWEST, HIGHEST]

    assert there_and_back(rows(one, other), rows([5]), rows(other, one)) == [
        [one, other],
        [[5]],
        [other, one],
    ]


def test_a_row_may_stand_for_several_events():
    """Each with some of its columns, the first a little later than the row's."""
    layout = RowLayout(3, (Part(8, 0, (0, 1)), Part(9, 2, (0, 2, 1, 2))))
    table = tabulate(layout, [10, 7, 5, 20, 7, 6, 30, 7, 9])

    assert there_and_back(table) == [
        [[10, 20, 30], [7, 7, 7]],
        [[12, 22, 32], [5, 6, 9], [7, 7, 7], [5, 6, 9]],
    ]


@pytest.mark.parametrize("wrong", [1.5, "1", None, 2**63, [1]])
def test_a_value_that_is_no_integer_of_64_bits_is_refused(wrong):
    layout = RowLayout(2, (Part(8, 0, (0, 1)),))

    with pytest.raises((TypeError, OverflowError)):
        tabulate(layout, [1, 2, 3, wrong])
    with pytest.raises((TypeError, OverflowError)):
        tabulate(layout, [1, wrong])


def test_regular_columns_take_no_bytes_for_each_row():
    (payload,) = encode_events(0, [rows(list(range(1000)), [3] * 1000)])

    assert len(payload) < 100


def test_many_rows_are_cut_into_frames_of_bounded_size():
    columns = np.random.default_rng(0).integers(LOWEST, HIGHEST, (10, 70_000))
    payloads = list(encode_events(5, [rows(*columns)]))
    got = [one for each in payloads for one in decode_events(each, Budget(1 << 20))[1]]

    assert len(payloads) == 3
    assert max(map(len, payloads)) < 2_200_000
    np.testing.assert_array_equal(
        np.concatenate([one.columns for one in got], axis=1), columns
    )


def test_a_row_longer_than_a_frame_has_a_frame_of_its_own(monkeypatch):
    monkeypatch.setattr("gradviz.trace.format.columns._MAX_NUMBERS", 2)

    (first, second) = encode_events(0, [rows([1, 4], [2, 5], [3, 6])])
    assert decode_events(first, Budget(0))[1][0].columns.tolist() == [[1], [2], [3]]
    assert decode_events(second, Budget(0))[1][0].columns.tolist() == [[4], [5], [6]]


def test_a_few_rows_of_several_kinds_share_a_frame():
    assert len(list(encode_events(0, [rows([1, 2]), rows([3]), rows([4])]))) == 1


def test_nothing_to_write_makes_no_frame():
    assert list(encode_events(0, [])) == []


GOOD = next(encode_events(5, [rows([1, 9, 4], [2, 3, 300])]))


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


def test_a_block_longer_than_its_columns_is_refused():
    column = struct.pack("<Bqq", 0, 7, 0)
    block = struct.pack("<HHII", 30, 1, 3, len(column) + 1) + column + b"!"

    with pytest.raises(DamageError, match="longer than its columns"):
        decode_events(struct.pack("<IH", 0, 1) + block, Budget(0))
