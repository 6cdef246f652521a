import pytest

import gradviz as gv
from gradviz.autograd import gradcheck, gradgradcheck


@pytest.fixture
def z():
    return gv.tensor([[1 + 2j, 3 - 1j]], requires_grad=True)


@pytest.mark.parametrize(
    ("part", "gradient"),
    [
        (lambda w: w.real, [[6 + 2j, 6 + 2j]]),
        (lambda w: w.imag, [[2 + 6j, 2 + 6j]]),
        (gv.view_as_real, [[6 + 6j, 6 + 6j]]),
    ],
)
def test_a_part_that_is_changed_in_place_changes_the_whole(z, part, gradient):
    w = z * 2

    part(w).mul_(3)
    (w.real + w.imag).sum().backward()

    assert w.grad_fn.name() == "CopySlices"
    assert z.grad.tolist() == gradient


def test_pairs_seen_as_complex_numbers_are_changed_with_them():
    x = gv.tensor([[1.0, 2.0]], requires_grad=True)
    y = x * 2

    gv.view_as_complex(y).mul_(1j)
    y[..., 0].sum().backward()

    assert y.tolist() == [[-4.0, 2.0]]
    assert x.grad.tolist() == [[0.0, -2.0]]


def test_a_part_knows_that_the_whole_was_changed(z):
    w = z * 2
    real = w.real

    w.mul_(2)
    real.sum().backward()

    assert z.grad.tolist() == [[4 + 0j, 4 + 0j]]


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.real.mul_(3),
        lambda w: w.imag.add_(w.real * 0.1),
        lambda w: gv.view_as_real(w).mul_(3),
        lambda w: gv.view_as_real(w)[..., 1].copy_(w.real),
        lambda w: gv.view_as_complex(gv.view_as_real(w)).mul_(1 + 1j),
        lambda w: gv.view_as_real(w).transpose(0, 1).mul_(2),
    ],
)
def test_a_change_of_parts_is_differentiated_twice(change):
    z = gv.tensor([[1 + 2j, 3 - 1j]], dtype=gv.complex128, requires_grad=True)

    def function(z):
        w = z * z
        change(w)
        return w

    assert gradcheck(function, z)
    assert gradgradcheck(function, z)


def test_a_change_of_pairs_is_differentiated_twice():
    x = gv.tensor([[1.0, 2.0]], dtype=gv.float64, requires_grad=True)

    def function(x):
        y = x * x
        gv.view_as_complex(y).mul_(1 + 2j)
        return y

    assert gradcheck(function, x)
    assert gradgradcheck(function, x)


def test_a_part_of_pairs_knows_that_they_were_changed():
    x = gv.tensor([[1.0, 2.0]], requires_grad=True)
    y = x * 2
    real = gv.view_as_complex(y).real

    y.mul_(2)
    real.sum().backward()

    assert x.grad.tolist() == [[4.0, 0.0]]


def test_a_view_of_the_parts_that_was_transposed_in_place_has_its_gradient():
    weights = gv.arange(8.0).view(2, 2, 2)

    def gradient(transposed):
        x = gv.ones(2, 2, dtype=gv.complex64, requires_grad=True)
        parts = transposed(gv.view_as_real(x.clone()))
        parts += 1
        parts.backward(weights)
        return x.grad.tolist()

    in_place = gradient(lambda parts: parts.transpose_(0, 1))

    assert in_place == gradient(lambda parts: parts.transpose(0, 1))
    assert in_place == [[1j, 4 + 5j], [2 + 3j, 6 + 7j]]
