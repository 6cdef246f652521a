import gzip

import numpy as np
import pytest

from gradviz.render.page.columns import RowPlaces, TextTable, pack


@pytest.mark.parametrize(
    "numbers",
    [
        [],
        [0],
        [-1, 5, -128, 127],
        [3, 1_000, 2_000, 1_500],
        [2**31 - 1, -(2**31)],
        [10**15, 10**15 + 3, 10**15 + 70_000],
        [0, 2**53, 0, -(2**53)],
    ],
)
def test_a_column_is_read_back_as_it_was(unpacked, numbers) -> None:
    data = pack(
        {"a": 1}, {"before.x": np.arange(3), "t.x": np.array(numbers, np.int64)}
    )

    header, columns = unpacked(data)

    assert header == {"a": 1}
    assert columns == {"before.x": [0, 1, 2], "t.x": numbers}


def test_a_growing_column_takes_a_byte_for_each_small_step() -> None:
    times = np.cumsum(np.full(1_000, 100, np.int64)) + 10**14

    plain = gzip.decompress(pack({}, {"t.x": times[1:] - times[0]}))

    assert len(plain) < 1_100


def test_a_page_is_the_same_for_the_same_numbers() -> None:
    assert pack({"a": "b"}, {"t.x": np.arange(9)}) == pack(
        {"a": "b"}, {"t.x": np.arange(9)}
    )


def test_each_text_is_kept_once() -> None:
    texts = TextTable()

    assert texts.places(["a", "b", "a"]).tolist() == [0, 1, 0]
    assert (texts.place("b"), texts.place("c"), list(texts)) == (1, 2, ["a", "b", "c"])


def test_places_are_where_the_rows_are_and_below_zero_for_none() -> None:
    places = RowPlaces(np.array([7, 3, 9]))

    assert places.of(np.array([9, 3, 7, 4, -1])).tolist() == [2, 1, 0, -1, -1]
    assert RowPlaces(np.empty(0, np.int64)).of(np.array([1])).tolist() == [-1]
