"""Large arrays are worked off in blocks, which nobody can tell from the results."""

import numpy as np
import pytest

import gradviz as gv
from gradviz.ops.elementwise.real_kernels import in_blocks


@pytest.mark.parametrize("size", [0, 1, 65_536, 100_001])
def test_blocks_cover_all_elements(size):
    x, y = np.arange(float(size)), np.ones(size)

    np.testing.assert_array_equal(in_blocks(lambda a, b: a + b, x, y), x + 1)


def test_arrays_that_lie_otherwise_are_computed_at_once():
    x = np.ones((400, 300)).T
    calls = []

    in_blocks(lambda a: calls.append(a.shape) or a, x)

    assert calls == [(300, 400)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_gelu_of_many_elements_is_that_of_each(dtype):
    x = gv.tensor(np.random.default_rng(0).standard_normal((300, 300)).astype(dtype))
    x.requires_grad_()

    y = gv.nn.functional.gelu(x)
    y.sum().backward()

    row = x.detach()[7].clone().requires_grad_()
    alone = gv.nn.functional.gelu(row)
    alone.sum().backward()
    assert y.dtype == x.grad.dtype == x.dtype
    close = {"rtol": 4 * np.finfo(dtype).eps, "atol": 0}
    np.testing.assert_allclose(y.detach()[7].numpy(), alone.detach().numpy(), **close)
    np.testing.assert_allclose(x.grad[7].numpy(), row.grad.numpy(), **close)
