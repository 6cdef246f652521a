"""Derivatives of known values; the rest is in tests/parity/test_functional.py."""

import pytest

import gradviz as gv
from gradviz.autograd import functional


@pytest.fixture
def x():
    return gv.tensor([1.0, 2.0], dtype=gv.float64)


def cubes(x):
    return x**3


def total(x, y):
    return (x * x * y).sum()


def test_a_jacobian_has_the_outputs_shape_and_then_the_inputs(x):
    found = functional.jacobian(cubes, x)

    assert found.tolist() == [[3.0, 0.0], [0.0, 12.0]]
    assert not found.requires_grad


def test_of_several_inputs_and_outputs_it_is_a_tuple_of_tuples(x):
    y = gv.tensor(3.0, dtype=gv.float64)
    (by_x, by_y), (sum_by_x, sum_by_y) = functional.jacobian(
        lambda x, y: (x * y, x.sum()), (x, y)
    )

    assert by_x.tolist() == [[3.0, 0.0], [0.0, 3.0]]
    assert by_y.tolist() == [1.0, 2.0]
    assert sum_by_x.tolist() == [1.0, 1.0]
    assert sum_by_y.tolist() == 0.0


def test_of_no_elements_it_has_none(x):
    assert functional.jacobian(lambda x: x[:0], x).shape == (0, 2)


def test_a_hessian_has_the_inputs_shape_twice(x):
    assert functional.hessian(lambda x: (x**3).sum(), x).tolist() == [
        [6.0, 0.0],
        [0.0, 12.0],
    ]


def test_of_several_inputs_a_hessian_is_a_tuple_of_tuples(x):
    y = gv.tensor([5.0, 7.0], dtype=gv.float64)
    (xx, xy), (yx, yy) = functional.hessian(total, (x, y))

    assert xx.tolist() == [[10.0, 0.0], [0.0, 14.0]]
    assert xy.tolist() == yx.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert yy.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("product", [functional.vjp, functional.jvp])
def test_a_product_with_a_jacobian(x, product):
    v = gv.tensor([1.0, 10.0], dtype=gv.float64)

    value, found = product(cubes, x, v)

    assert value.tolist() == [1.0, 8.0]
    assert found.tolist() == [3.0, 120.0]


@pytest.mark.parametrize("product", [functional.vhp, functional.hvp])
def test_a_product_with_a_hessian(x, product):
    v = gv.tensor([1.0, 10.0], dtype=gv.float64)

    value, found = product(lambda x: (x**3).sum(), x, v)

    assert value.tolist() == 9.0
    assert found.tolist() == [6.0, 120.0]


@pytest.mark.parametrize(
    "derivative", [functional.jacobian, functional.vjp, functional.jvp]
)
def test_with_create_graph_it_may_be_differentiated(derivative):
    x = gv.tensor([2.0], dtype=gv.float64, requires_grad=True)
    found = derivative(cubes, x, create_graph=True)
    found = found[1] if isinstance(found, tuple) else found

    (second,) = gv.autograd.grad(found.sum(), x)

    assert second.tolist() == [12.0]


def test_an_unused_input_has_a_zero_jacobian_or_is_an_error_in_strict_mode(x):
    def first(x, y):
        return x * 2

    with_zeros = functional.jacobian(first, (x, x))
    assert with_zeros[1].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(RuntimeError, match=r"Output 0 .* is independent of input 1"):
        functional.jacobian(first, (x, x), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.vjp(first, (x, x), x, strict=True)
    with pytest.raises(RuntimeError, match=r"Output 0 .* does not require gradients"):
        functional.jvp(lambda x: x.detach(), x, x, strict=True)


def test_a_given_input_stays_as_it_was(x):
    functional.hessian(lambda x: (x**3).sum(), x)

    assert not x.requires_grad
    assert x.grad is None


def test_forward_mode_is_refused(x):
    with pytest.raises(NotImplementedError, match='use "reverse-mode"'):
        functional.jacobian(cubes, x, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match='use "reverse-mode"'):
        functional.hessian(cubes, x, outer_jacobian_strategy="forward-mode")
    with pytest.raises(ValueError, match="'sideways'"):
        functional.jacobian(cubes, x, strategy="sideways")
