import math

import numpy as np
import pytest

import gradviz as gv

#: The limit of 1 + 1/2 + ... + 1/n - log(n).
EULER = 0.57721566490153286061


def of(function, *numbers):
    """The values of a function of tensors."""
    return function(gv.tensor(numbers, dtype=gv.float64)).numpy()


def test_the_logarithm_of_gamma_is_that_of_c():
    numbers = (1e-300, 0.5, 1.0, 2.0, 10.0, -0.5, -2.5, 1e300)

    assert of(gv.lgamma, *numbers).tolist() == [math.lgamma(x) for x in numbers]
    assert of(gv.lgamma, 0.0, -3.0, math.inf).tolist() == [math.inf] * 3


def test_digamma_has_its_known_values():
    expected = [-EULER, 1 - EULER, -EULER - 2 * math.log(2)]

    np.testing.assert_allclose(of(gv.digamma, 1.0, 2.0, 0.5), expected, rtol=1e-15)


@pytest.mark.parametrize("x", [-20.3, -3.7, -0.5, 0.1, 1.4616321449683623, 30.0])
def test_digamma_rises_by_the_inverse(x):
    here, beyond = of(gv.digamma, x, x + 1)

    assert beyond - here == pytest.approx(1 / x, rel=1e-12)


def test_polygamma_has_its_known_values():
    values = [of(lambda x, n=n: gv.polygamma(n, x), 1.0)[0] for n in (1, 2, 3)]

    zeta_of_3 = 1.2020569031595942854
    np.testing.assert_allclose(
        values, [math.pi**2 / 6, -2 * zeta_of_3, math.pi**4 / 15], rtol=1e-15
    )


@pytest.mark.parametrize("x", [0.3, -0.3, -20.3, -2_000.25])
def test_the_slope_of_digamma_falls_by_the_inverse_square(x):
    here, above = of(lambda numbers: gv.polygamma(1, numbers), x, x + 1)

    np.testing.assert_allclose(here - above, x**-2, atol=here * 1e-14)


def test_poles_and_ends_are_told():
    np.testing.assert_equal(
        of(gv.digamma, 0.0, -0.0, -1.0, math.inf, -math.inf),
        [-math.inf, math.inf, math.nan, math.inf, math.nan],
    )
    np.testing.assert_equal(
        of(lambda x: gv.polygamma(1, x), 0.0, -1.0, math.inf, -1e300),
        [math.inf, math.inf, 0.0, math.inf],
    )
