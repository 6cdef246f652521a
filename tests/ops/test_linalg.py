import numpy as np
import pytest

import gradviz as gv

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3,)),
    ((2, 2, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((2, 3), (2, 3, 4)),
    ((2, 2, 3), (2, 3, 4)),
    ((4, 1, 2, 3), (2, 3, 4)),
    ((2, 0), (0, 3)),
]


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_a_product_is_numpys_for_any_numbers_of_dimensions(left, right, needs_grad):
    random = np.random.default_rng(0)
    a, b = random.standard_normal(left), random.standard_normal(right)
    x, y = (gv.tensor(one, requires_grad=needs_grad) for one in (a, b))

    np.testing.assert_allclose((x @ y).detach().numpy(), a @ b)


def test_matrices_that_do_not_fit_are_named():
    with pytest.raises(RuntimeError) as caught:
        gv.ones(2, 3) @ gv.ones(4, 5)
    assert (
        str(caught.value) == "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"
    )


def test_matrices_of_different_dtypes_do_not_multiply():
    with pytest.raises(RuntimeError, match="to have the same dtype, but got: float32"):
        gv.ones(2, 2) @ gv.ones(2, 2, dtype=gv.float64)


def test_an_op_says_how_many_dimensions_it_expects():
    with pytest.raises(RuntimeError, match="mm: expected tensors of 2 and 2 dim"):
        gv.mm(gv.ones(2), gv.ones(2, 2))
    with pytest.raises(RuntimeError, match="they are 0D and 1D"):
        gv.tensor(1.0) @ gv.ones(2)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3)])
def test_a_linear_layer_is_a_product_and_a_sum(shape):
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(size) for size in (shape, (5, 3), (5,)))

    result = gv.linear(gv.tensor(x), gv.tensor(w), gv.tensor(b))

    np.testing.assert_allclose(result.numpy(), x @ w.T + b)
