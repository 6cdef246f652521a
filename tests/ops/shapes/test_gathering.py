"""Many elements are looked up in another way than a few, and are the same."""

import numpy as np
import pytest

import gradviz as gv


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(12, 14, 16), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_gather_and_its_gradient_take_each_element_from_its_place(dim, shape, order):
    random = np.random.default_rng(0)
    values = np.array(random.integers(-9, 9, shape), float, order=order)
    part = tuple(length - (axis != dim) for axis, length in enumerate(shape))
    index = random.integers(0, shape[dim], part)
    grad = random.integers(-9, 9, part).astype(float)
    x = gv.tensor(values).requires_grad_()

    result = gv.gather(x, dim, gv.tensor(index))
    result.backward(gv.tensor(grad))

    places = [*np.indices(part)]
    places[dim] = index
    expected = np.zeros(shape)
    np.add.at(expected, tuple(places), grad)
    np.testing.assert_array_equal(result.detach().numpy(), values[tuple(places)])
    np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_scatter_add_uses_the_beginning_of_a_larger_source():
    random = np.random.default_rng(0)
    source = random.integers(-9, 9, (60, 50)).astype(float)
    index = random.integers(0, 7, (40, 30))
    start = np.ones((7, 30))

    result = gv.scatter_add(gv.tensor(start), 0, gv.tensor(index), gv.tensor(source))

    expected = start.copy()
    np.add.at(expected, (index, np.arange(30)), source[:40, :30])
    np.testing.assert_array_equal(result.numpy(), expected)
