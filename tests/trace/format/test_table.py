import numpy as np
import pytest

from gradviz.trace.format.table import Table, different, joined, narrow


@pytest.mark.parametrize(
    ("least", "largest", "width"),
    [
        (0, 0, np.int8),
        (-128, 127, np.int8),
        (0, 128, np.int16),
        (-129, 0, np.int16),
        (-(1 << 15), (1 << 15) - 1, np.int16),
        (0, 1 << 15, np.int32),
        (-(1 << 15) - 1, 0, np.int32),
        (-(1 << 31), (1 << 31) - 1, np.int32),
        (0, 1 << 31, np.int64),
        (-(1 << 31) - 1, 0, np.int64),
        (-(1 << 63), (1 << 63) - 1, np.int64),
    ],
)
def test_numbers_take_as_few_bytes_as_they_fit_into(least, largest, width):
    numbers = np.array([least, largest, least], np.int64)

    kept = narrow(numbers)

    assert kept.dtype == width
    assert kept.tolist() == numbers.tolist()


def test_no_numbers_take_the_fewest():
    assert narrow(np.empty(0, np.int64)).dtype == np.int8
    assert joined([]).dtype == np.int8


def test_columns_that_are_joined_are_as_wide_as_the_widest():
    whole = joined([np.array([1], np.int8), np.array([300], np.int16)])

    assert whole.dtype == np.int16
    assert whole.tolist() == [1, 300]


@pytest.mark.parametrize("numbers", [[], [7], [3, 1, 3, 2, 1, 3]])
def test_each_number_once(numbers):
    assert different(np.array(numbers, np.int8)).tolist() == sorted(set(numbers))


def test_a_table_gives_wide_columns_that_nobody_can_change():
    table = Table({"a": np.array([1, 2], np.int8), "b": np.array([3, 4], np.int16)})

    assert (table.num_rows, len(table), list(table)) == (2, 2, ["a", "b"])
    assert "a" in table
    assert "c" not in table
    assert table["a"].dtype == np.int64
    assert table.narrow("a").dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        table["a"][0] = 5


def test_some_rows_of_a_table_are_a_table():
    table = Table({"a": np.array([1, 2, 3], np.int8)})

    assert table.at(slice(1, None))["a"].tolist() == [2, 3]
    assert table.at(np.array([True, False, True]))["a"].tolist() == [1, 3]


def test_rows_are_tuples_of_the_columns_asked_for():
    table = Table({"a": np.array([1, 2]), "b": np.array([3, 4]), "c": np.array([5, 6])})

    assert list(table.rows("c", "a")) == [(5, 1), (6, 2)]


@pytest.mark.parametrize("places", [[True, False, True], [0, 2]])
def test_chosen_rows_stay_as_they_were_chosen(places):
    places = np.array(places)
    table = Table({"a": np.array([1, 2, 3], np.int8), "b": np.array([4, 5, 6])})

    some = table.at(places)
    places[:] = places[0]  # its owner goes on with it

    assert some["a"].tolist() == [1, 3]
    assert some.at(slice(1, None))["b"].tolist() == [6]
    assert (some.num_rows, len(some), list(some)) == (2, 2, ["a", "b"])
    assert "b" in some
    assert "c" not in some
    with pytest.raises(KeyError):
        some["c"]
