"""The incomplete gamma functions of a huge first argument."""

import math

import numpy as np
import pytest

import gradviz as gv
from gradviz import special

#: Distances from `a`, by its square root.
DISTANCES = np.array([-4.0, -1.0, -0.01, 0.0, 0.01, 1.0, 4.0])


def parts(a):
    """Both parts, for numbers around `a`."""
    x = gv.tensor((a + DISTANCES * math.sqrt(a)).tolist(), dtype=gv.float64)
    whole = gv.full(x.shape, a, dtype=gv.float64)
    return special.gammainc(whole, x).numpy(), special.gammaincc(whole, x).numpy()


def test_the_expansion_continues_the_series():
    series, expansion = parts(1e6), parts(np.nextafter(1e6, 2e6))

    np.testing.assert_allclose(expansion, series, rtol=1e-9)


@pytest.mark.parametrize("a", [3e6, 1e10, 1e15])
def test_of_a_huge_argument_they_are_those_of_a_normal_distribution(a):
    lower, upper = parts(a)

    np.testing.assert_allclose(lower + upper, 1, rtol=1e-15)
    normal = [0.5 * math.erfc(-one / math.sqrt(2)) for one in DISTANCES]
    # By the skewness of 2 / sqrt(a) they differ, at 4 by some ten times as much.
    np.testing.assert_allclose(lower, normal, rtol=30 / math.sqrt(a) + 1e-7)


def test_far_from_it_they_are_0_and_1():
    a = gv.tensor([1e300, 1e300, 1e7, 1e7], dtype=gv.float64)
    x = gv.tensor([1.0, 1e301, 5e6, 2e7], dtype=gv.float64)

    assert special.gammainc(a, x).tolist() == [0, 1, 0, 1]
    assert special.gammaincc(a, x).tolist() == [1, 0, 1, 0]
