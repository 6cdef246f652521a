"""Bessel functions at the ends of their range, which PyTorch's cases leave out."""

import math

import numpy as np

import gradviz as gv
from gradviz import special


def test_of_the_largest_numbers_they_are_infinite_and_scaled_they_are_tiny():
    x = gv.tensor([1.7e308, -1.7e308], dtype=gv.float64)

    assert special.i0(x).tolist() == [math.inf, math.inf]
    assert special.i1(x).tolist() == [math.inf, -math.inf]
    scaled = 1 / math.sqrt(2 * math.pi) / math.sqrt(1.7e308)
    np.testing.assert_allclose(special.i0e(x).numpy(), scaled, rtol=1e-14)
