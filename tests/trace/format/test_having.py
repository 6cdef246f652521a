"""Rows of a table that are found by the numbers of a column."""

import numpy as np
import pytest

from gradviz.trace.format.table import Table, narrow


def table_of(numbers):
    column = narrow(np.array(numbers, np.int64))
    return Table({"task": column, "seq": narrow(np.arange(len(numbers)))})


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([0, 0, 1, 1, 1, 3], id="sorted"),
        pytest.param([3, 0, 1, 0, 1, -1], id="mixed"),
        pytest.param([2**40, 5, 2**40, -7], id="wide"),
        pytest.param([], id="none"),
    ],
)
@pytest.mark.parametrize(
    "wanted",
    [[], [0], [1, 0], [7], [3, 3, 0], [2**40], [-7, 2**50], range(-100, 100)],
)
def test_the_rows_that_have_a_number_are_found_however_often_one_asks(numbers, wanted):
    table = table_of(numbers)
    expected = [place for place, one in enumerate(numbers) if one in set(wanted)]

    for _ in range(3):
        assert table.having("task", wanted)["seq"].tolist() == expected


def test_rows_are_found_without_a_look_at_all_others():
    """A column that is asked about again is not gone through again."""
    table = table_of(np.random.default_rng(0).integers(0, 1_000, 2_000))
    table.having("task", [5])
    table.having("task", [6])
    index = table._index("task")

    assert table._index("task") is index
    assert index.ordered.tolist() == sorted(table["task"].tolist())
