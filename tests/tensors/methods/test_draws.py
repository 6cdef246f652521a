import re

import numpy as np
import pytest

import gradviz as gv

DRAWS = [
    lambda x, **o: x.normal_(3, 0.5, **o),
    lambda x, **o: x.uniform_(2, 4, **o),
    lambda x, **o: x.random_(5, **o),
    lambda x, **o: x.random_(3, 8, **o),
    lambda x, **o: x.random_(**o),
    lambda x, **o: x.bernoulli_(**o),
    lambda x, **o: x.bernoulli_(gv.full((4,), 0.25), **o),
    lambda x, **o: x.exponential_(2.0, **o),
    lambda x, **o: x.cauchy_(1.0, 2.0, **o),
    lambda x, **o: x.log_normal_(0.0, 1.0, **o),
    lambda x, **o: x.geometric_(0.25, **o),
]


@pytest.fixture(autouse=True)
def _seed():
    gv.manual_seed(0)


@pytest.mark.parametrize("draw", DRAWS)
def test_they_change_the_tensor_and_return_it(draw):
    x = gv.full((4,), -7.0)

    assert draw(x) is x
    assert -7.0 not in x.tolist()
    assert x._version == 1


@pytest.mark.parametrize("draw", DRAWS)
def test_a_generator_is_drawn_from(draw):
    first, again = (
        draw(gv.zeros(4), generator=gv.Generator().manual_seed(1)) for _ in range(2)
    )

    assert first.tolist() == again.tolist()


@pytest.mark.parametrize("draw", DRAWS)
def test_no_gradient_comes_back(draw):
    x = gv.ones(4, requires_grad=True)

    draw(x * 2).sum().backward()

    assert x.grad.tolist() == [0.0] * 4


@pytest.mark.parametrize("draw", DRAWS)
def test_a_leaf_that_requires_gradients_is_refused(draw):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        draw(gv.ones(4, requires_grad=True))


def test_the_numbers_are_as_distributed():
    size = 4000

    normal = gv.zeros(size).normal_(3, 0.5)
    uniform = gv.zeros(size).uniform_(2, 4)
    exponential = gv.zeros(size).exponential_(4.0)

    assert (normal.mean().item(), normal.std().item()) == pytest.approx(
        (3, 0.5), abs=0.05
    )
    assert uniform.min() >= 2
    assert uniform.max() < 4
    assert uniform.mean().item() == pytest.approx(3, abs=0.05)
    assert exponential.mean().item() == pytest.approx(0.25, abs=0.05)
    assert gv.zeros(size).cauchy_(1).median().item() == pytest.approx(1, abs=0.2)
    assert gv.zeros(size).log_normal_(0, 1).log().std().item() == pytest.approx(
        1, abs=0.05
    )
    assert gv.zeros(size).geometric_(0.25).mean().item() == pytest.approx(4, abs=0.3)
    assert gv.zeros(size).bernoulli_(0.2).mean().item() == pytest.approx(0.2, abs=0.03)
    assert sorted(set(gv.zeros(99).random_(3, 6).tolist())) == [3.0, 4.0, 5.0]


def test_both_parts_of_a_complex_number_are_drawn():
    z = gv.zeros(4000, dtype=gv.complex64).normal_(1, 2)

    assert z.real.mean().item() == pytest.approx(1, abs=0.1)
    assert z.imag.std().item() == pytest.approx(2 / np.sqrt(2), abs=0.1)


def test_without_bounds_integers_are_all_that_the_dtype_holds():
    assert gv.zeros(999, dtype=gv.uint8).random_().max() > 200
    assert gv.zeros(99, dtype=gv.float16).random_().max() <= 2048
    assert set(gv.zeros(99, dtype=gv.bool).random_().tolist()) == {False, True}


def test_bounds_may_be_named():
    x = gv.zeros(9).random_(**{"from": 4, "to": 5})
    y = gv.zeros(9).uniform_(**{"from": 4, "to": 4})

    assert x.tolist() == y.tolist() == [4.0] * 9
    with pytest.raises(TypeError, match=r"uniform_\(\) got an unexpected keyword"):
        gv.zeros(9).uniform_(above=4)


@pytest.mark.parametrize(
    ("draw", "dtype", "error", "message"),
    [
        (lambda x: x.normal_(0, -1), gv.float32, RuntimeError, "normal expects std"),
        (
            lambda x: x.normal_(),
            gv.int64,
            NotImplementedError,
            "\"normal_kernel_cpu\" not implemented for 'Long'",
        ),
        (
            lambda x: x.uniform_(1, 0),
            gv.float32,
            RuntimeError,
            "uniform_ expects to return a [from, to) range, but found from=1 > to=0",
        ),
        (
            lambda x: x.random_(5, 2),
            gv.float32,
            RuntimeError,
            "random_ expects 'from' to be less than 'to', but got from=5 >= to=2",
        ),
        (
            lambda x: x.random_(300),
            gv.uint8,
            RuntimeError,
            "to - 1 is out of bounds for unsigned char",
        ),
        (
            lambda x: x.random_(2, 5),
            gv.bool,
            RuntimeError,
            "from is out of bounds for bool",
        ),
        (
            lambda x: x.bernoulli_(1.3),
            gv.float32,
            RuntimeError,
            "bernoulli_ expects p to be in [0, 1], but got p=1.3",
        ),
        (
            lambda x: x.exponential_(0),
            gv.float32,
            RuntimeError,
            "exponential_ expects lambda > 0.0, but found lambda=0",
        ),
        (
            lambda x: x.exponential_(),
            gv.int64,
            RuntimeError,
            "dtype must be a floating point but you specified Long",
        ),
        (lambda x: x.cauchy_(0, 0), gv.float32, RuntimeError, "expects sigma > 0.0"),
        (lambda x: x.log_normal_(0, 0), gv.float32, RuntimeError, "expects std > 0.0"),
        (
            lambda x: x.geometric_(1.5),
            gv.float32,
            RuntimeError,
            "geometric_ expects p to be in (0, 1), but got p=1.5",
        ),
    ],
)
def test_a_draw_with_invalid_arguments_raises_pytorchs_error(
    draw, dtype, error, message
):
    with pytest.raises(error, match=re.escape(message)):
        draw(gv.zeros(3, dtype=dtype))


def test_each_element_may_be_its_own_probability():
    p = gv.tensor([0.0, 1.0, 0.5], requires_grad=True)

    drawn = p.bernoulli()
    drawn.sum().backward()

    assert drawn.tolist()[:2] == [0.0, 1.0]
    assert p.grad.tolist() == [0.0] * 3
    assert gv.bernoulli(gv.arange(3), 1.0).tolist() == [1, 1, 1]


def test_indices_are_drawn_by_their_weights():
    weights = gv.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])

    assert weights.multinomial(1)[0].tolist() == [1]
    assert sorted(gv.multinomial(weights[1], 2).tolist()) == [0, 2]
    with pytest.raises(RuntimeError, match="without replacement"):
        weights.multinomial(4)


def test_numbers_of_a_poisson_distribution_have_their_means():
    means = gv.full((4000,), 3.0, requires_grad=True)

    drawn = gv.poisson(means)

    assert drawn.mean().item() == pytest.approx(3, abs=0.1)
    assert drawn.grad_fn.name() == "PoissonBackward0"
