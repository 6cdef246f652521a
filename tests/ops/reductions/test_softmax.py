"""Softmax of large arrays is worked off in blocks, which nobody can tell."""

import numpy as np

import gradviz as gv


def test_log_softmax_of_more_than_fits_the_cache_is_that_of_each_row():
    x = gv.tensor(np.random.default_rng(0).standard_normal((2, 1100, 1000)))

    result = gv.log_softmax(x, -1)

    for place in ((0, 0), (0, 1099), (1, 64), (1, 1099)):
        alone = gv.log_softmax(x[place], -1)
        np.testing.assert_allclose(result[place].numpy(), alone.numpy(), rtol=1e-13)
