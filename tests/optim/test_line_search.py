import numpy as np
import pytest

from gradviz.optim.line_search import LinePoint, strong_wolfe


def searched(function, slope, distance, max_evaluations=20):
    """The point found on a line, and the distances tried."""
    tried = []

    def evaluate(place):
        tried.append(place)
        return function(place), np.array([slope(place)])

    start = LinePoint(0.0, function(0.0), np.array([slope(0.0)]), slope(0.0))
    direction = np.array([1.0])
    point, count = strong_wolfe(evaluate, distance, direction, start, max_evaluations)
    assert count == len(tried)
    return point, tried


def test_a_first_try_that_is_good_is_taken():
    point, tried = searched(lambda x: (x - 1) ** 2, lambda x: 2 * (x - 1), 1.0)

    assert point.distance == 1
    assert tried == [1]


@pytest.mark.parametrize("first", [0.01, 50.0])
def test_a_parabola_is_searched_from_either_side(first):
    point, tried = searched(lambda x: (x - 3) ** 2, lambda x: 2 * (x - 3), first)

    assert point.loss < 9  # less than at the start
    assert abs(point.slope) <= 0.9 * 6  # and less steep
    assert len(tried) <= 4


def test_the_search_ends_when_nothing_may_be_tried_any_more():
    point, tried = searched(lambda x: -x, lambda _: -1.0, 1.0, max_evaluations=3)

    assert len(tried) == 4
    assert point.distance == max(tried)


def test_a_place_that_is_no_number_is_left():
    point, _ = searched(
        lambda x: (x - 1) ** 2 if x < 2 else float("inf"),
        lambda x: 2 * (x - 1) if x < 2 else float("nan"),
        8.0,
    )

    assert point.distance == pytest.approx(1, abs=0.5)
