"""Special functions against Python's own, which are C's, over their whole range."""

import math

import numpy as np
import pytest

import gradviz as gv
from gradviz import special

NUMBERS = np.concatenate([np.linspace(-27, 27, 4001), np.logspace(-300, 308, 600)])


def of(function, numbers):
    """The values of a function of tensors."""
    return function(gv.from_numpy(numbers)).numpy()


@pytest.mark.parametrize(
    ("function", "reference"), [(gv.erf, math.erf), (gv.erfc, math.erfc)]
)
def test_values_are_those_of_c_to_the_last_digits(function, reference):
    expected = np.array([reference(x) for x in NUMBERS])

    np.testing.assert_allclose(of(function, NUMBERS), expected, rtol=2e-15, atol=1e-300)


def test_single_precision_has_its_seven_digits():
    numbers = NUMBERS[np.abs(NUMBERS) < 1e38].astype(np.float32)
    expected = np.array([math.erf(x) for x in numbers])

    values = of(gv.erf, numbers)

    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("function", [gv.erf, gv.erfc])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_left_beyond_the_range_whatever_the_distance(function, dtype):
    numbers = np.logspace(1.5, np.log10(np.finfo(dtype).max) - 1, 500, dtype=dtype)

    far, near = (1, -1) if function is gv.erf else (0, 2)
    assert set(of(function, numbers).tolist()) == {far}
    assert set(of(function, -numbers).tolist()) == {near}


@pytest.mark.parametrize("x", [1e-12, 0.3, 0.49, 0.51, 0.9, 1 - 1e-12])
def test_the_inverse_gives_back(x):
    inverse = of(gv.erfinv, np.array([x, -x]))

    np.testing.assert_allclose(of(gv.erf, inverse), [x, -x], rtol=1e-15)


@pytest.mark.parametrize("part", [1e-300, 1e-20, 0.1, 0.4999, 0.5, 0.75, 0.999])
def test_a_quantile_gives_back_its_part(part):
    quantile = of(special.ndtri, np.array([part]))

    logarithm = of(special.log_ndtr, quantile)

    np.testing.assert_allclose(logarithm, math.log(part), rtol=1e-13, atol=1e-15)


def test_limits_are_met():
    ends = gv.tensor([math.inf, -math.inf, math.nan, 0.0])

    np.testing.assert_equal(gv.erf(ends).numpy(), [1, -1, math.nan, 0])
    np.testing.assert_equal(gv.erfc(ends).numpy(), [0, 2, math.nan, 1])
    edges = gv.tensor([1.0, -1.0, 2.0, 0.0])
    np.testing.assert_equal(
        gv.erfinv(edges).numpy(), [math.inf, -math.inf, math.nan, 0]
    )
