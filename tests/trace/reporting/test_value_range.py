import math

import pytest

from gradviz.trace.reporting.value_range import (
    FirstFound,
    ValueRange,
    joined_range,
    range_of_number,
)

NAN = ValueRange(has_nan=True)
INFINITE = ValueRange(has_infinity=True)
FINITE = range_of_number(2.0)


def test_a_nan_is_explained_by_a_nan_only():
    assert NAN.explains(NAN)
    assert not INFINITE.explains(NAN)
    assert not FINITE.explains(NAN)


def test_an_infinity_is_explained_by_whatever_is_not_finite():
    assert NAN.explains(INFINITE)
    assert INFINITE.explains(INFINITE)
    assert not FINITE.explains(INFINITE)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (-3.0, ValueRange(smallest=3.0, largest=3.0)),
        (0.0, ValueRange(largest=0.0)),
        (3 + 4j, ValueRange(smallest=5.0, largest=5.0)),
        (math.nan, NAN),
        (complex(0, -math.inf), INFINITE),
        (complex(1.7e308, 1.7e308), INFINITE),
    ],
)
def test_the_range_of_a_number(number, expected):
    assert range_of_number(number) == expected


def test_ranges_are_joined():
    assert joined_range([range_of_number(2.0), range_of_number(-5.0), NAN]) == (
        ValueRange(has_nan=True, smallest=2.0, largest=5.0)
    )


def test_magnitudes_are_unknown_where_no_element_is_finite():
    assert NAN.magnitudes() == ("", "")
    assert range_of_number(0.0).magnitudes() == ("", "0.0")
    assert range_of_number(-0.5).magnitudes() == ("0.5", "0.5")


def test_of_a_pass_one_infinity_is_news_and_then_one_nan():
    found = FirstFound()

    assert not found.has_any(1)
    assert [found.is_news(1, one) for one in (INFINITE, INFINITE, NAN, NAN)] == (
        [True, False, True, False]
    )
    assert found.is_done(1)
    assert not found.is_done(2)
    assert not found.is_news(1, INFINITE)


def test_a_forgotten_pass_begins_anew():
    found = FirstFound()
    found.is_news(1, NAN)

    found.forget(1)

    assert found.is_news(1, INFINITE)


def test_only_so_many_passes_are_remembered():
    found = FirstFound()

    for task in range(3_000):
        found.is_news(task, NAN)

    assert found.is_done(2_999)
    assert not found.has_any(0)
