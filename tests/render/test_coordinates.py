import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradviz.render.coordinates import spread

wishes = st.lists(st.integers(-100, 100), min_size=1, max_size=12)


def test_wishes_that_fit_come_true():
    assert spread([0, 10, 30], [1, 1, 1], [10, 10]) == [0, 10, 30]


def test_equal_wishes_are_spread_evenly_around_them():
    assert spread([5, 5, 5], [1, 1, 1], [10, 10]) == [-5, 5, 15]


def test_a_heavy_wish_hardly_moves():
    light, heavy = spread([0, 0], [1, 999], [10])

    assert (light, heavy) == pytest.approx((-9.99, 0.01))


@given(wishes, st.integers(0, 20))
def test_every_gap_is_kept(wanted, gap):
    places = spread(wanted, [1.0] * len(wanted), [gap] * (len(wanted) - 1))

    for left, right in itertools.pairwise(places):
        assert right - left >= gap - 1e-9


@given(wishes)
def test_no_other_places_are_nearer_to_the_wishes(wanted):
    places = spread(wanted, [1.0] * len(wanted), [3.0] * (len(wanted) - 1))

    def distance(moved):
        return sum((one - wish) ** 2 for one, wish in zip(moved, wanted, strict=True))

    # The problem is convex: if no block of neighbours gains by moving, nothing does.
    for begin, end in itertools.combinations(range(len(places) + 1), 2):
        for by in (-0.01, 0.01):
            moved = [x + by * (begin <= i < end) for i, x in enumerate(places)]
            is_allowed = all(b - a >= 3 for a, b in itertools.pairwise(moved))
            assert not is_allowed or distance(moved) >= distance(places) - 1e-9
